"""The target of an archive, from what a user types: a directory, or a bucket and a prefix."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from podlife.clock import Clock
    from podlife.podgc.archive import Archive, ArchiveReader
    from podlife.podgc.archive.s3_client import S3Client

ARCHIVE_ENV, ARCHIVE_METAVAR = "PODLIFE_ARCHIVE", "FOLDER|s3://BUCKET/PREFIX"
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")


@dataclass(frozen=True, slots=True)
class ArchiveTarget:
    folder: Path = Path()
    bucket: str = ""
    prefix: str = ""

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/") if self.bucket else str(self.folder)

    def open_bucket(self, clock: Clock) -> Archive:
        """Raises ConfigError when the environment does not say how to get there."""
        from podlife.podgc.archive.s3 import S3Archive

        return S3Archive(self._s3_client(clock), self.prefix)

    @asynccontextmanager
    async def reader(self, clock: Clock) -> AsyncIterator[ArchiveReader]:
        """Raises PodlifeError."""
        from podlife.podgc.archive import FolderReader
        from podlife.podgc.archive.s3 import S3Reader

        reader: ArchiveReader = (
            S3Reader(self._s3_client(clock), self.prefix) if self.bucket else FolderReader(self.folder)
        )
        try:
            yield reader
        finally:
            await reader.close()

    def _s3_client(self, clock: Clock) -> S3Client:
        from podlife.podgc.archive.s3_client import S3Client, settings_from

        return S3Client(settings_from(os.environ), self.bucket, clock=clock)


def parse_target(text: str) -> ArchiveTarget:
    """Raises BadParameter."""
    if not text:
        raise typer.BadParameter("--archive is empty: name a folder, or write s3://BUCKET/PREFIX")
    scheme, mark, rest = text.partition("://")
    if not mark:
        if text.strip() != text:
            raise typer.BadParameter(
                f"--archive {text!r} is no folder: name one, or write s3://BUCKET/PREFIX"
            )
        return ArchiveTarget(Path(text).expanduser().absolute())
    bucket, _, prefix = rest.partition("/")
    if scheme != "s3" or not _BUCKET.fullmatch(bucket):
        raise typer.BadParameter(
            f"--archive {text!r} is neither a folder nor a bucket: write s3://BUCKET/PREFIX"
        )
    parts = [part for part in prefix.split("/") if part]
    if any(part in (".", "..") for part in parts) or not prefix.isascii() or not prefix.isprintable():
        raise typer.BadParameter(f"--archive {text!r} has a prefix that cannot be used: write plain letters")
    return ArchiveTarget(bucket=bucket, prefix="/".join(parts))

"""Options of an archive: its location (a directory, or a bucket and prefix), size and retention."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podlife.cli.options import duration_option, not_negative, number_option, option

if TYPE_CHECKING:
    from podlife.client import Client
    from podlife.clock import Clock
    from podlife.podgc.archive import Archive, ArchiveReader, ArchiveStep, LogSettings

ARCHIVE_ENV, ARCHIVE_METAVAR = "PODLIFE_ARCHIVE", "FOLDER|s3://BUCKET/PREFIX"
_MAX_LINES = 100_000
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")


@dataclass(frozen=True, slots=True)
class ArchiveTarget:
    folder: Path = Path()
    bucket: str = ""
    prefix: str = ""

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/") if self.bucket else str(self.folder)

    def open_bucket(self) -> Archive:
        """Raises PodlifeError if credentials are missing, or the configuration is invalid."""
        from podlife.daemons import event_loop
        from podlife.podgc.archive.s3 import S3Archive
        from podlife.podgc.archive.s3_client import S3Client

        archive = S3Archive(S3Client(self.bucket), self.prefix)

        async def check() -> None:
            try:
                await archive.check()
            finally:
                # The event loop that uses it opens it again.
                await archive.close()

        event_loop.run(check())
        return archive

    @asynccontextmanager
    async def reader(self) -> AsyncIterator[ArchiveReader]:
        """Raises PodlifeError."""
        reader = self._reader()
        try:
            yield reader
        finally:
            await reader.close()

    def _reader(self) -> ArchiveReader:
        if not self.bucket:
            from podlife.podgc.archive import FolderReader

            return FolderReader(self.folder)
        from podlife.podgc.archive.s3 import S3Reader
        from podlife.podgc.archive.s3_client import S3Client

        return S3Reader(S3Client(self.bucket), self.prefix)


def parse_target(text: str) -> ArchiveTarget:
    """Raises BadParameter."""
    if not text:
        raise typer.BadParameter("--archive is empty: expected a folder or s3://BUCKET/PREFIX")
    scheme, mark, rest = text.partition("://")
    if not mark:
        if text.strip() != text:
            raise typer.BadParameter(
                f"invalid --archive target {text!r}: expected a folder or s3://BUCKET/PREFIX"
            )
        return ArchiveTarget(Path(text).expanduser().absolute())
    bucket, _, prefix = rest.partition("/")
    if scheme != "s3" or not _BUCKET.fullmatch(bucket):
        raise typer.BadParameter(
            f"invalid --archive target {text!r}: expected a folder or s3://BUCKET/PREFIX"
        )
    parts = [part for part in prefix.split("/") if part]
    if any(part in (".", "..") for part in parts) or not prefix.isascii() or not prefix.isprintable():
        raise typer.BadParameter(
            f"invalid --archive target {text!r}: the prefix must be printable ASCII without . and .. parts"
        )
    return ArchiveTarget(bucket=bucket, prefix="/".join(parts))


def _parse_size(text: str | int) -> int:
    """Bytes, from a Kubernetes quantity such as 1Gi or 500M."""
    from podlife.api.quantity import NANOS, parse_nanos

    if not isinstance(text, str):
        return text
    try:
        size = parse_nanos(text) // NANOS
    except ValueError:
        size = 0
    if size <= 0:
        raise typer.BadParameter(f"invalid size {text!r}: expected 1Gi or 500Mi")
    return size


parse_age = not_negative("age must not be negative")


@dataclass(frozen=True, slots=True)
class Archiving:
    target: ArchiveTarget
    most_bytes: int
    most_age_seconds: float
    log_lines: int

    def open(self, clock: Clock) -> Archive:
        """Open the archive; blocks on disk access. Raises PodlifeError if it cannot be used."""
        from podlife.podgc.archive import ArchiveLimits, FolderArchive

        if self.target.bucket:
            return self.target.open_bucket()
        limits = ArchiveLimits(self.most_bytes, self.most_age_seconds)
        archive = FolderArchive(self.target.folder, limits, clock=clock)
        archive.open()
        return archive

    @property
    def logs(self) -> LogSettings:
        from podlife.podgc.archive import LogSettings

        return LogSettings(lines=self.log_lines)

    def step(self, client: Client, archive: Archive, clock: Clock) -> ArchiveStep:
        from podlife.podgc.archive import ArchiveStep

        return ArchiveStep(client, archive, clock, self.logs)


@dataclass(frozen=True, slots=True)
class ArchiveOptions:
    """Archive pods before deletion; off without --archive."""

    # None is the default; an empty value, such as an unset variable, must not disable archiving.
    archive: Annotated[
        str | None,
        option(
            ARCHIVE_METAVAR,
            "Archive manifest, events and the end of the logs before a pod is deleted; on failure it stays.",
            envvar=ARCHIVE_ENV,
        ),
    ] = None
    archive_max_size: Annotated[
        int | None,
        option(
            "SIZE",
            "Maximum size of the folder; when it is full, pods stay.",
            parser=_parse_size,
            show_default="1Gi",
        ),
    ] = None
    archive_max_age: Annotated[
        float | None,
        duration_option(
            "Remove entries of the folder after this time, and none earlier; 0 keeps all.",
            "720h",
            parser=parse_age,
        ),
    ] = None
    archive_log_lines: Annotated[
        int | None,
        number_option(
            "Maximum number of lines per container log, within 1Mi per pod; 0 keeps none.",
            0,
            _MAX_LINES,
            show_default="100",
        ),
    ] = None

    def archiving(self) -> Archiving | None:
        """None without an archive; raises BadParameter for contradicting options. Opens nothing."""
        given = {
            "--archive-max-size": self.archive_max_size,
            "--archive-max-age": self.archive_max_age,
            "--archive-log-lines": self.archive_log_lines,
        }
        set_options = [name for name, value in given.items() if value is not None]
        if self.archive is None:
            if set_options:
                raise typer.BadParameter(f"{set_options[0]} requires --archive")
            return None
        target = parse_target(self.archive)
        if target.bucket and (for_folders := [name for name in set_options if name != "--archive-log-lines"]):
            raise typer.BadParameter(
                f"{for_folders[0]} applies to folders only: use a lifecycle rule of the bucket"
            )
        return Archiving(
            target,
            1 << 30 if self.archive_max_size is None else self.archive_max_size,
            720 * 3600.0 if self.archive_max_age is None else self.archive_max_age,
            100 if self.archive_log_lines is None else self.archive_log_lines,
        )

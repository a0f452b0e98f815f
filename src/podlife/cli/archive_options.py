"""The options of an archive: where to (a directory, or a bucket and a prefix), how much, for how long; and the step
that follows from them."""

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
_MOST_LINES = 100_000
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
        raise typer.BadParameter("--archive is empty: name a folder, or write s3://BUCKET/PREFIX")
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
    """Bytes, from what Kubernetes reads as a quantity: 1Gi, 500M."""
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
        """The archive, ready for entries. Waits for the disk. Raises PodlifeError when it cannot be used."""
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
    """What is kept of a pod before it is deleted; without --archive, nothing."""

    # None is not said; said and empty, as a script's variable may be, must not delete what was to be kept.
    archive: Annotated[
        str | None,
        option(
            ARCHIVE_METAVAR,
            "Keep manifest, events and the end of the logs there before a pod is deleted; else it stays.",
            envvar=ARCHIVE_ENV,
        ),
    ] = None
    archive_max_size: Annotated[
        int | None,
        option(
            "SIZE",
            "How large the folder may become; when it is full, pods stay.",
            parser=_parse_size,
            show_default="1Gi",
        ),
    ] = None
    archive_max_age: Annotated[
        float | None,
        duration_option(
            "Remove entries of the folder that are older, and none that is younger; 0 keeps all of them.",
            "720h",
            parser=parse_age,
        ),
    ] = None
    archive_log_lines: Annotated[
        int | None,
        number_option(
            "How many lines of each container's log are kept, within 1Mi a pod; 0 keeps none.",
            0,
            _MOST_LINES,
            show_default="100",
        ),
    ] = None

    def archiving(self) -> Archiving | None:
        """What was asked for, None for nothing; raises BadParameter when it contradicts itself. Nothing is opened."""
        given = {
            "--archive-max-size": self.archive_max_size,
            "--archive-max-age": self.archive_max_age,
            "--archive-log-lines": self.archive_log_lines,
        }
        said = [name for name, value in given.items() if value is not None]
        if self.archive is None:
            if said:
                raise typer.BadParameter(
                    f"{said[0]} says nothing without an archive: name one with --archive"
                )
            return None
        target = parse_target(self.archive)
        if target.bucket and (for_folders := [name for name in said if name != "--archive-log-lines"]):
            raise typer.BadParameter(
                f"{for_folders[0]} is for a folder: what stays in a bucket, and how long, is said by its lifecycle rule"
            )
        return Archiving(
            target,
            1 << 30 if self.archive_max_size is None else self.archive_max_size,
            720 * 3600.0 if self.archive_max_age is None else self.archive_max_age,
            100 if self.archive_log_lines is None else self.archive_log_lines,
        )

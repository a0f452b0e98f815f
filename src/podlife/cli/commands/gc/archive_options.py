"""The options of an archive: where to, how much, for how long; and the step that follows from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from podlife.cli.archive_target import ARCHIVE_ENV, ARCHIVE_METAVAR, ArchiveTarget, parse_target
from podlife.cli.options import duration_option, not_negative, number_option, option

if TYPE_CHECKING:
    from podlife.client import Client
    from podlife.clock import Clock
    from podlife.podgc.archive import Archive, ArchiveStep, LogSettings

_MOST_LINES = 100_000


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
        raise typer.BadParameter(f"{text!r} is no size: write it as 1Gi or 500Mi")
    return size


parse_age = not_negative("lies in the future: write how old an entry may become, as 720h")


@dataclass(frozen=True, slots=True)
class Archiving:
    """What was asked for, checked."""

    target: ArchiveTarget
    most_bytes: int
    most_age_seconds: float
    log_lines: int

    def open(self, clock: Clock) -> Archive:
        """The archive, ready for entries. Waits for the disk. Raises PodlifeError when it cannot be used."""
        from podlife.podgc.archive import ArchiveLimits, FolderArchive

        if self.target.bucket:
            return self.target.open_bucket(clock)
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

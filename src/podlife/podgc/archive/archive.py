"""The interface of an archive.

A `put` that returns has made the entry durable. `ArchiveError` means that it has not; its message is one line and the
same for all pods concerned, so that they can be reported together.
"""

from __future__ import annotations

from typing import Protocol

from podlife.errors import PodlifeError
from podlife.podgc.archive.entry import Entry


class ArchiveError(PodlifeError):
    """The archive cannot take or give an entry."""


class Archive(Protocol):
    async def check(self) -> None:
        """Raises ArchiveError where a `put` would surely fail; cheap, asked before anything is read for an entry."""

    async def get(self, namespace: str, name: str, uid: str) -> Entry | None:
        """What is kept of the pod already; None for nothing, or nothing that can be read. Raises ArchiveError."""

    async def put(self, entry: Entry) -> None:
        """Keep the entry, in place of an older one of the same UID. Raises ArchiveError. Bounded in time."""

    async def close(self) -> None: ...

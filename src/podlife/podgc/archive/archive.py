"""The seam of the archive: where the entry of a pod goes before the pod is deleted.

A `put` that comes back has made the entry durable; one that raises `ArchiveError` has not, and its text is the reason
that people read: one line, the same for every pod that it concerns, so that many of them can be told together.
"""

from __future__ import annotations

from typing import Protocol

from podlife.errors import PodlifeError
from podlife.podgc.archive.entry import Entry

__all__ = ["Archive", "ArchiveError"]


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

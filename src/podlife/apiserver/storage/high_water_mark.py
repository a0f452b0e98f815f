"""High-water mark of a store, kept outside of it: reveals commits that are missing at the end of the log.

SQLite ends a write-ahead log at the first frame that does not verify, which is right after a crash and silent after
damage. The mark holds the newest durable revision. It is written after the commit, in place and without fsync: it
survives a crash of the process at once, and a power failure after some seconds. So it may lag behind the log but is
never ahead of it, and a log that ends before its mark has lost acknowledged changes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

_BYTES = 96
# A reader may see a half-written line.
_ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class HighWaterMark:
    """The newest row of the store `identity`: its revision and chain."""

    identity: int
    revision: int
    chain: int

    def to_bytes(self) -> bytes:
        text = b"podlife-store 1 %d %d %d" % (self.identity, self.revision, self.chain)
        return (b"%b %08x" % (text, crc32(text))).ljust(_BYTES - 1) + b"\n"

    @classmethod
    def from_bytes(cls, content: bytes) -> HighWaterMark | None:
        """Parse a mark; None if it is damaged."""
        text, _, checksum = content.rstrip().rpartition(b" ")
        if not text or checksum != b"%08x" % crc32(text):
            return None
        _, _, identity, revision, chain = text.split()
        return cls(int(identity), int(revision), int(chain))


@dataclass(frozen=True, slots=True)
class MarkReading:
    """A mark as read. Without one, missing recent changes cannot be detected; `problem` says why."""

    mark: HighWaterMark | None
    problem: str = ""

    def find_loss(self, identity: int, revision: int, chain_at: Callable[[int], int | None]) -> str:
        """Return the problem that the mark reveals in a log that ends at `revision`; empty if there is none. `chain_at`
        returns the chain of a row, None if the row is gone."""
        mark = self.mark
        if mark is None:
            return ""
        if mark.identity != identity:
            return "the log is of another cluster than this folder"
        if mark.revision > revision:
            return (
                f"the log ends at revision {revision}, but revision {mark.revision} was written: "
                "the newest changes are missing"
            )
        if chain_at(mark.revision) not in (None, mark.chain):
            return f"revision {mark.revision} is not the one that was written: the log is an older copy that went on"
        return ""


def read_mark(path: Path) -> MarkReading:
    try:
        for _ in range(_ATTEMPTS):
            if (mark := HighWaterMark.from_bytes(path.read_bytes())) is not None:
                return MarkReading(mark)
    except FileNotFoundError:
        return MarkReading(None, f"{path} is missing: whether the newest changes are there cannot be shown")
    except OSError as error:
        return MarkReading(None, f"{path} cannot be read: {error.strerror}")
    return MarkReading(None, f"{path} is damaged: whether the newest changes are there cannot be shown")


class MarkFile:
    """The mark of a store that is written to, created if needed."""

    def __init__(self, path: Path, mark: HighWaterMark) -> None:
        self._identity = mark.identity
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(self._file, _BYTES)
            os.pwrite(self._file, mark.to_bytes(), 0)
            # Written in place from here on: the blocks are allocated, and the file never grows.
            os.fsync(self._file)
        except BaseException:
            os.close(self._file)
            raise

    def move(self, revision: int, chain: int) -> None:
        os.pwrite(self._file, HighWaterMark(self._identity, revision, chain).to_bytes(), 0)

    def close(self) -> None:
        try:
            os.fsync(self._file)
        finally:
            os.close(self._file)

"""How far a store had come, noted outside of it: shows commits that are missing at the end of the log.

SQLite ends a write-ahead log at the first frame that does not verify, which is right after a crash and silent after
damage. The mark names the newest durable revision. It is written after the commit, in place and without a wait for
the disk: it survives the end of the process at once and a power failure some seconds later. So it may lag behind
the log and is never ahead of it, and a log that ends before its mark has lost acknowledged changes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

_BYTES = 96
# A reader may meet the writer in the middle of a line.
_ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class Mark:
    """Of the store `identity`: its newest row had this revision and this chain."""

    identity: int
    revision: int
    chain: int

    def to_bytes(self) -> bytes:
        text = b"podlife-store 1 %d %d %d" % (self.identity, self.revision, self.chain)
        return (b"%b %08x" % (text, crc32(text))).ljust(_BYTES - 1) + b"\n"

    @classmethod
    def from_bytes(cls, content: bytes) -> Mark | None:
        """None when it is damaged."""
        text, _, checksum = content.rstrip().rpartition(b" ")
        if not text or checksum != b"%08x" % crc32(text):
            return None
        _, _, identity, revision, chain = text.split()
        return cls(int(identity), int(revision), int(chain))


@dataclass(frozen=True, slots=True)
class MarkReading:
    """What was found of a mark. Without one the newest changes cannot be shown to be there; `problem` says why."""

    mark: Mark | None
    problem: str = ""

    def find_loss(self, identity: int, revision: int, chain_at: Callable[[int], int | None]) -> str:
        """What the mark shows to be wrong with a log that ends at `revision`; empty if nothing is. `chain_at` gives
        the chain of a row, None where the row is no longer there."""
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
            if (mark := Mark.from_bytes(path.read_bytes())) is not None:
                return MarkReading(mark)
    except FileNotFoundError:
        return MarkReading(None, f"{path} is missing: whether the newest changes are there cannot be shown")
    except OSError as error:
        return MarkReading(None, f"{path} cannot be read: {error.strerror}")
    return MarkReading(None, f"{path} is damaged: whether the newest changes are there cannot be shown")


class MarkFile:
    """The mark of a store that is written to, made if need be."""

    def __init__(self, path: Path, mark: Mark) -> None:
        self._identity = mark.identity
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(self._file, _BYTES)
            os.pwrite(self._file, mark.to_bytes(), 0)
            # In place from here on: the bytes are on the disk, and the file never grows.
            os.fsync(self._file)
        except BaseException:
            os.close(self._file)
            raise

    def move(self, revision: int, chain: int) -> None:
        os.pwrite(self._file, Mark(self._identity, revision, chain).to_bytes(), 0)

    def close(self) -> None:
        try:
            os.fsync(self._file)
        finally:
            os.close(self._file)

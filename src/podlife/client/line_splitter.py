"""Splits a byte stream into lines: in linear time however long a line is, and with a bound on its length."""

from __future__ import annotations

from podlife.errors import PodlifeError


class LineTooLongError(PodlifeError):
    """A line went past the bound: whatever sends this is not a watch."""


class LineSplitter:
    """Feed it pieces, get whole lines without their ends; empty lines are left out."""

    def __init__(self, *, most_bytes: int = 32 * 1024 * 1024) -> None:
        self._most_bytes = most_bytes
        # The pieces of the line that is not whole yet. Only a new piece is searched, and they are joined once.
        self._begun: list[bytes] = []
        self._begun_bytes = 0

    def feed(self, piece: bytes) -> list[bytes]:
        """The lines that this piece completes; raises LineTooLongError."""
        head, newline, _ = piece.partition(b"\n")
        if not newline:
            self._keep(piece)
            return []
        self._keep(head)
        lines = [b"".join(self._begun)]
        *whole, rest = piece[len(head) + 1 :].split(b"\n")
        lines += whole
        self._begun, self._begun_bytes = [], 0
        self._keep(rest)
        return [line for line in lines if line and not line.isspace()]

    def rest(self) -> bytes:
        """The incomplete last line."""
        return b"".join(self._begun).strip()

    def _keep(self, part: bytes) -> None:
        self._begun_bytes += len(part)
        if self._begun_bytes > self._most_bytes:
            raise LineTooLongError(f"a line of the stream is longer than {self._most_bytes} bytes")
        if part:
            self._begun.append(part)

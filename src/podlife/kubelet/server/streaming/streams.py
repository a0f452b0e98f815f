"""The streams of a command between its caller and its container, whatever carries them.

The caller sends `StreamMessage`s, and None when it has gone; the command's side writes to `STDOUT`, `STDERR` and, once
and last, `ERROR`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

# The numbers of the WebSocket channels.
STDIN, STDOUT, STDERR, ERROR, RESIZE = range(5)


@dataclass(frozen=True, slots=True)
class StreamMessage:
    """Bytes on one of the caller's streams; none at all when it says nothing more there."""

    stream: int
    data: bytes | None


class CommandStreams(Protocol):
    async def receive(self) -> StreamMessage | None: ...

    async def send(self, stream: int, data: bytes) -> None:
        """Waits while the caller does not read. Raises ConnectionError when it has gone."""

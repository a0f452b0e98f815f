"""The last frames of a stream, numbered, so that a reader that was cut off can go on where it was.

Readers hold cursors, not queues: a frame is kept once for all of them, and the journal is bounded in frames and bytes.
A reader that falls behind it starts again from everything.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from dataclasses import dataclass

_MOST_FRAMES = 4_000
_MOST_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class Frame:
    """`data` is JSON without line breaks."""

    number: int
    event: str
    data: bytes


class Journal:
    def __init__(self, most_frames: int = _MOST_FRAMES, most_bytes: int = _MOST_BYTES) -> None:
        self._most_frames = most_frames
        self._most_bytes = most_bytes
        self._frames: deque[Frame] = deque()
        self._bytes = 0
        # Numbers of another process mean other frames.
        self._epoch = secrets.token_hex(4)
        self._news = asyncio.Event()
        self.last = 0

    def publish(self, event: str, data: bytes) -> None:
        self.last += 1
        # A copy: an encoded object keeps the room that it was written into, up to half as much again.
        self._frames.append(Frame(self.last, event, bytes(memoryview(data))))
        self._bytes += len(data)
        # The newest stays, however large: otherwise every reader would start again at each such frame.
        while len(self._frames) > 1 and (
            len(self._frames) > self._most_frames or self._bytes > self._most_bytes
        ):
            self._bytes -= len(self._frames.popleft().data)
        self._news.set()
        self._news = asyncio.Event()

    def since(self, number: int) -> list[Frame] | None:
        """The frames after this one; None when some of them are not kept any more."""
        if not self.last - len(self._frames) <= number <= self.last:
            return None
        wanted = self.last - number
        return [self._frames[place] for place in range(len(self._frames) - wanted, len(self._frames))]

    async def wait(self) -> None:
        """Until the next frame is published."""
        await self._news.wait()

    def id_of(self, number: int) -> str:
        return f"{self._epoch}-{number}"

    def number_of(self, id_: str) -> int | None:
        """The frame that a reader has seen last; None when it is not one that it can go on from."""
        epoch, _, number = id_.partition("-")
        if epoch != self._epoch or not number.isdecimal() or len(number) > 15:
            return None
        return int(number) if self.since(int(number)) is not None else None

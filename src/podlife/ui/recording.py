"""A history in a file: recorded while a page is served, shown again by `--replay`.

The file is gzip, one JSON object per line: `{"event": …, "data": …}` with the events of the stream. It is private
(0600), flushed every second, bounded, and never overwritten. A life replaces the one before it and contains its own
past, so that a replay needs only the last record of each. What is damaged or cut off is shown up to the damage.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
import os
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import msgspec

from podlife.errors import ConfigError
from podlife.ui.feed import STATUS_SECONDS, VERSION, Feed, completed, encoded_chunks
from podlife.ui.journal import Journal
from podlife.ui.life import OUTCOMES, STATES, Life, NodeLife, PodLife

log = logging.getLogger(__name__)

_FLUSH_SECONDS = 1.0
_MOST_BYTES = 1 << 30
_MOST_LINE = 16 << 20
_MOST_LIVES = 200_000
# Much more than the bounds of a life allow; only a file that was not recorded has larger ones.
_MOST_LIFE = 1 << 20
# Until the end of the year 9999: what a clock can show.
_Time = Annotated[int, msgspec.Meta(ge=0, le=253_402_300_799_999)]


class Recorder:
    """Raises ConfigError for a file that cannot be created."""

    def __init__(self, path: Path, most_bytes: int = _MOST_BYTES) -> None:
        self._path = path
        self._most_bytes = most_bytes
        self._number = 0
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            raise ConfigError(f"cannot record to {path}: the file exists; name another") from None
        except OSError as error:
            raise ConfigError(f"cannot record to {path}: {error.strerror}") from None
        self._file = os.fdopen(descriptor, "wb")
        self._gzip = gzip.GzipFile(filename="", fileobj=self._file, mode="wb", compresslevel=5, mtime=0)

    async def run(self, feed: Feed) -> None:
        """Record until cancelled, or until the disk or the bound is full."""
        try:
            if not feed.is_complete:
                # Ended before that, it is a recording too.
                await self._write_all(feed)
                await completed(feed)
            await self._write_all(feed)
            while self._file.tell() < self._most_bytes:
                self._gzip.flush()
                self._file.flush()
                await asyncio.sleep(_FLUSH_SECONDS)
                if not self._write_news(feed):
                    log.warning("recording to %s fell behind, writing everything again", self._path)
                    await self._write_all(feed)
            log.warning("recording to %s ended: it has %d MiB", self._path, self._most_bytes >> 20)
        except asyncio.CancelledError:
            with suppress(OSError):
                self._write_news(feed)
            raise
        except OSError as error:
            log.warning("recording to %s ended: %s", self._path, error.strerror)
        finally:
            self._close()

    async def _write_all(self, feed: Feed) -> None:
        self._number = feed.journal.last
        self._write("hello", msgspec.json.encode(feed.hello()))
        for chunk in feed.chunks():
            self._write("lives", chunk)
            await asyncio.sleep(0)

    def _write_news(self, feed: Feed) -> bool:
        """Whether all frames since the last call were there."""
        frames = feed.journal.since(self._number)
        for frame in frames or ():
            self._write(frame.event, frame.data)
            self._number = frame.number
        return frames is not None

    def _write(self, event: str, data: bytes) -> None:
        self._gzip.write(b'{"event":"%s","data":%s}\n' % (event.encode(), data))

    def _close(self) -> None:
        try:
            self._gzip.close()
            self._file.close()
        except OSError as error:
            log.warning("recording to %s is incomplete: %s", self._path, error.strerror)


class _Line(msgspec.Struct):
    event: str
    data: msgspec.Raw


class _Kind(msgspec.Struct):
    kind: str


class _Hello(msgspec.Struct):
    version: int
    cluster: str = ""
    started: _Time = 0
    now: _Time = 0
    missing: list[str] = []
    policy: str = ""
    namespace: str = ""


class _Now(msgspec.Struct):
    now: _Time


class Recording:
    """A recorded history as a feed. Raises ConfigError for any other file."""

    def __init__(self, path: Path) -> None:
        self.journal = Journal()
        self.is_complete = True
        self._lives: dict[str, Life] = {}
        self._hello: _Hello | None = None
        self._now = 0
        self._check(path, self._read(path))

    def _check(self, path: Path, damage: str) -> None:
        if self._hello is None:
            raise ConfigError(f"cannot replay {path}: {damage or 'it is empty'}")
        if damage:
            log.warning("%s is shown up to its damage: %s", path, damage)
            self._hello.missing.append(f"the rest of the recording ({damage})")

    def now(self) -> int:
        return self._now

    def hello(self) -> dict[str, Any]:
        known: dict[str, Any] = msgspec.to_builtins(self._hello)
        return {**known, "now": self._now, "mode": "replay", "actions": False}

    def chunks(self) -> Iterator[bytes]:
        return encoded_chunks(list(self._lives), self._lives.get)

    async def run(self) -> None:
        """Send a status at intervals, as a live feed does: a page, and this server, notice that the other is gone."""
        while True:
            missing = self.hello()["missing"]
            status = {"now": self._now, "live": True, "missing": missing}
            self.journal.publish("status", msgspec.json.encode(status))
            await asyncio.sleep(STATUS_SECONDS)

    def _read(self, path: Path) -> str:
        """Why reading stopped early; "" if the file is complete."""
        try:
            with gzip.open(path, "rb") as file:
                left = _MOST_BYTES
                while line := file.readline(_MOST_LINE):
                    left -= len(line)
                    if why := self._take(line) if left >= 0 else "it is larger than any recording":
                        return why
        except (gzip.BadGzipFile, EOFError, zlib.error):
            return "it is damaged, or was not closed"
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def _take(self, line: bytes) -> str:
        try:
            found = msgspec.json.decode(line, type=_Line)
            if found.event == "hello":
                self._hello = msgspec.json.decode(found.data, type=_Hello)
                if self._hello.version != VERSION:
                    version, self._hello = self._hello.version, None
                    return (
                        f"it was recorded in format version {version}, and this podlife replays version {VERSION}: "
                        "use the podlife that recorded it"
                    )
                self._now = max(self._now, self._hello.now)
            elif self._hello is None:
                return "not a recording of podlife ui"
            elif found.event == "lives":
                for each in msgspec.json.decode(found.data, type=list[msgspec.Raw]):
                    self._put(each)
            elif found.event in ("status", "synced"):
                self._now = max(self._now, msgspec.json.decode(found.data, type=_Now).now)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return "a line of it cannot be read"
        return "" if len(self._lives) <= _MOST_LIVES else f"it has more than {_MOST_LIVES} lives"

    def _put(self, raw: msgspec.Raw) -> None:
        """Decoded, so that only valid lives reach the page."""
        if len(memoryview(raw)) > _MOST_LIFE:
            raise msgspec.DecodeError("too large")
        kind = msgspec.json.decode(raw, type=_Kind).kind
        life: Life = msgspec.json.decode(raw, type=NodeLife if kind == "node" else PodLife)
        states, outcomes = {state for _, state in life.segs}, {each.state for each in life.next}
        if not states <= STATES.get(kind, frozenset()) or not outcomes <= OUTCOMES:
            raise msgspec.DecodeError("unknown kind or state")
        self._lives[life.uid] = life

"""What the page is fed with: all lives at first, then the differences.

`LiveFeed` computes and publishes what changed, four times a second, within a share of one core; `recording.Recording`
is the same for a file. A feed sends only what `Lives` holds: it has no model of its own. The first picture is not
published: it may be larger than the journal, and readers wait for it (`completed`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from msgspec import Raw

from podlife.api.codec import encode
from podlife.clock import Clock
from podlife.ui.journal import Journal
from podlife.ui.life import Life, milliseconds
from podlife.ui.lives import Lives
from podlife.ui.observer import Observer

# Of the format of lives and frames. A recording of another version is refused: raise it when a field changes.
VERSION = 2
CHUNK = 500
_TICK_SECONDS = 0.25
# Of each tick, once the first picture is complete: a fifth of a core; more only while very many lives change at once.
_BUDGET_SECONDS, _BURST_SECONDS = 0.05, 0.15
_BATCH, _BURST = 20, 500
STATUS_SECONDS = 5.0


class Feed(Protocol):
    journal: Journal

    @property
    def is_complete(self) -> bool:
        """Whether the picture is complete."""

    def hello(self) -> dict[str, Any]: ...

    def now(self) -> int: ...

    def chunks(self) -> Iterator[bytes]:
        """All lives, as JSON arrays."""


async def completed(feed: Feed) -> None:
    """Wait until the picture is complete."""
    while not feed.is_complete:
        await feed.journal.wait()


class LiveFeed:
    """`about` is what `hello` says of this server besides."""

    def __init__(self, lives: Lives, observer: Observer, clock: Clock, about: dict[str, Any]) -> None:
        self.journal = Journal()
        self._lives = lives
        self._observer = observer
        self._clock = clock
        self._about = about
        self._started = milliseconds(clock.now())
        self.is_complete = False
        self._status: tuple[bool, list[str]] = (False, [])

    def now(self) -> int:
        return milliseconds(self._clock.now())

    def hello(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "mode": "live",
            "started": self._started,
            "now": self.now(),
            "missing": self._observer.missing,
            "namespace": self._observer.namespace,
            **self._about,
        }

    def chunks(self) -> Iterator[bytes]:
        return encoded_chunks(self._lives.uids, self._lives.record)

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        told_at = 0.0
        while not self._observer.has_synced:
            if loop.time() - told_at >= STATUS_SECONDS:
                told_at = loop.time()
                self._tell(is_live=True)
            await asyncio.sleep(_TICK_SECONDS / 5)
        self._listen()
        while self._lives.settle(self._clock.now(), CHUNK):  # noqa: ASYNC110 - it works, others get their turn
            await asyncio.sleep(0)
        self._lives.take_changed()
        self.is_complete = True
        self._tell(is_live=self._observer.is_live)
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            # Of the processor's time: on a busy machine the clock says little about what was done.
            began = time.thread_time()
            self._listen()
            while left := self._lives.settle(self._clock.now(), _BATCH):
                if time.thread_time() - began > (_BURST_SECONDS if left > _BURST else _BUDGET_SECONDS):
                    break
                await asyncio.sleep(0)
            self._publish()
            if self._has_new_status() or loop.time() - told_at >= STATUS_SECONDS:
                told_at = loop.time()
                self._tell(is_live=self._status[0])

    def _listen(self) -> None:
        self._lives.listen(hears=self._observer.hears_leases, now=self._clock.now())

    def _has_new_status(self) -> bool:
        before, self._status = self._status, (self._observer.is_live, self._observer.missing)
        return before != self._status

    def _tell(self, *, is_live: bool) -> None:
        status = {"now": self.now(), "live": is_live, "missing": self._observer.missing}
        self.journal.publish("status", encode(status))

    def _publish(self) -> None:
        for chunk in encoded_chunks(self._lives.take_changed(), self._lives.record):
            self.journal.publish("lives", chunk)
        if forgotten := self._lives.take_forgotten():
            self.journal.publish("forget", encode(forgotten))


def encoded_chunks(uids: Sequence[str], get: Callable[[str], Life | Raw | None]) -> Iterator[bytes]:
    """Lives that have gone meanwhile are left out: the journal has them."""
    for place in range(0, len(uids), CHUNK):
        found = [get(uid) for uid in uids[place : place + CHUNK]]
        yield encode([life for life in found if life is not None])

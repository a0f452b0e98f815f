"""Adaptive limit on the number of requests in flight at one API server.

The core is pure: `step(state, event, now)` returns the next state. `Limiter` is the shell that admits callers in FIFO
order, in the event loop's time.

* The limit grows by one for every round of fast responses, and only while it is fully used.
* It halves on 429, 5xx and timeouts, at most once per round: requests that were in flight when it halved carry no new
  information.
* A Retry-After delays all requests, not only the one that received it.
* A stream (watch, log) releases its slot once it has started.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LimiterSettings:
    initial: int = 16
    least: int = 1
    most: int = 128
    # A slower response does not raise the limit. It is not an error either: a large list may be slow.
    quick_seconds: float = 0.25


_DEFAULTS = LimiterSettings()


@dataclass(frozen=True, slots=True)
class LimiterState:
    """`limit` has a fraction: a round of N responses adds one. `round` counts the halvings."""

    limit: float
    in_flight: int = 0
    paused_until: float = 0.0
    round: int = 0


@dataclass(frozen=True, slots=True)
class Started:
    """A request was admitted."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A request has ended. `round` is that of the state when it started; `retry_after` is the server's."""

    round: int
    seconds: float = 0.0
    is_trouble: bool = False
    retry_after: float = 0.0
    # Cancelled before the server responded: no information.
    is_silent: bool = False


def may_start(state: LimiterState, now: float) -> bool:
    return state.in_flight < int(state.limit) and now >= state.paused_until


def step(
    state: LimiterState, event: Started | Finished, now: float, settings: LimiterSettings | None = None
) -> LimiterState:
    """The state after the event."""
    settings = settings or _DEFAULTS
    # Without `replace`, which costs as much as sending a request, and this runs twice per request.
    if isinstance(event, Started):
        return LimiterState(state.limit, state.in_flight + 1, state.paused_until, state.round)
    limit, round_ = state.limit, state.round
    paused_until = max(state.paused_until, now + event.retry_after if event.retry_after else 0.0)
    if event.is_trouble:
        if event.round >= round_:
            limit, round_ = max(settings.least, limit / 2), round_ + 1
    elif state.in_flight >= int(limit) and not event.is_silent and event.seconds <= settings.quick_seconds:
        limit = min(settings.most, limit + 1 / limit)
    return LimiterState(limit, state.in_flight - 1, paused_until, round_)


class Slot:
    """One request in flight. Without a report from its holder it counts as cancelled."""

    __slots__ = ("is_answered", "is_trouble", "retry_after", "round", "started_at")

    def __init__(self, round_: int, started_at: float) -> None:
        self.round = round_
        self.started_at = started_at
        self.is_answered = False
        self.is_trouble = False
        self.retry_after = 0.0

    def report_answer(self) -> None:
        self.is_answered = True

    def report_trouble(self, *, retry_after: float = 0.0) -> None:
        """The server responded with 429 or 5xx, or not at all."""
        self.is_trouble = True
        self.retry_after = retry_after


class Limiter:
    """One per API server, shared by all its clients."""

    def __init__(self, settings: LimiterSettings | None = None) -> None:
        self._settings = settings or LimiterSettings()
        self._state = LimiterState(limit=self._settings.initial)
        self._waiters: deque[asyncio.Future[int]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def state(self) -> LimiterState:
        return self._state

    @property
    def waiting(self) -> int:
        """Number of waiting callers."""
        return len(self._waiters)

    def enter_at_once(self) -> Slot | None:
        """A slot, if one is free and no caller is waiting. The caller must `leave` it."""
        now = asyncio.get_running_loop().time()
        if self._waiters or not may_start(self._state, now):
            return None
        self._state = step(self._state, Started(), now, self._settings)
        return Slot(self._state.round, now)

    async def enter(self) -> Slot:
        """Wait for a slot. The caller must `leave` it."""
        if (slot := self.enter_at_once()) is not None:
            return slot
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[int] = loop.create_future()
        self._waiters.append(waiter)
        self._admit()
        try:
            return Slot(await waiter, loop.time())
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                # Admitted and cancelled at the same time: the slot goes to the next caller.
                given_up = Finished(waiter.result(), is_silent=True)
                self._state = step(self._state, given_up, loop.time(), self._settings)
            elif waiter in self._waiters:
                self._waiters.remove(waiter)
            self._admit()
            raise

    def leave(self, slot: Slot) -> None:
        now = asyncio.get_running_loop().time()
        seconds, is_silent = now - slot.started_at, not slot.is_answered
        ended = Finished(slot.round, seconds, slot.is_trouble, slot.retry_after, is_silent)
        self._state = step(self._state, ended, now, self._settings)
        self._admit()

    def _admit(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        while self._waiters and may_start(self._state, now):
            waiter = self._waiters.popleft()
            if waiter.done():
                continue
            self._state = step(self._state, Started(), now, self._settings)
            waiter.set_result(self._state.round)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiters and self._state.paused_until > now:
            self._timer = loop.call_at(self._state.paused_until, self._admit)

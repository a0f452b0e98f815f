"""Where the guards stand in a sweep: nobody goes past it who is held, and who must only wait a little does.

A sweep is one pass. For room in the minute it waits if all that is left can go soon, else what is left is told. What
people write on namespaces is read again while it lasts, so that a stop holds it a few seconds later; where that cannot
be read, nobody goes.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable

from podlife.clock import Clock
from podlife.errors import PodlifeError
from podlife.podgc.guards.annotations import Marks
from podlife.podgc.guards.budget import Guard, GuardBook, Moment
from podlife.podgc.guards.controller_gate import may_be_deleted
from podlife.podgc.guards.plan_filter import HeldBack, HeldVictims, admitted
from podlife.podgc.planner import Victim
from podlife.podgc.removal import Removal
from podlife.podgc.views import Pod

__all__ = ["Gate"]

# Longer than this nobody is kept at a terminal.
_MOST_WAITING_SECONDS = 120.0
# How long what was read of the namespaces is believed.
_MARKS_SECONDS = 5.0
# All who wait for it share one answer, and one that does not come.
_TROUBLE_SECONDS = 0.5


class Gate:
    """`wait` waits until a moment of the loop's time, or until the sweep is told to stop; `left` is how many pods are
    still to be dealt with; `read_marks` asks the server, and raises PodlifeError. The book has what it says now."""

    def __init__(
        self,
        book: GuardBook | None,
        clock: Clock,
        *,
        wait: Callable[[float], Awaitable[bool]],
        left: Callable[[], int],
        read_marks: Callable[[], Awaitable[Marks]],
    ) -> None:
        self._book = book
        self._clock = clock
        self._wait = wait
        self._left = left
        self._read_marks = read_marks
        self._marked_at = asyncio.get_running_loop().time() if book is not None else 0.0
        self._marking = asyncio.Lock()
        self._trouble: PodlifeError | None = None
        self._waits: bool | None = None
        self._held = HeldVictims()

    @property
    def held_back(self) -> tuple[HeldBack, ...]:
        return self._held.held_back

    def begin(self) -> None:
        """Others are to be dealt with: whether they are waited for is another question."""
        self._waits = None

    async def admit(self, victim: Victim) -> bool:
        """Whether the victim goes; `note` is to be called then. Raises PodlifeError where nobody can tell."""
        if self._book is None:
            return True
        while True:
            await self._refresh(self._book)
            moment = self._moment()
            refusal = admitted(self._book, victim, moment)
            if refusal is None:
                return True
            if refusal.guard is not Guard.PER_MINUTE or not self._is_short(self._book, moment):
                self._held.note(refusal, victim)
                return False
            if not await self._wait(self._book.next_room_at(moment)):
                return False

    async def last_word(self, victim: Victim) -> str:
        """A step, the last of them: those before it may take long, and a window may have closed meanwhile."""
        if self._book is None:
            return ""
        await self._refresh(self._book)
        refusal = self._book.objection(victim.pod.metadata.namespace, self._moment())
        return "" if refusal is None else refusal.why

    def note(self, pod: Pod, result: Removal | PodlifeError) -> None:
        if self._book is None:
            return
        if may_be_deleted(result):
            self._book.note_deleted(pod.metadata.uid, self._moment())
        else:
            self._book.note_not_deleted(pod.metadata.uid)

    def note_unsent(self, pod: Pod) -> None:
        if self._book is not None:
            self._book.note_not_deleted(pod.metadata.uid)

    async def _refresh(self, book: GuardBook) -> None:
        loop = asyncio.get_running_loop()
        async with self._marking:
            if self._trouble is not None and loop.time() < self._marked_at + _TROUBLE_SECONDS:
                raise self._trouble
            if self._trouble is None and loop.time() < self._marked_at + _MARKS_SECONDS:
                return
            try:
                book.mark(await self._read_marks())
                self._trouble = None
            except PodlifeError as error:
                self._trouble = error
                raise
            finally:
                self._marked_at = loop.time()

    def _is_short(self, book: GuardBook, moment: Moment) -> bool:
        if self._waits is None:
            most = book.guards.per_minute or 1
            minutes = math.ceil((self._left() - book.under_way) / most) - 1
            seconds = book.next_room_at(moment) - moment.at + 60.0 * max(0, minutes)
            self._waits = seconds <= _MOST_WAITING_SECONDS
        return self._waits

    def _moment(self) -> Moment:
        return Moment(asyncio.get_running_loop().time(), self._clock.now())

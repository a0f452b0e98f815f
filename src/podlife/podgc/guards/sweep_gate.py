"""Guards of a one-off sweep: checked before each deletion.

A sweep is one pass. It waits for perMinute if everything that is left can go soon; otherwise the rest is held back. The
annotations of namespaces are read again during the sweep, so that a stop takes effect within seconds; if they cannot be
read, nothing is deleted.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable

from podlife.clock import Clock
from podlife.errors import PodlifeError
from podlife.podgc.guards.budget import DeletionBudget, Moment
from podlife.podgc.guards.controller_gate import may_be_deleted
from podlife.podgc.guards.plan_filter import HeldVictims, admitted
from podlife.podgc.namespace_annotations import GuardAnnotations
from podlife.podgc.plan import Guard, HeldBack, Victim
from podlife.podgc.removal import Removal
from podlife.podgc.views import Pod

# Maximum time to wait for perMinute.
_MOST_WAITING_SECONDS = 120.0
# How long annotations of namespaces are cached.
_ANNOTATIONS_SECONDS = 5.0
# How long a failure to read them is cached: concurrent callers share one answer.
_TROUBLE_SECONDS = 0.5


class SweepGate:
    """`wait` waits until a time of the event loop, or until the sweep is stopped, and returns whether to go on; `left`
    is the number of pods still to be handled; `read_annotations` asks the server and raises PodlifeError."""

    def __init__(
        self,
        budget: DeletionBudget | None,
        clock: Clock,
        *,
        wait: Callable[[float], Awaitable[bool]],
        left: Callable[[], int],
        read_annotations: Callable[[], Awaitable[GuardAnnotations]],
    ) -> None:
        self._budget = budget
        self._clock = clock
        self._wait = wait
        self._left = left
        self._read_annotations = read_annotations
        self._read_at = asyncio.get_running_loop().time() if budget is not None else 0.0
        self._reading = asyncio.Lock()
        self._trouble: PodlifeError | None = None
        self._waits: bool | None = None
        self._held = HeldVictims()

    @property
    def held_back(self) -> tuple[HeldBack, ...]:
        return self._held.held_back

    def begin(self) -> None:
        """A new batch begins: whether to wait for perMinute is decided again."""
        self._waits = None

    async def admit(self, victim: Victim) -> bool:
        """Whether the victim may go; if so, call `note` afterwards. Raises PodlifeError if annotations cannot be
        read."""
        if self._budget is None:
            return True
        while True:
            await self._refresh(self._budget)
            moment = self._moment()
            refusal = admitted(self._budget, victim, moment)
            if refusal is None:
                return True
            if refusal.guard is not Guard.PER_MINUTE or not self._is_short(self._budget, moment):
                self._held.note(refusal, victim)
                return False
            if not await self._wait(self._budget.next_room_at(moment)):
                return False

    async def recheck(self, victim: Victim) -> str:
        """The last pre-delete step: earlier ones may take long, and a window may have closed meanwhile."""
        if self._budget is None:
            return ""
        await self._refresh(self._budget)
        refusal = self._budget.objection(victim.pod.metadata.namespace, self._moment())
        return "" if refusal is None else refusal.why

    def note(self, pod: Pod, result: Removal | PodlifeError) -> None:
        if self._budget is None:
            return
        if may_be_deleted(result):
            self._budget.note_deleted(pod.metadata.uid, self._moment())
        else:
            self._budget.note_not_deleted(pod.metadata.uid)

    def note_unsent(self, pod: Pod) -> None:
        if self._budget is not None:
            self._budget.note_not_deleted(pod.metadata.uid)

    async def _refresh(self, budget: DeletionBudget) -> None:
        loop = asyncio.get_running_loop()
        async with self._reading:
            if self._trouble is not None and loop.time() < self._read_at + _TROUBLE_SECONDS:
                raise self._trouble
            if self._trouble is None and loop.time() < self._read_at + _ANNOTATIONS_SECONDS:
                return
            try:
                budget.set_annotations(await self._read_annotations())
                self._trouble = None
            except PodlifeError as error:
                self._trouble = error
                raise
            finally:
                self._read_at = loop.time()

    def _is_short(self, budget: DeletionBudget, moment: Moment) -> bool:
        if self._waits is None:
            most = budget.guards.per_minute or 1
            minutes = math.ceil((self._left() - budget.under_way) / most) - 1
            seconds = budget.next_room_at(moment) - moment.at + 60.0 * max(0, minutes)
            self._waits = seconds <= _MOST_WAITING_SECONDS
        return self._waits

    def _moment(self) -> Moment:
        return Moment(asyncio.get_running_loop().time(), self._clock.now())

"""One-off collection: plan, then execute.

This is the only way to plan or sweep once: `Collector.plan_once` and `sweep_once`, `podlife gc plan` and `podlife gc
sweep` all use it. `plan` lists everything and applies the policy, the owner wait and the guards, in that order.
`execute` always plans again, so it acts on the current state; a plan that a person has confirmed only limits what it
may delete.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from podlife.client import Client, WithdrawnError
from podlife.clock import Clock, SystemClock
from podlife.podgc import planner as policy
from podlife.podgc.guards.budget import Moment
from podlife.podgc.guards.plan_filter import census_of, going, hold_back
from podlife.podgc.owner_wait.plan_filter import set_waiting_apart
from podlife.podgc.planner import Plan, Victim, due_now
from podlife.podgc.removal import Removal
from podlife.podgc.settings import Selection, Settings
from podlife.podgc.snapshot import chooser, read_index
from podlife.podgc.steps import Step
from podlife.podgc.sweep import Progress, Summary, Sweep
from podlife.podgc.views import Pod


class GcSession:
    """`selection` limits the plan to some of the collectable pods. `steps` (an archive, for example) run before each
    deletion, after the owner wait. `report` is called for every victim that was handled. Call `execute` only once."""

    def __init__(
        self,
        client: Client,
        settings: Settings | None = None,
        *,
        selection: Selection | None = None,
        clock: Clock | None = None,
        steps: Sequence[Step] = (),
        report: Callable[[Victim, Removal], None] | None = None,
    ) -> None:
        self._client = client
        self._settings = settings or Settings()
        self._selection = selection or Selection()
        self._clock = clock or SystemClock()
        self._sweep = Sweep(client, self._settings, self._clock, report=report, steps=steps)
        self._planning: asyncio.Timeout | None = None
        self._is_stopped = False
        self.has_begun = False

    @property
    def summary(self) -> Summary:
        """The results of `execute` so far."""
        return self._sweep.summary

    async def plan(self) -> Plan:
        """What would be collected now, what guards hold back, and what comes next. Read-only. Raises ApiError or
        UnreachableError."""
        return self._guarded(await self.candidates())

    async def candidates(self) -> Plan:
        """The plan before guards are applied."""
        index = await read_index(self._client, self._settings)
        index.pass_time(self._clock.now())
        now = asyncio.get_running_loop().time()
        plan = policy.plan(index, self._settings, now)
        if self._settings.guards is not None:
            plan = replace(plan, census=census_of(index))
        is_meant = await chooser(self._client, self._selection)
        plan = policy.part_of(plan, is_meant)
        plan = await set_waiting_apart(plan, self._client, self._settings, self._clock)
        if waiting := {each.victim.pod.metadata.uid for each in plan.waiting}:
            # Once its node is confirmed gone, a pod is collected as an orphan, without the owner wait.
            later = policy.in_quarantine(index, self._settings, now, waiting)
            plan = policy.part_of(replace(plan, later=tuple(later)), is_meant)
        return due_now(plan, self._settings)

    async def execute(
        self, agreed: Plan | None = None, on_progress: Callable[[Progress], None] | None = None
    ) -> Summary:
        """Make a new plan and remove its victims; with a confirmed plan, only those in both. Raises what `plan` raises,
        and WithdrawnError if `stop` was called before the new plan was ready."""
        plan = await self._planned(agreed)
        self.has_begun = True
        return await self._sweep.run(plan, on_progress)

    def stop(self) -> None:
        """Send no more requests; `execute` returns when those in flight are answered."""
        self._is_stopped = True
        self._sweep.stop()
        if self._planning is not None:
            self._planning.reschedule(asyncio.get_running_loop().time())

    async def _planned(self, agreed: Plan | None) -> Plan:
        stopped = WithdrawnError("stopped before anything was deleted")
        if self._is_stopped:
            raise stopped
        try:
            # Listing may take long and changes nothing, so a stop cancels it.
            async with asyncio.timeout(None) as self._planning:
                found = await self.candidates()
        except TimeoutError:
            raise stopped from None
        finally:
            self._planning = None
        return self._guarded(found) if agreed is None else self._agreed(found, agreed)

    def _agreed(self, found: Plan, agreed: Plan) -> Plan:
        """Pods shown as held back were not confirmed, even if no guard holds them any more. The exception is perMinute:
        a sweep waits for it."""
        held = [each for each in agreed.held_back if not each.is_for_a_minute]
        uids = {pod.metadata.uid for pod in going(agreed)}
        plan = self._guarded(found, lambda pod: pod.metadata.uid in uids)
        return replace(plan, held_back=(*held, *plan.held_back))

    def _guarded(self, plan: Plan, is_meant: Callable[[Pod], bool] = lambda pod: True) -> Plan:
        moment = Moment(asyncio.get_running_loop().time(), self._clock.now())
        return hold_back(plan, self._settings, moment, is_meant)

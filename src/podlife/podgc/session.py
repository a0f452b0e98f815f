"""Collecting once: what would go, and making it go.

There is one way to a plan, and nothing is done without one: `plan` lists everything and asks the policy, the owners
and the guards, in the order in which they hold. `execute` makes such a plan of its own, so that what it does is
decided on what is there now; a plan that somebody has agreed to only bounds it. `Collector.plan_once` and `sweep_once`,
`podlife gc plan` and `podlife gc sweep` are this.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from podlife.client import Client, WithdrawnError
from podlife.clock import Clock, SystemClock
from podlife.podgc import policy
from podlife.podgc.listing import chooser, read_index
from podlife.podgc.policies.guards import Moment
from podlife.podgc.policies.guards_plan import census_of, going, hold_back
from podlife.podgc.policies.owner_plan import set_waiting_apart
from podlife.podgc.policy import Plan, Victim, due_now
from podlife.podgc.removal import Removal
from podlife.podgc.settings import Selection, Settings
from podlife.podgc.steps import Step
from podlife.podgc.sweep import Progress, Summary, Sweep
from podlife.podgc.views import Pod


class GcSession:
    """`selection` says which of the pods that are to be collected are meant; `steps` come before each deletion (an
    archive), after the wait for owners; `report` is called for every victim that was dealt with. `execute` once."""

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
        """What has come of `execute` so far."""
        return self._sweep.summary

    async def plan(self) -> Plan:
        """What would be collected now, what is held back of that, and what comes next. Changes nothing. Raises ApiError
        or UnreachableError."""
        return self._guarded(await self.candidates())

    async def candidates(self) -> Plan:
        """The plan as if there were no guards."""
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
            # For nodes that are gone nobody waits for an owner.
            later = policy.in_quarantine(index, self._settings, now, waiting)
            plan = policy.part_of(replace(plan, later=tuple(later)), is_meant)
        return due_now(plan, self._settings)

    async def execute(
        self, agreed: Plan | None = None, on_progress: Callable[[Progress], None] | None = None
    ) -> Summary:
        """Collect what a plan that is made now says; with one that was agreed to, only what that says too. Raises what
        `plan` raises, and WithdrawnError when it was stopped before it had begun."""
        plan = await self._planned(agreed)
        self.has_begun = True
        return await self._sweep.run(plan, on_progress)

    def stop(self) -> None:
        """Send nothing more: `execute` comes back when the calls on the wire are answered."""
        self._is_stopped = True
        self._sweep.stop()
        if self._planning is not None:
            self._planning.reschedule(asyncio.get_running_loop().time())

    async def _planned(self, agreed: Plan | None) -> Plan:
        stopped = WithdrawnError("it was stopped before anything was deleted")
        if self._is_stopped:
            raise stopped
        try:
            # A list takes long, and nothing is lost with it: it is not waited for.
            async with asyncio.timeout(None) as self._planning:
                found = await self.candidates()
        except TimeoutError:
            raise stopped from None
        finally:
            self._planning = None
        return self._guarded(found) if agreed is None else self._agreed(found, agreed)

    def _agreed(self, found: Plan, agreed: Plan) -> Plan:
        """What was held back is not agreed to, also if nothing holds it any more; but for room in the minute."""
        held = [each for each in agreed.held_back if not each.is_for_a_minute]
        uids = {pod.metadata.uid for pod in going(agreed)}
        plan = self._guarded(found, lambda pod: pod.metadata.uid in uids)
        return replace(plan, held_back=(*held, *plan.held_back))

    def _guarded(self, plan: Plan, is_meant: Callable[[Pod], bool] = lambda pod: True) -> Plan:
        moment = Moment(asyncio.get_running_loop().time(), self._clock.now())
        return hold_back(plan, self._settings, moment, is_meant)

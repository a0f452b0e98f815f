"""One-off collection: plan, confirm, execute.

    session = GcSession(client, settings, phases=[Deletions(), Finalizers(names)])
    plan = await session.plan()
    summary = await session.execute(plan)

This is the only way to plan or sweep once: `Collector.plan_once` and `sweep_once`, `podlife gc plan` and `podlife gc
sweep` all use it. `plan` is read-only. `execute` plans again, so it acts on the current state; a confirmed plan only
limits what it may change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from podlife.client import Client, WithdrawnError
from podlife.clock import Clock, SystemClock
from podlife.podgc import planner
from podlife.podgc.guards.budget import Moment
from podlife.podgc.guards.plan_filter import census_of, going, hold_back
from podlife.podgc.owner_wait.step import set_waiting_apart
from podlife.podgc.plan import Plan, Victim
from podlife.podgc.reasons import Reason
from podlife.podgc.removal import PreDeleteStep, Removal
from podlife.podgc.settings import Selection, Settings
from podlife.podgc.snapshot import chooser, read_index
from podlife.podgc.summary import Progress, Summary
from podlife.podgc.sweep import Sweep
from podlife.podgc.views import Pod

OnProgress = Callable[[Progress], None]


class Phase(Protocol):
    """A part of one session. Phases plan and execute in the order in which the session lists them."""

    async def plan(self, session: GcSession, plan: Plan) -> Plan:
        """Add to the plan what this phase would do. Read-only. Raises ApiError or UnreachableError."""

    async def prepare(self, session: GcSession) -> None:
        """Called for every phase before the first one executes. Raises ApiError or UnreachableError."""

    async def execute(
        self, session: GcSession, confirmed: Plan | None, on_progress: OnProgress | None
    ) -> None:
        """Act, and note the results in the session's summary; with a confirmed plan, only on what it contains."""

    def stop(self) -> None:
        """Send no more requests."""


class GcSession:
    """`selection` limits the session to some of the collectable pods. `steps` (an archive, for example) run before each
    deletion, after the owner wait. `summary` has the results of `execute` so far."""

    def __init__(
        self,
        client: Client,
        settings: Settings | None = None,
        *,
        phases: Sequence[Phase] = (),
        selection: Selection | None = None,
        clock: Clock | None = None,
        steps: Sequence[PreDeleteStep] = (),
    ) -> None:
        self.client = client
        self.settings = settings or Settings()
        self.selection = selection or Selection()
        self.clock = clock or SystemClock()
        self.steps = steps
        self.summary = Summary()
        self._phases = phases or (Deletions(),)
        self._is_stopped = self._is_executed = False

    async def plan(self) -> Plan:
        """What would be collected now, what guards hold back, and what comes next. Read-only. Raises ApiError or
        UnreachableError."""
        plan = Plan()
        for phase in self._phases:
            plan = await phase.plan(self, plan)
        return plan

    async def execute(self, confirmed: Plan | None = None, on_progress: OnProgress | None = None) -> Summary:
        """Plan again and carry it out; with a confirmed plan, only what is in both. Raises what `plan` raises,
        WithdrawnError if `stop` was called before anything was deleted, and RuntimeError when called twice."""
        if self._is_executed:
            raise RuntimeError("a GcSession can be executed only once: create a new one")
        self._is_executed = True
        if self._is_stopped:
            raise WithdrawnError("stopped before anything was deleted")
        for phase in self._phases:
            await phase.prepare(self)
        for phase in self._phases:
            await phase.execute(self, confirmed, on_progress)
        return self.summary

    def stop(self) -> None:
        """Send no more requests; `execute` returns when those in flight are answered."""
        self._is_stopped = True
        for phase in self._phases:
            phase.stop()


class Deletions:
    """Deletes the pods that the planner selects, as far as the owner wait and the guards allow, in that order. `report`
    is called for every victim that was handled."""

    def __init__(self, report: Callable[[Victim, Removal], None] | None = None) -> None:
        self._report = report
        self._sweep: Sweep | None = None
        self._planning: asyncio.Timeout | None = None
        self._is_stopped = False

    async def plan(self, session: GcSession, plan: Plan) -> Plan:
        return replace(_guarded(session, await candidates(session)), finalizers=plan.finalizers)

    async def prepare(self, session: GcSession) -> None:
        self._sweep = Sweep(
            session.client,
            session.settings,
            session.clock,
            session.summary,
            report=self._report,
            steps=session.steps,
        )

    async def execute(
        self, session: GcSession, confirmed: Plan | None, on_progress: OnProgress | None
    ) -> None:
        assert self._sweep is not None, "prepare comes first"
        found = await self._planned(session)
        plan = _guarded(session, found) if confirmed is None else _confirmed(session, found, confirmed)
        session.summary.has_begun = True
        await self._sweep.run(plan, on_progress)

    def stop(self) -> None:
        self._is_stopped = True
        if self._sweep is not None:
            self._sweep.stop()
        if self._planning is not None:
            self._planning.reschedule(asyncio.get_running_loop().time())

    async def _planned(self, session: GcSession) -> Plan:
        stopped = WithdrawnError("stopped before anything was deleted")
        if self._is_stopped:
            raise stopped
        try:
            # Listing may take long and changes nothing, so a stop cancels it.
            async with asyncio.timeout(None) as self._planning:
                return await candidates(session)
        except TimeoutError:
            raise stopped from None
        finally:
            self._planning = None


async def candidates(session: GcSession) -> Plan:
    """The plan before guards are applied."""
    settings, where = session.settings, ""
    if session.selection.reads_namespace_only:
        # Without nodes every pod would look like an orphan.
        where = session.selection.namespace
        settings = replace(settings, collect=settings.collect - {Reason.ORPHANED, Reason.OUT_OF_SERVICE})
    index = await read_index(session.client, settings, where)
    index.pass_time(session.clock.now())
    now = asyncio.get_running_loop().time()
    plan = planner.plan(index, settings, now)
    if settings.guards is not None:
        plan = replace(plan, census=census_of(index))
    is_meant = await chooser(session.client, session.selection)
    plan = planner.part_of(plan, is_meant)
    plan = await set_waiting_apart(plan, session.client, settings, session.clock)
    if waiting := {each.victim.pod.metadata.uid for each in plan.waiting}:
        # Once its node is confirmed gone, a pod is collected as an orphan, without the owner wait.
        later = planner.in_quarantine(index, settings, now, waiting)
        plan = planner.part_of(replace(plan, later=tuple(later)), is_meant)
    return planner.due_now(plan, settings)


def _guarded(session: GcSession, plan: Plan, is_meant: Callable[[Pod], bool] = lambda pod: True) -> Plan:
    moment = Moment(asyncio.get_running_loop().time(), session.clock.now())
    return hold_back(plan, session.settings, moment, is_meant)


def _confirmed(session: GcSession, found: Plan, confirmed: Plan) -> Plan:
    """Pods shown as held back were not confirmed, even if no guard holds them now. The exception is perMinute: a
    sweep waits for it."""
    held = [each for each in confirmed.held_back if not each.is_for_a_minute]
    uids = {pod.metadata.uid for pod in going(confirmed)}
    plan = _guarded(session, found, lambda pod: pod.metadata.uid in uids)
    return replace(plan, held_back=(*held, *plan.held_back))

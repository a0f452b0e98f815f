"""Execution of one plan: removes its victims and summarizes the results.

No state is kept, so a killed sweep can simply be started again. A missing node was first seen by the list behind the
plan, so the sweep waits for its quarantine at the end and then asks the server for the node. Transient failures are
retried a few times, others are reported. `stop` sends nothing more: requests in flight finish, waiting ones are not
sent, and the rest is counted as left.

`session` decides what goes, guards included. Guards are checked again before each deletion, for what changed since.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from podlife.aio import wait_until_set
from podlife.api.views import MetadataOnly
from podlife.client import NODES, Client, WithdrawnError
from podlife.client.retry import backoff_seconds, is_transient
from podlife.clock import Clock
from podlife.errors import NotFoundError, PodlifeError
from podlife.podgc import planner
from podlife.podgc.effective_settings import pod_view, reason_to_keep
from podlife.podgc.guards.budget import DeletionBudget, Moment
from podlife.podgc.guards.plan_filter import budget_for
from podlife.podgc.guards.sweep_gate import SweepGate
from podlife.podgc.namespace_annotations import GuardAnnotations, annotations_of
from podlife.podgc.owner_wait.step import OwnerStep
from podlife.podgc.plan import Later, Plan, Victim
from podlife.podgc.reasons import Reason
from podlife.podgc.removal import Outcome, PreDeleteStep, Removal, remove
from podlife.podgc.settings import Settings
from podlife.podgc.snapshot import find_pod, list_namespaces
from podlife.podgc.summary import Failure, Progress, Summary
from podlife.podgc.views import Pod
from podlife.podgc.worker_pool import for_each

_MOST_TRIES = 4


class Sweep:
    """`report` is called for every victim that was handled."""

    def __init__(
        self,
        client: Client,
        settings: Settings,
        clock: Clock,
        summary: Summary,
        *,
        report: Callable[[Victim, Removal], None] | None = None,
        steps: Sequence[PreDeleteStep] = (),
    ) -> None:
        # `stop` withdraws the requests of this sweep only; other users of the client go on.
        self._client = client.apart()
        self._settings = settings
        self._clock = clock
        self._is_stopping = asyncio.Event()
        self._for_each = partial(for_each, at_once=settings.most_in_flight, stopping=self._is_stopping)
        # The owner wait comes first: a pod that waits is not archived yet.
        self._steps = (OwnerStep(self._client, lambda: settings.policy, clock), *steps)
        self._report = report or (lambda victim, removal: None)
        self._on_progress: Callable[[Progress], None] = lambda progress: None
        self._progress = Progress()
        self._summary = summary
        self._gate = self._gate_with(None)

    def stop(self) -> None:
        """Send no more requests; `run` returns when those in flight are answered."""
        if not self._is_stopping.is_set():
            self._is_stopping.set()
            self._client.withdraw()
            self._report_progress(is_stopping=True)

    async def run(self, plan: Plan, on_progress: Callable[[Progress], None] | None = None) -> None:
        """Remove the victims of a plan that was made just before."""
        self._on_progress = on_progress or self._on_progress
        started = asyncio.get_running_loop().time()
        self._gate = self._gate_with(budget_for(self._settings, plan, Moment(started, self._clock.now())))
        self._summary.waiting, self._summary.terminated = plan.waiting, plan.terminated
        held = [each for each in plan.held_back if not each.is_for_a_minute]
        try:
            await self._carry_out(plan, started)
        finally:
            self._summary.held_back = [*held, *self._gate.held_back]

    def _gate_with(self, budget: DeletionBudget | None) -> SweepGate:
        return SweepGate(
            budget,
            self._clock,
            wait=self._wait_for_room,
            left=lambda: self._still_to_do,
            read_annotations=self._read_annotations,
        )

    async def _read_annotations(self) -> GuardAnnotations:
        return annotations_of(await list_namespaces(self._client))

    async def _carry_out(self, plan: Plan, started: float) -> None:
        # Pods held by perMinute only have to wait; the gate decides whether that is short enough.
        waiting = (victim for each in plan.held_back if each.is_for_a_minute for victim in each.victims)
        victims = [*plan.victims, *waiting]
        await self._remove_all([victim for victim in victims if victim.reason is not Reason.ORPHANED])
        if later := [*_due(victims), *plan.later]:
            pods = sum(len(each.pods) for each in later)
            self._summary.has_waited = bool(plan.later)
            await self._wait_until(started + max(each.seconds for each in later), pods)
            if self._is_stopping.is_set():
                self._summary.left += pods
            else:
                await self._remove_all(await self._orphans(later))

    def _report_progress(self, **changes: float | bool) -> None:
        self._progress = replace(self._progress, **changes)  # type: ignore[arg-type]
        self._on_progress(self._progress)

    @property
    def _still_to_do(self) -> int:
        return self._progress.total - self._progress.done

    async def _wait_for_room(self, until: float) -> bool:
        """Returns whether the sweep may go on."""
        await self._wait_until(until, self._still_to_do, is_minute=True)
        return not self._is_stopping.is_set()

    async def _wait_until(self, until: float, pods: int, *, is_minute: bool = False) -> None:
        loop = asyncio.get_running_loop()
        while (left := until - loop.time()) > 0 and not self._is_stopping.is_set():
            self._report_progress(waiting_seconds=left, waiting_pods=pods, is_minute=is_minute)
            await wait_until_set(self._is_stopping, seconds=min(1.0, left))
        self._report_progress(waiting_seconds=0.0, waiting_pods=0, is_minute=False)

    async def _orphans(self, missing: Sequence[Later]) -> list[Victim]:
        """Ask the server for each node before its pods count as orphans (GC-52)."""
        orphans: list[Victim] = []
        undecided = {later.node: len(later.pods) for later in missing}

        async def check(later: Later) -> None:
            try:
                await self._client.get(NODES, later.node, view=MetadataOnly)
            except WithdrawnError:
                return
            except PodlifeError as error:
                if isinstance(error, NotFoundError) and error.is_about(later.node):
                    why = f"node {later.node} no longer exists"
                    orphans.extend(
                        planner.victim_for(self._settings, pod, later.reason, why) for pod in later.pods
                    )
                else:
                    self._summary.unknown_nodes[later.node] = error
            del undecided[later.node]

        await self._for_each(missing, check)
        self._summary.left += sum(undecided.values())
        return orphans

    async def _remove_all(self, victims: Sequence[Victim]) -> None:
        self._report_progress(total=self._progress.total + len(victims))
        self._gate.begin()
        # Not in one statement: the workers change `left` meanwhile.
        not_begun = await self._for_each(victims, self._remove)
        self._summary.left += not_begun

    async def _remove(self, victim: Victim) -> None:
        for failures in range(1, _MOST_TRIES + 1):
            try:
                if not await self._gate.admit(victim):
                    self._leave()
                    return
                removal = await self._try(victim)
            except WithdrawnError:
                self._gate.note_unsent(victim.pod)
                self._summary.left += 1
                return
            except PodlifeError as error:
                if failures == _MOST_TRIES or not is_transient(error) or self._is_stopping.is_set():
                    self._gate.note(victim.pod, error)
                    self._summary.failures.append(Failure(victim, error))
                    self._report_progress(done=self._progress.done + 1, failed=self._progress.failed + 1)
                    return
                await wait_until_set(self._is_stopping, seconds=backoff_seconds(failures))
            else:
                self._gate.note(victim.pod, removal)
                self._summary.outcomes[removal.outcome] += 1
                self._report(victim, removal)
                self._report_progress(done=self._progress.done + 1)
                return

    def _leave(self) -> None:
        """Count a pod that a guard holds, which the gate has recorded, or that a stop leaves."""
        if self._is_stopping.is_set():
            self._summary.left += 1
        else:
            self._report_progress(done=self._progress.done + 1)

    async def _try(self, victim: Victim) -> Removal:
        """Remove the victim as the server holds it now, if it has changed since the list."""
        while True:
            steps = (*self._steps, self._gate.recheck)
            removal = await remove(self._client, victim, self._settings.gates, self._clock, steps)
            if removal.outcome is not Outcome.CHANGED:
                return removal
            metadata, view = victim.pod.metadata, pod_view(self._settings)
            pod = await find_pod(self._client, metadata.namespace, metadata.name, view=view)
            if pod is None:
                return Removal(Outcome.GONE)
            if pod.metadata.uid != metadata.uid:
                return Removal(Outcome.REPLACED)
            if why := reason_to_keep(self._settings, victim, pod, self._clock.now()):
                return Removal(Outcome.KEPT, why=why)
            victim = planner.victim_for(self._settings, pod, victim.reason, victim.why, victim.rule)


def _due(victims: Iterable[Victim]) -> list[Later]:
    """Orphans without a quarantine, by node: the server is asked for the node first (GC-52)."""
    pods: dict[str, list[Pod]] = {}
    for victim in victims:
        if victim.reason is Reason.ORPHANED:
            pods.setdefault(victim.pod.spec.node_name, []).append(victim.pod)
    return [Later(node, tuple(found), Reason.ORPHANED, 0.0, "") for node, found in pods.items()]

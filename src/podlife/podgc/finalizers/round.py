"""One-off removal of finalizers from held pods, alone and as a phase of a session.

A node must be missing for a quarantine first, as for orphans: a single list does not show since when it is missing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from podlife.aio import wait_until_set
from podlife.client import Client
from podlife.clock import Clock
from podlife.errors import PodlifeError
from podlife.podgc.finalizers.held_pods import held_pods, read_nodes
from podlife.podgc.finalizers.remover import FinalizerRemover
from podlife.podgc.guards.plan_filter import going
from podlife.podgc.namespace_annotations import GuardAnnotations, annotations_of
from podlife.podgc.plan import HeldPod, NodeState, Plan
from podlife.podgc.session import GcSession, OnProgress
from podlife.podgc.settings import Selection
from podlife.podgc.snapshot import list_namespaces
from podlife.podgc.summary import FinalizerRemoval, FinalizerSummary
from podlife.podgc.worker_pool import for_each

_MOST_AT_ONCE = 16


class FinalizerRound:
    """`begin` lists the nodes and starts the quarantine; `run` waits for its end."""

    def __init__(
        self, client: Client, clock: Clock, remover: FinalizerRemover, *, quarantine_seconds: float
    ) -> None:
        self._client = client
        self._clock = clock
        self._remover = remover
        self._quarantine_seconds = quarantine_seconds
        self._nodes: frozenset[str] = frozenset()
        self._began = 0.0
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Start no more pods."""
        self._stopping.set()

    async def begin(self) -> None:
        self._nodes = await read_nodes(self._client)
        self._began = asyncio.get_running_loop().time()

    async def chosen(self, selection: Selection | None = None) -> list[HeldPod]:
        """Held pods with an allowed finalizer whose node does not exist."""
        meant = selection or Selection()
        held = await held_pods(
            self._client, self._clock.now(), meant.namespace, label_selector=meant.label_selector
        )
        return [pod for pod in held if pod.node_state is NodeState.GONE and self._is_allowed(pod)]

    def _is_allowed(self, pod: HeldPod) -> bool:
        return any(each.name in self._remover.allowed for each in pod.finalizers)

    async def run(
        self, pods: Sequence[HeldPod], report: Callable[[FinalizerRemoval], None] | None = None
    ) -> FinalizerSummary:
        """`report` is called for every pod from which a finalizer was removed."""
        result = FinalizerSummary()
        ready = []
        for pod in pods:
            if why := self._reason_not_to_begin(pod):
                result.kept.append(FinalizerRemoval(pod.namespace, pod.name, pod.node, why=why))
            else:
                ready.append(pod)
        left = self._began + self._quarantine_seconds - asyncio.get_running_loop().time()
        if ready and left > 0:
            await wait_until_set(self._stopping, seconds=left)

        async def take(pod: HeldPod) -> None:
            await self._take(pod, result, report)

        result.left = await for_each(ready, take, at_once=_MOST_AT_ONCE, stopping=self._stopping)
        return result

    def _reason_not_to_begin(self, pod: HeldPod) -> str:
        """What is known without waiting for the quarantine."""
        if not self._is_allowed(pod):
            names = ", ".join(each.name for each in pod.finalizers)
            return f"none of its finalizers ({names}) is allowed to be removed"
        if not pod.node:
            return "the pod was never scheduled"
        if pod.node_state is NodeState.THERE:
            return f"node {pod.node} exists: the owner of the finalizer may still be working"
        if pod.node in self._nodes:
            return f"node {pod.node} has not been missing for {self._quarantine_seconds:g} s yet"
        return ""

    async def _take(
        self, pod: HeldPod, result: FinalizerSummary, report: Callable[[FinalizerRemoval], None] | None
    ) -> None:
        try:
            taken = await self._remover.remove(pod)
        except PodlifeError as error:
            result.failures.append((pod, error))
            return
        if taken.why:
            result.kept.append(taken)
            return
        result.done.append(taken)
        if report is not None and taken.taken:
            report(taken)


class Finalizers:
    """Removes these finalizers from deleted pods whose node no longer exists. The quarantine of missing nodes runs
    while earlier phases execute. A confirmed plan confirms the pods that it shows, and those whose deletion it
    confirms. `report` is called for every pod from which a finalizer was removed."""

    def __init__(
        self, allowed: frozenset[str], report: Callable[[FinalizerRemoval], None] | None = None
    ) -> None:
        self._allowed = allowed
        self._report = report
        self._round: FinalizerRound | None = None

    async def plan(self, session: GcSession, plan: Plan) -> Plan:
        found = await self._new_round(session, GuardAnnotations()).chosen(session.selection)
        return replace(plan, finalizers=tuple(found))

    async def prepare(self, session: GcSession) -> None:
        annotations = GuardAnnotations()
        if session.settings.guards is not None:
            annotations = annotations_of(await list_namespaces(session.client))
        self._round = self._new_round(session, annotations)
        await self._round.begin()

    async def execute(
        self, session: GcSession, confirmed: Plan | None, on_progress: OnProgress | None
    ) -> None:
        assert self._round is not None, "prepare comes first"
        try:
            pods = await self._round.chosen(session.selection)
        except PodlifeError as error:
            # The results of the phases before are still reported.
            session.summary.finalizers.error = error
            return
        if confirmed is not None:
            uids = {pod.uid for pod in confirmed.finalizers} | {pod.metadata.uid for pod in going(confirmed)}
            pods = [pod for pod in pods if pod.uid in uids]
        session.summary.finalizers = await self._round.run(pods, self._report)

    def stop(self) -> None:
        if self._round is not None:
            self._round.stop()

    def _new_round(self, session: GcSession, annotations: GuardAnnotations) -> FinalizerRound:
        client, clock, settings = session.client, session.clock, session.settings
        remover = FinalizerRemover(
            client,
            clock,
            self._allowed,
            lambda: settings,
            steps=session.steps,
            annotations=lambda: annotations,
        )
        return FinalizerRound(client, clock, remover, quarantine_seconds=settings.quarantine_seconds)

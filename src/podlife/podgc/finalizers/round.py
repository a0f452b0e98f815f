"""One-off removal of finalizers from held pods.

A node must be missing for a quarantine first, as for orphans: a single list does not tell since when it is missing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from podlife.aio import wait_until_set
from podlife.client import Client
from podlife.clock import Clock
from podlife.errors import PodlifeError
from podlife.podgc.finalizers.held_pods import HeldPod, NodeState, held_pods, read_nodes
from podlife.podgc.finalizers.remover import FinalizerRemoval, FinalizerRemover
from podlife.podgc.settings import Selection

_MOST_AT_ONCE = 16


@dataclass(slots=True)
class FinalizerSummary:
    done: list[FinalizerRemoval] = field(default_factory=list)
    kept: list[FinalizerRemoval] = field(default_factory=list)
    failures: list[tuple[HeldPod, PodlifeError]] = field(default_factory=list)
    # Number of pods not handled because of `stop`.
    left: int = 0
    # Why the held pods could not be listed.
    error: PodlifeError | None = None

    @property
    def is_complete(self) -> bool:
        return not (self.kept or self.failures or self.left or self.error)


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
        if ready:
            await self._wait()
        waiting = list(reversed(ready))

        async def labour() -> None:
            while waiting and not self._stopping.is_set():
                await self._take(waiting.pop(), result, report)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(len(waiting), _MOST_AT_ONCE)):
                group.create_task(labour())
        result.left = len(waiting)
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

    async def _wait(self) -> None:
        left = self._began + self._quarantine_seconds - asyncio.get_running_loop().time()
        if left > 0:
            await wait_until_set(self._stopping, seconds=left)

    async def _take(
        self, pod: HeldPod, result: FinalizerSummary, report: Callable[[FinalizerRemoval], None] | None
    ) -> None:
        try:
            taken = await self._remover.take_off(pod)
        except PodlifeError as error:
            result.failures.append((pod, error))
            return
        if taken.why:
            result.kept.append(taken)
            return
        result.done.append(taken)
        if report is not None and taken.taken:
            report(taken)

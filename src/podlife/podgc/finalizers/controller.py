"""Takes finalizers off while a collector runs: what it holds as settled is looked at every period.

A node's quarantine runs from the look at which it was first missed, and begins anew when the node was seen, or when the
collector was not fit to see. It does nothing while the collector does nothing. What could not be taken off is told
once for as long as the reason stays, and tried again at growing intervals.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable

from podlife.errors import PodlifeError
from podlife.events import Recorder
from podlife.podgc.collector import Collector
from podlife.podgc.finalizers.held_pods import HeldPod
from podlife.podgc.finalizers.remover import FinalizerRemover, Taken, event_of
from podlife.podgc.index import PodIndex
from podlife.podgc.views import Pod

__all__ = ["FinalizerWatch"]

log = logging.getLogger(__name__)

_MOST_AT_ONCE = 16
# One period's worth: a look stays short however many pods are held.
_MOST_PER_LOOK = 500
_MOST_RETRY_SECONDS = 600.0


class FinalizerWatch:
    def __init__(
        self, collector: Collector, remover: FinalizerRemover, recorder: Recorder | None = None
    ) -> None:
        self._collector = collector
        self._remover = remover
        self._recorder = recorder
        self._missed_at: dict[str, float] = {}
        # By UID: what was told last, when it may be tried again, and after how long the time after that.
        self._kept: dict[str, tuple[str, float, float]] = {}
        # By the names of finalizers, how many were taken off.
        self.taken: Counter[str] = Counter()

    async def run(self) -> None:
        """Until it is cancelled. Raises nothing else."""
        while True:
            if self._collector.is_fit:
                await self._look()
            else:
                self._missed_at.clear()
            await asyncio.sleep(self._collector.settings.period_seconds)

    async def _look(self) -> None:
        now = asyncio.get_running_loop().time()
        index = self._collector.index
        held = [pod for pod in index.settled if self._is_chosen(index, pod)]
        self._note_missing({pod.spec.node_name for pod in held}, now)
        uids = {pod.metadata.uid for pod in held}
        self._kept = {uid: kept for uid, kept in self._kept.items() if uid in uids}
        due = [pod for pod in held if self._is_due(pod, now)][:_MOST_PER_LOOK]
        places = asyncio.Semaphore(_MOST_AT_ONCE)

        async def take(pod: Pod) -> None:
            async with places:
                await self._take(pod)

        async with asyncio.TaskGroup() as group:
            for pod in due:
                group.create_task(take(pod))

    def _is_chosen(self, index: PodIndex, pod: Pod) -> bool:
        node = pod.spec.node_name
        is_allowed = not self._remover.allowed.isdisjoint(pod.metadata.finalizers)
        return is_allowed and bool(node) and not index.has_node(node)

    def _note_missing(self, nodes: Iterable[str], now: float) -> None:
        self._missed_at = {node: self._missed_at.get(node, now) for node in nodes}

    def _is_due(self, pod: Pod, now: float) -> bool:
        if self._missed_at[pod.spec.node_name] + self._collector.settings.quarantine_seconds > now:
            return False
        kept = self._kept.get(pod.metadata.uid)
        return kept is None or kept[1] <= now

    async def _take(self, pod: Pod) -> None:
        try:
            taken = await self._remover.take_off(_as_held(pod))
        except PodlifeError as error:
            self._keep(pod, f"the server could not be asked: {error}")
            return
        if taken.why:
            self._keep(pod, taken.why)
        elif taken.taken:
            self._tell(taken)

    def _keep(self, pod: Pod, why: str) -> None:
        uid, now = pod.metadata.uid, asyncio.get_running_loop().time()
        said, _, seconds = self._kept.get(uid, ("", 0.0, self._collector.settings.period_seconds))
        if said != why:
            log.warning("finalizers of pod %s stay: %s", pod.key, why, extra={"pod": pod.key, "uid": uid})
        self._kept[uid] = (why, now + seconds, min(2 * seconds, _MOST_RETRY_SECONDS))

    def _tell(self, taken: Taken) -> None:
        self.taken.update(taken.taken)
        names = ", ".join(taken.taken)
        log.info("took %s off pod %s", names, taken.key, extra={"pod": taken.key, "node": taken.node})
        if self._recorder is not None:
            regarding, message = event_of(taken)
            self._recorder.event(regarding, "Normal", "FinalizerRemoved", message)


def _as_held(pod: Pod) -> HeldPod:
    """As much as the remover needs: it reads the pod itself."""
    metadata = pod.metadata
    since = metadata.deletion_timestamp or metadata.creation_timestamp
    assert since is not None, "a settled pod was deleted"
    return HeldPod(metadata.namespace, metadata.name, metadata.uid, pod.spec.node_name, since, ())

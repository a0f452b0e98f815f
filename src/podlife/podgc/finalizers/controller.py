"""Removes finalizers while a collector runs: checks its settled pods every period.

A node's quarantine starts with the check at which it was first missed, and restarts when the node was seen or the
caches were stale. Nothing is done while the collector is paused. A pod that keeps its finalizers is reported once per
reason and retried with exponential backoff.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter

from podlife.errors import PodlifeError
from podlife.events import Recorder
from podlife.podgc.collector import Collector
from podlife.podgc.finalizers.remover import FinalizerRemover, event_of
from podlife.podgc.index import PodIndex
from podlife.podgc.plan import HeldPod
from podlife.podgc.summary import FinalizerRemoval
from podlife.podgc.views import Pod
from podlife.podgc.worker_pool import for_each

log = logging.getLogger(__name__)

_MOST_AT_ONCE = 16
# Maximum per period, so that a check stays short.
_MOST_PER_CHECK = 500
_MOST_RETRY_SECONDS = 600.0


class FinalizerController:
    def __init__(
        self, collector: Collector, remover: FinalizerRemover, recorder: Recorder | None = None
    ) -> None:
        self._collector = collector
        self._remover = remover
        self._recorder = recorder
        self._missed_at: dict[str, float] = {}
        # By UID: the last reason reported, when to retry, and the backoff after that.
        self._kept: dict[str, tuple[str, float, float]] = {}
        # Number of removals by finalizer.
        self.taken: Counter[str] = Counter()

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            if self._collector.is_fit:
                await self._check()
            else:
                self._missed_at.clear()
            await asyncio.sleep(self._collector.settings.period_seconds)

    async def _check(self) -> None:
        now = asyncio.get_running_loop().time()
        index = self._collector.index
        held = [pod for pod in index.settled if self._is_chosen(index, pod)]
        self._missed_at = {pod.spec.node_name: self._missed_at.get(pod.spec.node_name, now) for pod in held}
        uids = {pod.metadata.uid for pod in held}
        self._kept = {uid: kept for uid, kept in self._kept.items() if uid in uids}
        due = [pod for pod in held if self._is_due(pod, now)][:_MOST_PER_CHECK]
        await for_each(due, self._take, at_once=_MOST_AT_ONCE)

    def _is_chosen(self, index: PodIndex, pod: Pod) -> bool:
        node = pod.spec.node_name
        is_allowed = not self._remover.allowed.isdisjoint(pod.metadata.finalizers)
        return is_allowed and bool(node) and not index.has_node(node)

    def _is_due(self, pod: Pod, now: float) -> bool:
        if self._missed_at[pod.spec.node_name] + self._collector.settings.quarantine_seconds > now:
            return False
        kept = self._kept.get(pod.metadata.uid)
        return kept is None or kept[1] <= now

    async def _take(self, pod: Pod) -> None:
        try:
            taken = await self._remover.remove(_as_held(pod))
        except PodlifeError as error:
            self._keep(pod, f"request failed: {error}")
            return
        if taken.why:
            self._keep(pod, taken.why)
        elif taken.taken:
            self._report(taken)

    def _keep(self, pod: Pod, why: str) -> None:
        uid, now = pod.metadata.uid, asyncio.get_running_loop().time()
        reported, _, seconds = self._kept.get(uid, ("", 0.0, self._collector.settings.period_seconds))
        if reported != why:
            log.warning("keeping finalizers of pod %s: %s", pod.key, why, extra={"pod": pod.key, "uid": uid})
        self._kept[uid] = (why, now + seconds, min(2 * seconds, _MOST_RETRY_SECONDS))

    def _report(self, taken: FinalizerRemoval) -> None:
        self.taken.update(taken.taken)
        names = ", ".join(taken.taken)
        log.info("removed %s from pod %s", names, taken.key, extra={"pod": taken.key, "node": taken.node})
        if self._recorder is not None:
            regarding, message = event_of(taken)
            self._recorder.event(regarding, "Normal", "FinalizerRemoved", message)


def _as_held(pod: Pod) -> HeldPod:
    """The fields that the remover needs; it reads the pod itself."""
    metadata = pod.metadata
    since = metadata.deletion_timestamp or metadata.creation_timestamp
    assert since is not None, "a settled pod was deleted"
    return HeldPod(metadata.namespace, metadata.name, metadata.uid, pod.spec.node_name, since, ())

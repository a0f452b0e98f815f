"""Marks the pods of a node that is not ready as not ready, so that they receive no traffic.

Only status and time of the Ready condition are written (NL-41), to the pod with that UID. A pod that is gone is
ignored. The kubelet reports the condition again when it returns.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

import msgspec

from podlife.api.codec import format_time
from podlife.client import PODS, Client, PatchType
from podlife.clock import Clock
from podlife.errors import InvalidError, NotFoundError, PodlifeError
from podlife.events import Recorder
from podlife.nodehealth.views import READY, MonitoredPod

log = logging.getLogger(__name__)

# Pods written concurrently, on all nodes together; the client's limiter usually allows fewer.
_AT_ONCE = 32


class _Nothing(msgspec.Struct):
    """The response is not used."""


class PodsNotReadyMarker:
    def __init__(self, client: Client, clock: Clock, recorder: Recorder) -> None:
        self._client = client
        self._clock = clock
        self._recorder = recorder
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def mark_all(self, pods: Iterable[MonitoredPod]) -> bool:
        """Return whether all pods are marked. Pods that are already not ready are skipped."""
        shown = [pod for pod in pods if pod.is_shown_ready]
        results = await asyncio.gather(*(self._try(pod) for pod in shown))
        return all(results)

    async def mark(self, pod: MonitoredPod) -> None:
        """Raises PodlifeError if the server refuses."""
        if not pod.is_shown_ready:
            return
        try:
            await self._write(pod)
        except NotFoundError:
            # NL-42: the pod is gone.
            return
        except PodlifeError:
            self._record_event(pod)
            raise
        self._record_event(pod)

    async def _try(self, pod: MonitoredPod) -> bool:
        async with self._turns:
            try:
                await self.mark(pod)
            except PodlifeError as error:
                log.warning("marking pod %s as not ready failed: %s", pod.key, error)
                return False
        return True

    async def _write(self, pod: MonitoredPod) -> None:
        metadata = pod.metadata
        condition = {"type": READY, "status": "False", "lastTransitionTime": format_time(self._clock.now())}
        patch = {"metadata": {"uid": metadata.uid}, "status": {"conditions": [condition]}}
        try:
            await self._client.patch(
                PODS,
                metadata.name,
                patch,
                metadata.namespace,
                type=PatchType.STRATEGIC,
                subresource="status",
                view=_Nothing,
            )
        except InvalidError as error:
            # The server's response if the pod was recreated under the same name.
            if any(cause.get("field") == "metadata.uid" for cause in error.details.get("causes") or ()):
                raise NotFoundError(str(error)) from error
            raise

    def _record_event(self, pod: MonitoredPod) -> None:
        self._recorder.event(pod.reference, "Warning", "NodeNotReady", "Node is not ready")

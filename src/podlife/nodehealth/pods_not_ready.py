"""Pods of a node that is not ready are shown as not ready: nobody should send them anything.

Only the status of the Ready condition and its time are written (NL-41), onto the pod that was meant. A pod that is gone
is not missed. Its node's agent says again how it is when it comes back.
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
from podlife.nodehealth.views import READY, Pod

__all__ = ["PodMarking"]

log = logging.getLogger(__name__)

# How many pods of all nodes are written at once; the client's limiter, which knows the server, mostly allows fewer.
_AT_ONCE = 32


class _Nothing(msgspec.Struct):
    """Nothing of the answer is needed."""


class PodMarking:
    def __init__(self, client: Client, clock: Clock, recorder: Recorder) -> None:
        self._client = client
        self._clock = clock
        self._recorder = recorder
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def mark_all(self, pods: Iterable[Pod]) -> bool:
        """Says whether all of them are marked; those that are shown as not ready already need nothing."""
        shown = [pod for pod in pods if pod.is_shown_ready]
        results = await asyncio.gather(*(self._try(pod) for pod in shown))
        return all(results)

    async def mark(self, pod: Pod) -> None:
        """Raises PodlifeError when the server would not."""
        if not pod.is_shown_ready:
            return
        try:
            await self._write(pod)
        except NotFoundError:
            # NL-42: nobody is left to be told.
            return
        except PodlifeError:
            self._tell(pod)
            raise
        self._tell(pod)

    async def _try(self, pod: Pod) -> bool:
        async with self._turns:
            try:
                await self.mark(pod)
            except PodlifeError as error:
                log.warning("pod %s is not marked as not ready yet: %s", pod.key, error)
                return False
        return True

    async def _write(self, pod: Pod) -> None:
        metadata = pod.metadata
        condition = {
            "type": READY,
            "status": "False",
            "lastTransitionTime": format_time(self._clock.now()),
        }
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
            # How a server says that the pod of this name is another one by now.
            if any(cause.get("field") == "metadata.uid" for cause in error.details.get("causes") or ()):
                raise NotFoundError(str(error)) from error
            raise

    def _tell(self, pod: Pod) -> None:
        self._recorder.event(pod.reference, "Warning", "NodeNotReady", "Node is not ready")

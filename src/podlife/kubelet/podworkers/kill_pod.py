"""Kill a pod and wait until it has stopped: for eviction, preemption and node shutdown."""

from __future__ import annotations

import asyncio

from podlife.errors import PodlifeError
from podlife.kubelet.object_reference import pod_reference
from podlife.kubelet.pod import NodePod
from podlife.kubelet.pod_events import EventRecorder
from podlife.kubelet.podworkers.state import KillOptions, KillOutcome, PodUpdate, StatusOverride, UpdateType
from podlife.kubelet.podworkers.workers import PodWorkers

_MIN_WAIT_SECONDS = 10


class KillError(PodlifeError):
    """The pod was not observed to stop. The kill continues."""


def wait_limit_seconds(pod: NodePod, grace_seconds: int | None) -> int:
    """1.5 times the pod's grace period, and at least the time the runtime needs to kill it (PW-180)."""
    base = pod.spec.termination_grace_period_seconds or 0 if grace_seconds is None else grace_seconds
    return max(base + base // 2, _MIN_WAIT_SECONDS)


async def kill_pod_now(
    workers: PodWorkers,
    recorder: EventRecorder,
    pod: NodePod,
    *,
    evict: bool = False,
    grace_seconds: int | None = None,
    status_override: StatusOverride | None = None,
) -> None:
    """Return when none of the pod's containers runs. Raises KillError on timeout, or if the workers shut down first."""
    result: asyncio.Future[KillOutcome] = asyncio.get_running_loop().create_future()

    def notify(outcome: KillOutcome) -> None:
        # The wait may have timed out.
        if not result.done():
            result.set_result(outcome)

    kill = KillOptions(notify, evict, status_override, grace_seconds)
    workers.update_pod(PodUpdate(UpdateType.KILL, pod, kill=kill))
    try:
        async with asyncio.timeout(wait_limit_seconds(pod, grace_seconds)):
            outcome = await result
    except TimeoutError:
        message = "Container runtime did not kill the pod within specified grace period."
        recorder.event(pod_reference(pod), "Warning", "ExceededGracePeriod", message)
        raise KillError("timeout waiting to kill pod") from None
    if outcome is not KillOutcome.STOPPED:
        raise KillError(f"the pod workers ended before pod {pod.metadata.name} was seen to stop")

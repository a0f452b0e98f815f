"""The kubelet's pod workers: each pod of a node is synced, terminated and forgotten, one step at a time.

    workers = PodWorkers(steps, cache, recorder)
    workers.update_pod(PodUpdate(UpdateType.CREATE, pod))
    await kill_pod_now(workers, recorder, pod, grace_seconds=5)
    known = workers.sync_known_pods({pod.metadata.uid})

`run` calls the injected steps (`PodSteps`): sync while the pod is wanted, then terminating until none of its containers
runs, then terminated. A failed step is put into `retries`, and the sync loop sends a sync when it is due. The decisions
are pure (`transitions`) and follow the PW- rules.
"""

from podlife.kubelet.podworkers.delays import BackoffError, Delays
from podlife.kubelet.podworkers.kill_pod import KillError, kill_pod_now
from podlife.kubelet.podworkers.state import (
    KillOptions,
    KillOutcome,
    PodState,
    PodUpdate,
    Stage,
    StatusOverride,
    UpdateType,
    full_name,
    is_static,
)
from podlife.kubelet.podworkers.static_names import StaticNames
from podlife.kubelet.podworkers.step_runner import PodSteps, SyncResult
from podlife.kubelet.podworkers.transitions import KnownPod
from podlife.kubelet.podworkers.workers import PodWorkers

__all__ = [
    "BackoffError",
    "Delays",
    "KillError",
    "KillOptions",
    "KillOutcome",
    "KnownPod",
    "PodState",
    "PodSteps",
    "PodUpdate",
    "PodWorkers",
    "Stage",
    "StaticNames",
    "StatusOverride",
    "SyncResult",
    "UpdateType",
    "full_name",
    "is_static",
    "kill_pod_now",
]

"""The kubelet's pod workers: each pod of a node is synced, ended and forgotten, one step at a time.

    workers = PodWorkers(steps, cache, recorder)
    workers.update_pod(PodUpdate(UpdateType.CREATE, pod))
    await kill_pod_now(workers, recorder, pod, grace_seconds=5)
    known = workers.sync_known_pods({pod.metadata.uid})

`run` runs the injected steps (`PodSteps`): sync while the pod is wanted, then terminating until nothing of it runs,
then terminated. A failed step is due again in `retries`; the sync loop takes it from there and sends a sync. The
decisions are pure (`update_transitions`, `step_transitions`, `sync_known_pods`) and follow the PW- rules.
"""

from podlife.kubelet.podworkers.delays import BackoffError, Delays
from podlife.kubelet.podworkers.interfaces import PodSteps, StatusCache, SyncResult
from podlife.kubelet.podworkers.kill_pod import KillError, kill_pod_now
from podlife.kubelet.podworkers.metrics import CONTAINERS_PER_POD, WORKER_SECONDS, WorkerMetrics
from podlife.kubelet.podworkers.state import PodState, Stage
from podlife.kubelet.podworkers.static_names import StaticNames
from podlife.kubelet.podworkers.sync_known_pods import KnownPod
from podlife.kubelet.podworkers.updates import (
    KillOptions,
    KillOutcome,
    PodUpdate,
    StatusOverride,
    UpdateType,
    Waiter,
    full_name,
    is_static,
)
from podlife.kubelet.podworkers.workers import PodWorkers

__all__ = [
    "CONTAINERS_PER_POD",
    "WORKER_SECONDS",
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
    "StatusCache",
    "StatusOverride",
    "SyncResult",
    "UpdateType",
    "Waiter",
    "WorkerMetrics",
    "full_name",
    "is_static",
    "kill_pod_now",
]

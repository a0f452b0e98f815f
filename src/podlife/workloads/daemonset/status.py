"""The status of a DaemonSet, counted from its nodes and pods. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from podlife.podcontrol import is_available, is_ready
from podlife.workloads.daemonset.placement import NodeFit
from podlife.workloads.daemonset.plan import DaemonRevision, oldest_first
from podlife.workloads.daemonset.pod_template import is_updated
from podlife.workloads.daemonset.views import DaemonSet
from podlife.workloads.views import Status, WorkloadPod

# The server writes these even if they are zero.
_ALWAYS = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")


def new_status(
    daemon_set: DaemonSet,
    pods: Mapping[str, Sequence[WorkloadPod]],
    fits: Mapping[str, NodeFit],
    revision: DaemonRevision,
    now: datetime,
) -> Status:
    """The new status, without observedGeneration, which the caller sets after acting on it. `pods` by node; `fits` of
    all existing nodes. On a node with several pods the oldest counts."""
    counts = dict.fromkeys((*_ALWAYS, "updatedNumberScheduled", "numberAvailable"), 0)
    for name, fit in fits.items():
        found = pods.get(name)
        if fit is not NodeFit.SHOULD_RUN:
            counts["numberMisscheduled"] += bool(found)
            continue
        counts["desiredNumberScheduled"] += 1
        if not found:
            continue
        pod = found[0] if len(found) == 1 else oldest_first(found)[0]
        counts["currentNumberScheduled"] += 1
        if is_ready(pod):
            counts["numberReady"] += 1
            counts["numberAvailable"] += is_available(pod, revision.min_ready_seconds, now)
        counts["updatedNumberScheduled"] += is_updated(pod, revision.generation, revision.hash)
    counts["numberUnavailable"] = counts["desiredNumberScheduled"] - counts["numberAvailable"]
    status = {name: value for name, value in daemon_set.status.items() if name not in counts}
    return status | {name: count for name, count in counts.items() if count or name in _ALWAYS}

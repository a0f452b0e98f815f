"""Which pods of a DaemonSet an update replaces next. Pure.

Without surge, old pods are deleted, as many as may be unavailable, and new ones are created as on any node without a
pod. With surge, new pods are created beside the old ones, which are deleted once the new ones are available.
Unavailable pods are replaced immediately; nodes with too many pods are left to `plan` and counted as
unavailable. Percentages refer to the nodes that should run the daemon and are rounded up, so that an update always
makes progress.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from podlife.podcontrol import is_available
from podlife.workloads.daemonset.placement import NodeFit
from podlife.workloads.daemonset.plan import DaemonRevision
from podlife.workloads.daemonset.pod_template import is_updated
from podlife.workloads.daemonset.views import ROLLING_UPDATE, DaemonSet
from podlife.workloads.views import WorkloadPod, scaled


@dataclass(slots=True)
class Replacement:
    delete: list[WorkloadPod] = field(default_factory=list)
    create_on: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Pair:
    """New and old pod of a node; `is_clear` is false if it has several of either."""

    new: WorkloadPod | None = None
    old: WorkloadPod | None = None
    is_clear: bool = True


def replace_next(
    pods: Mapping[str, Sequence[WorkloadPod]],
    fits: Mapping[str, NodeFit],
    revision: DaemonRevision,
    limits: RolloutLimits,
    now: datetime,
) -> Replacement:
    """`pods` by node; `fits` of all existing nodes."""
    if all(is_updated(pod, revision.generation, revision.hash) for found in pods.values() for pod in found):
        return Replacement()
    wanted = {name: pods.get(name, ()) for name, fit in fits.items() if fit is NodeFit.SHOULD_RUN}
    pairs = {name: _pair(found, revision) for name, found in {**wanted, **pods}.items()}
    if limits.max_surge == 0:
        return _replace_in_place(pairs, revision, limits.max_unavailable, now)
    return _replace_beside(pairs, fits, revision, limits.max_surge, now)


def _replace_in_place(
    pairs: Mapping[str, _Pair], revision: DaemonRevision, max_unavailable: int, now: datetime
) -> Replacement:
    unavailable = 0
    replacement = Replacement()
    candidates: list[WorkloadPod] = []
    for pair in pairs.values():
        only = pair.new or pair.old
        if only is None or (pair.new and pair.old):
            unavailable += 1
            continue
        serves = is_available(only, revision.min_ready_seconds, now)
        if not serves:
            unavailable += 1
        if only is pair.old:
            (candidates if serves else replacement.delete).append(only)
    replacement.delete += candidates[: max(0, max_unavailable - unavailable)]
    return replacement


def _replace_beside(
    pairs: Mapping[str, _Pair],
    fits: Mapping[str, NodeFit],
    revision: DaemonRevision,
    max_surge: int,
    now: datetime,
) -> Replacement:
    surging = available = 0
    replacement = Replacement()
    candidates: list[str] = []
    misplaced: list[WorkloadPod] = []
    for name, pair in pairs.items():
        if not pair.is_clear:
            surging += 1
            continue
        serving = pair.old or pair.new
        serves = serving is not None and is_available(serving, revision.min_ready_seconds, now)
        available += serves
        if pair.old is None:
            continue
        if pair.new is not None:
            if is_available(pair.new, revision.min_ready_seconds, now):
                replacement.delete.append(pair.old)
            else:
                surging += 1
        elif fits.get(name) is NodeFit.SHOULD_RUN:
            (candidates if serves else replacement.create_on).append(name)
        elif name in fits:
            (misplaced if serves else replacement.delete).append(pair.old)
    desired = sum(1 for fit in fits.values() if fit is NodeFit.SHOULD_RUN)
    # With surge, a pod on a node that should not run one is deleted once enough others are available.
    replacement.delete += misplaced[: max(0, available - desired)]
    replacement.create_on += candidates[: max(0, max_surge - surging)]
    return replacement


def _pair(pods: Sequence[WorkloadPod], revision: DaemonRevision) -> _Pair:
    new: list[WorkloadPod] = []
    old: list[WorkloadPod] = []
    for pod in pods:
        if pod.metadata.deletion_timestamp is None:
            (new if is_updated(pod, revision.generation, revision.hash) else old).append(pod)
    if len(new) > 1 or len(old) > 1:
        return _Pair(is_clear=False)
    return _Pair(new[0] if new else None, old[0] if old else None)


@dataclass(frozen=True, slots=True)
class RolloutLimits:
    max_unavailable: int
    max_surge: int


def limits_of(daemon_set: DaemonSet, desired: int) -> RolloutLimits:
    """Raises InvalidInputError for values that are neither numbers nor percentages."""
    strategy = daemon_set.spec.update_strategy
    rolling = strategy.rolling_update
    if strategy.type != ROLLING_UPDATE or rolling is None:
        unavailable = surge = 0
    else:
        unavailable = scaled(rolling.max_unavailable, desired, round_up=True, what="MaxUnavailable")
        surge = scaled(rolling.max_surge, desired, round_up=True, what="MaxSurge")
    if desired > 0 and unavailable == 0 and surge == 0:
        # If both were 0, the update would never progress.
        unavailable = 1
    return RolloutLimits(unavailable, surge)


def allows_surge(daemon_set: DaemonSet) -> bool:
    """Whether a node may have two pods during an update."""
    return limits_of(daemon_set, 1).max_surge > 0

"""What a StatefulSet does next, from its pods and claims. Pure.

First, for every wanted ordinal, pods are created, finished ones deleted and identities corrected. Then condemned pods
(upstream's word: of an ordinal no longer wanted) are deleted, the highest ordinal first; then, with the RollingUpdate
strategy, the highest ordinal that is not of the update revision. An ordered set does one thing at a time: it waits for
each pod to be available, and for a deleted one to be gone, before the next. A pod is only created for an ordinal that
has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from podlife.api.codec import Object
from podlife.podcontrol import Owner, is_available, is_terminal
from podlife.workloads.statefulset.identity import (
    has_identity,
    has_storage,
    identity_labels,
    new_pod,
    ordinal_of,
    pod_name,
    revision_of,
    volumes,
)
from podlife.workloads.statefulset.views import StatefulSet
from podlife.workloads.statefulset.volume_claims import (
    Claimant,
    ClaimWork,
    Lookup,
    claim_work,
    has_stale_claim,
)
from podlife.workloads.views import Template, WorkloadPod

BURST = 500
"""Maximum number of pods created per reconcile: a set may request two billion."""


@dataclass(frozen=True, slots=True)
class TemplateRevision:
    name: str
    template: Template


@dataclass(frozen=True, slots=True)
class StatefulSetState:
    """`pods` are all pods of the set, with any ordinal; `claims` looks up a claim in the set's namespace."""

    stateful_set: StatefulSet
    owner: Owner
    pods: Sequence[WorkloadPod]
    current: TemplateRevision
    update: TemplateRevision
    claims: Lookup
    now: datetime


@dataclass(frozen=True, slots=True)
class CreatePod:
    name: str
    pod: Object
    claims: ClaimWork


@dataclass(frozen=True, slots=True)
class DeletePod:
    pod: WorkloadPod


@dataclass(frozen=True, slots=True)
class RepairPod:
    """Restores labels and volumes that identify a pod of the set."""

    name: str
    patch: Object | None
    claims: ClaimWork


@dataclass(frozen=True, slots=True)
class RepairClaims:
    pod_name: str
    claims: ClaimWork


Step = CreatePod | DeletePod | RepairPod | RepairClaims


@dataclass(frozen=True, slots=True)
class StatefulSetPlan:
    """Stages are executed in order until a step fails. The steps of a stage concern different pods."""

    stages: tuple[tuple[Step, ...], ...] = ()
    # The pod deleted by the rolling update; it is in the last stage.
    updated: WorkloadPod | None = None

    @property
    def creates(self) -> bool:
        return any(isinstance(step, CreatePod) for stage in self.stages for step in stage)

    def deletions(self) -> Iterator[WorkloadPod]:
        for stage in self.stages:
            for step in stage:
                if isinstance(step, DeletePod):
                    yield step.pod


def make_plan(state: StatefulSetState) -> StatefulSetPlan:
    by_ordinal = {ordinal_of(pod): pod for pod in state.pods}
    wanted = state.stateful_set.wanted_ordinals
    first, is_held = _replica_stage(state, by_ordinal)
    if is_held:
        return StatefulSetPlan((first,))
    replicas = [by_ordinal.get(ordinal) for ordinal in wanted]
    condemned = [by_ordinal[each] for each in sorted(by_ordinal, reverse=True) if each not in wanted]
    mended = tuple(_repaired_claims(state, condemned))
    deleted, is_held = condemned_to_delete(state.stateful_set, condemned, replicas, state.now)
    deletions = tuple(DeletePod(pod) for pod in deleted)
    if is_held:
        return StatefulSetPlan((first, mended, deletions))
    updated = pod_to_update(state.stateful_set, replicas, state.update.name, state.now)
    last = (DeletePod(updated),) if updated is not None else ()
    return StatefulSetPlan((first, mended, deletions, last), updated)


# Wanted pods


def _replica_stage(
    state: StatefulSetState, by_ordinal: Mapping[int, WorkloadPod]
) -> tuple[tuple[Step, ...], bool]:
    """The steps for wanted pods, and whether everything else has to wait."""
    steps: list[Step] = []
    created = 0
    for ordinal in state.stateful_set.wanted_ordinals:
        pod = by_ordinal.get(ordinal)
        step = _creation(state, ordinal) if pod is None else _repair_step(state, pod)
        if step is not None:
            steps.append(step)
            created += pod is None
        if (
            state.stateful_set.is_ordered and is_waited_for(state.stateful_set, pod, state.now)
        ) or created >= BURST:
            return tuple(steps), True
    return tuple(steps), False


def _creation(state: StatefulSetState, ordinal: int) -> Step | None:
    stateful_set, owner = state.stateful_set, state.owner
    name = pod_name(owner.name, ordinal)
    claimant = Claimant(name, ordinal)
    if has_stale_claim(stateful_set, claimant, owner.name, state.claims):
        return None
    revision = _revision_for(state, ordinal)
    pod = new_pod(stateful_set, owner, ordinal, revision.name, revision.template)
    return CreatePod(name, pod, claim_work(stateful_set, claimant, owner, state.claims, make=True))


def _revision_for(state: StatefulSetState, ordinal: int) -> TemplateRevision:
    """Below the partition pods keep the current revision, even if they are recreated."""
    stateful_set = state.stateful_set
    if stateful_set.spec.update_strategy.rolling_update is not None:
        kept = stateful_set.partition
    else:
        kept = stateful_set.status.get("currentReplicas", 0) if stateful_set.is_rolling else 0
    return state.current if ordinal < stateful_set.spec.ordinals.start + kept else state.update


def _repair_step(state: StatefulSetState, pod: WorkloadPod) -> Step | None:
    if is_terminal(pod):
        # Pods of a set never complete, so a finished one is replaced once it is gone.
        return DeletePod(pod) if pod.metadata.deletion_timestamp is None else None
    stateful_set, owner = state.stateful_set, state.owner
    claimant = _claimant(pod)
    is_pending = pod.status.phase == "Pending"
    is_stored = has_storage(stateful_set, pod)
    work = claim_work(stateful_set, claimant, owner, state.claims, make=is_pending or not is_stored)
    if is_pending and (stateful_set.is_ordered or (has_identity(pod) and is_stored)):
        return RepairClaims(pod.metadata.name, work) if work else None
    if stateful_set.is_ordered and is_waited_for(state.stateful_set, pod, state.now):
        return None
    if has_identity(pod) and is_stored and not work.changes:
        return None
    return RepairPod(pod.metadata.name, _identity_patch(stateful_set, pod, is_stored=is_stored), work)


def _identity_patch(stateful_set: StatefulSet, pod: WorkloadPod, *, is_stored: bool) -> Object | None:
    metadata, ordinal = pod.metadata, ordinal_of(pod)
    patch: Object = {"metadata": {"uid": metadata.uid}}
    if not has_identity(pod):
        patch["metadata"]["labels"] = identity_labels(metadata.name, ordinal)
    if not is_stored:
        # Servers reject changes of volumes; the error informs the user.
        patch["spec"] = {"volumes": volumes(stateful_set, ordinal)}
    return patch if "labels" in patch["metadata"] or "spec" in patch else None


# Condemned pods


def _repaired_claims(state: StatefulSetState, condemned: Iterable[WorkloadPod]) -> Iterator[Step]:
    for pod in condemned:
        work = claim_work(state.stateful_set, _claimant(pod), state.owner, state.claims, make=False)
        if work.changes:
            yield RepairClaims(pod.metadata.name, work)


def _claimant(pod: WorkloadPod) -> Claimant:
    return Claimant(pod.metadata.name, ordinal_of(pod), pod.metadata.uid)


def condemned_to_delete(
    stateful_set: StatefulSet,
    condemned: Sequence[WorkloadPod],
    replicas: Iterable[WorkloadPod | None],
    now: datetime,
) -> tuple[Sequence[WorkloadPod], bool]:
    """The condemned pods to delete now, and whether an update has to wait. `condemned` has the highest ordinal first;
    `replicas` are the wanted pods."""
    if not stateful_set.is_ordered:
        return [pod for pod in condemned if not _is_terminating(pod)], False
    if not condemned:
        return (), False
    last = condemned[0]
    if _is_terminating(last):
        return (), True
    # An unhealthy pod is deleted only if no pod before it is unhealthy. A finished pod never recovers: it is deleted
    # anyway, while upstream waits forever.
    pods = [*(pod for pod in replicas if pod is not None), *reversed(condemned)]
    first_unavailable = next((pod for pod in pods if is_unavailable(stateful_set, pod, now)), None)
    may_go = is_terminal(last) or last is first_unavailable or not is_waited_for(stateful_set, last, now)
    return ([last] if may_go else []), True


def pod_to_update(
    stateful_set: StatefulSet, replicas: Sequence[WorkloadPod | None], update_revision: str, now: datetime
) -> WorkloadPod | None:
    """The pod with the highest ordinal that is not of the update revision, if all pods after it are available."""
    if not stateful_set.is_rolling:
        return None
    for pod in reversed(replicas[stateful_set.partition :]):
        if pod is None or is_terminal(pod):
            # A finished pod is deleted whatever its revision.
            return None
        if revision_of(pod) != update_revision and not _is_terminating(pod):
            return pod
        if is_unavailable(stateful_set, pod, now):
            return None
    return None


def is_waited_for(stateful_set: StatefulSet, pod: WorkloadPod | None, now: datetime) -> bool:
    """Whether an ordered set waits for the pod: it is missing, not running, terminating or unavailable."""
    if pod is None or pod.status.phase != "Running":
        return True
    return is_unavailable(stateful_set, pod, now)


def is_unavailable(stateful_set: StatefulSet, pod: WorkloadPod, now: datetime) -> bool:
    return _is_terminating(pod) or not is_available(pod, stateful_set.spec.min_ready_seconds, now)


def _is_terminating(pod: WorkloadPod) -> bool:
    return pod.metadata.deletion_timestamp is not None

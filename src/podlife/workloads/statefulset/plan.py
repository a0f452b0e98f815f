"""What is to be done for a StatefulSet now, from what is known of its pods and claims. Pure.

First every wanted ordinal: pods are made, ended ones deleted, identities put right. Then the pods that are too many
are deleted, the last first. Then, if the set updates its pods by itself, the last one of another revision is. A set
that is ordered does one thing at a time: it waits for each pod to be available, and for one that goes to be gone,
before it does anything about the next. A pod is only ever made for an ordinal that has none.
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
"""How many pods are made for one set before it is looked at again: somebody may ask for two billion."""


@dataclass(frozen=True, slots=True)
class TemplateRevision:
    name: str
    template: Template


@dataclass(frozen=True, slots=True)
class StatefulSetState:
    """`pods` are those of the set, whatever their ordinals; `claims` finds a claim of the set's namespace."""

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
class MendPod:
    """Gives the pod what makes it one of the set."""

    name: str
    patch: Object | None
    claims: ClaimWork


@dataclass(frozen=True, slots=True)
class MendClaims:
    pod_name: str
    claims: ClaimWork


Step = CreatePod | DeletePod | MendPod | MendClaims


@dataclass(frozen=True, slots=True)
class StatefulSetPlan:
    """Stages come one after the other; a step that fails ends it. The steps of a stage are about different pods."""

    stages: tuple[tuple[Step, ...], ...] = ()
    # The pod that goes since it is of another revision; it is in the last stage.
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
    mended = tuple(_mended_claims(state, condemned))
    deleted, is_held = _condemned_stage(state, condemned, _first_unavailable(state, replicas, condemned))
    if is_held:
        return StatefulSetPlan((first, mended, deleted))
    updated = _pod_to_update(state, replicas)
    last = (DeletePod(updated),) if updated is not None else ()
    return StatefulSetPlan((first, mended, deleted, last), updated)


# The pods that are wanted


def _replica_stage(
    state: StatefulSetState, by_ordinal: Mapping[int, WorkloadPod]
) -> tuple[tuple[Step, ...], bool]:
    """What is to be done for each, and whether nothing else may be done before."""
    steps: list[Step] = []
    created = 0
    for ordinal in state.stateful_set.wanted_ordinals:
        pod = by_ordinal.get(ordinal)
        step = _creation(state, ordinal) if pod is None else _care(state, pod)
        if step is not None:
            steps.append(step)
            created += pod is None
        if (state.stateful_set.is_ordered and _holds(state, pod)) or created >= BURST:
            return tuple(steps), True
    return tuple(steps), False


def _holds(state: StatefulSetState, pod: WorkloadPod | None) -> bool:
    """Whether an ordered set waits for it: a pod that is not there yet, ends, goes, or is not available."""
    if pod is None or pod.status.phase != "Running" or pod.metadata.deletion_timestamp is not None:
        return True
    return not is_available(pod, state.stateful_set.spec.min_ready_seconds, state.now)


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


def _care(state: StatefulSetState, pod: WorkloadPod) -> Step | None:
    """What a pod needs that is there."""
    if is_terminal(pod):
        # Pods of a set never complete, so a finished one is replaced once it is gone.
        return DeletePod(pod) if pod.metadata.deletion_timestamp is None else None
    stateful_set, owner = state.stateful_set, state.owner
    claimant = _claimant(pod)
    is_pending = pod.status.phase == "Pending"
    is_stored = has_storage(stateful_set, pod)
    work = claim_work(stateful_set, claimant, owner, state.claims, make=is_pending or not is_stored)
    if is_pending and (stateful_set.is_ordered or (has_identity(pod) and is_stored)):
        return MendClaims(pod.metadata.name, work) if work else None
    if stateful_set.is_ordered and _holds(state, pod):
        return None
    if has_identity(pod) and is_stored and not work.changes:
        return None
    return MendPod(pod.metadata.name, _identity_patch(stateful_set, pod, is_stored=is_stored), work)


def _identity_patch(stateful_set: StatefulSet, pod: WorkloadPod, *, is_stored: bool) -> Object | None:
    metadata, ordinal = pod.metadata, ordinal_of(pod)
    patch: Object = {"metadata": {"uid": metadata.uid}}
    if not has_identity(pod):
        patch["metadata"]["labels"] = identity_labels(metadata.name, ordinal)
    if not is_stored:
        # No server lets volumes be changed; but it is for the server to say so, and for the user to be told.
        patch["spec"] = {"volumes": volumes(stateful_set, ordinal)}
    return patch if "labels" in patch["metadata"] or "spec" in patch else None


# The pods that are too many


def _mended_claims(state: StatefulSetState, condemned: Iterable[WorkloadPod]) -> Iterator[Step]:
    for pod in condemned:
        work = claim_work(state.stateful_set, _claimant(pod), state.owner, state.claims, make=False)
        if work.changes:
            yield MendClaims(pod.metadata.name, work)


def _condemned_stage(
    state: StatefulSetState, condemned: Sequence[WorkloadPod], first_unavailable: WorkloadPod | None
) -> tuple[tuple[Step, ...], bool]:
    """Which are deleted, and whether the update has to wait for them."""
    if not state.stateful_set.is_ordered:
        return tuple(DeletePod(pod) for pod in condemned if pod.metadata.deletion_timestamp is None), False
    if not condemned:
        return (), False
    last = condemned[0]
    if last.metadata.deletion_timestamp is not None:
        return (), True
    # One that is unwell waits for those before it: only the first of the unwell goes without having recovered. One at
    # its end never will recover: upstream waits for it for ever.
    may_go = is_terminal(last) or last is first_unavailable or not _holds(state, last)
    return ((DeletePod(last),) if may_go else ()), True


def _first_unavailable(
    state: StatefulSetState, replicas: Iterable[WorkloadPod | None], condemned: Sequence[WorkloadPod]
) -> WorkloadPod | None:
    """The one with the lowest ordinal, of those that are wanted before those that are not."""
    pods = [pod for pod in replicas if pod is not None] + list(reversed(condemned))
    return next((pod for pod in pods if _is_unavailable(state, pod)), None)


# The pods of another revision


def _pod_to_update(state: StatefulSetState, replicas: Sequence[WorkloadPod | None]) -> WorkloadPod | None:
    """The last one that is of another revision, if all behind it are well."""
    if not state.stateful_set.is_rolling:
        return None
    for pod in reversed(replicas[state.stateful_set.partition :]):
        if pod is None or is_terminal(pod):
            # One at its end goes already, whatever its revision is.
            return None
        if revision_of(pod) != state.update.name and pod.metadata.deletion_timestamp is None:
            return pod
        if _is_unavailable(state, pod):
            return None
    return None


def _is_unavailable(state: StatefulSetState, pod: WorkloadPod) -> bool:
    if pod.metadata.deletion_timestamp is not None:
        return True
    return not is_available(pod, state.stateful_set.spec.min_ready_seconds, state.now)


def _claimant(pod: WorkloadPod) -> Claimant:
    return Claimant(pod.metadata.name, ordinal_of(pod), pod.metadata.uid)

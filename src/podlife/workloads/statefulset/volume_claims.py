"""PersistentVolumeClaims of a StatefulSet's pods: which to create, and their owners under the retention policy. Pure.

A claim that is deleted with the set is owned by the set; one that is deleted when its pod is scaled down is owned by
that pod from then on, and the garbage collector deletes them. If the claim has another controller, or refers to an
earlier set or pod of the same name, no owner is added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from podlife.api.codec import Object
from podlife.api.views import OwnerReference
from podlife.client import PERSISTENT_VOLUME_CLAIMS, PODS
from podlife.podcontrol import ControllerRef, Owner, release_patch
from podlife.workloads.statefulset.identity import claim_name
from podlife.workloads.statefulset.views import RetentionPolicy, StatefulSet, VolumeClaim

_DELETE = "Delete"

Lookup = Callable[[str], VolumeClaim | None]
"""The cached claim of this name in the set's namespace."""


@dataclass(frozen=True, slots=True)
class Claimant:
    """The pod of the claims. A pod that does not exist yet has no UID."""

    name: str
    ordinal: int
    uid: str = ""


@dataclass(frozen=True, slots=True)
class ClaimChange:
    claim: VolumeClaim
    add: tuple[ControllerRef, ...]
    remove: tuple[str, ...]

    def patch(self) -> Object:
        """With UID and resourceVersion of the claim that was read."""
        metadata = self.claim.metadata
        body = release_patch(metadata.uid, self.remove)
        body["metadata"]["resourceVersion"] = metadata.resource_version
        body["metadata"]["ownerReferences"] += [reference.to_object() for reference in self.add]
        return body


@dataclass(frozen=True, slots=True)
class ClaimWork:
    create: tuple[Object, ...] = ()
    # Claims that are being deleted and block the pod.
    going: tuple[str, ...] = ()
    changes: tuple[ClaimChange, ...] = ()
    # Claims with another controller.
    conflicting: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.create or self.going or self.changes or self.conflicting)


def claim_work(
    stateful_set: StatefulSet, pod: Claimant, owner: Owner, lookup: Lookup, *, make: bool
) -> ClaimWork:
    """The changes of the pod's claims; with `make`, missing ones are created."""
    create, going, changes, conflicting = [], [], [], []
    for template in stateful_set.spec.volume_claim_templates:
        name = claim_name(template, owner.name, pod.ordinal)
        if (claim := lookup(name)) is None:
            create.append(new_claim(stateful_set, owner, template, name))
            continue
        if claim.metadata.deletion_timestamp is not None:
            going.append(name)
        if _has_other_controller(stateful_set, pod, owner, claim):
            conflicting.append(name)
        if (change := reference_change(stateful_set, pod, owner, claim)) is not None:
            changes.append(change)
    if not make:
        create, going = [], []
    return ClaimWork(tuple(create), tuple(going), tuple(changes), tuple(conflicting))


def new_claim(stateful_set: StatefulSet, owner: Owner, template: Object, name: str) -> Object:
    """The template's claim with its own name and the labels of the set's selector. A claim to be deleted with the set
    is owned by it from the start, so that it is never left behind."""
    metadata = {
        **template["metadata"],
        "name": name,
        "namespace": stateful_set.metadata.namespace,
        "labels": {
            **(template["metadata"].get("labels") or {}),
            **(stateful_set.spec.selector.get("matchLabels") or {}),
        },
    }
    if stateful_set.spec.persistent_volume_claim_retention_policy.when_deleted == _DELETE:
        metadata["ownerReferences"] = [owner.controller_ref().to_object()]
    return {
        **{key: value for key, value in template.items() if key != "status"},
        "apiVersion": PERSISTENT_VOLUME_CLAIMS.api_version,
        "kind": PERSISTENT_VOLUME_CLAIMS.kind,
        "metadata": metadata,
    }


def has_stale_claim(stateful_set: StatefulSet, pod: Claimant, set_name: str, lookup: Lookup) -> bool:
    """Whether a claim still belongs to an earlier pod of the same name, and will be deleted with it."""
    if stateful_set.spec.persistent_volume_claim_retention_policy.when_scaled != _DELETE:
        return False
    names = [claim_name(each, set_name, pod.ordinal) for each in stateful_set.spec.volume_claim_templates]
    claims = [claim for name in names if (claim := lookup(name)) is not None]
    return any(_is_stale(claim.metadata.owner_references, _pod_ref(pod)) for claim in claims)


def reference_change(
    stateful_set: StatefulSet, pod: Claimant, owner: Owner, claim: VolumeClaim
) -> ClaimChange | None:
    """The owner reference change that the retention policy requires; None if none."""
    references = claim.metadata.owner_references
    set_ref, pod_ref = owner.controller_ref(), _pod_ref(pod)
    if _is_stale(references, set_ref) or _is_stale(references, pod_ref):
        return None
    wanted = (
        () if _has_other_controller(stateful_set, pod, owner, claim) else _wanted(stateful_set, pod, set_ref)
    )
    ours = {each.uid: each for each in references if each.uid in (set_ref.uid, pod.uid or None)}
    uids = {each.uid for each in wanted}
    if ours.keys() == uids and all(each.controller for each in ours.values()):
        return None
    return ClaimChange(claim, tuple(wanted), tuple(uid for uid in ours if uid not in uids))


def _wanted(stateful_set: StatefulSet, pod: Claimant, set_ref: ControllerRef) -> Sequence[ControllerRef]:
    policy: RetentionPolicy = stateful_set.spec.persistent_volume_claim_retention_policy
    if policy.when_scaled == _DELETE and pod.ordinal not in stateful_set.wanted_ordinals:
        return (_pod_ref(pod),)
    return (set_ref,) if policy.when_deleted == _DELETE else ()


def _has_other_controller(stateful_set: StatefulSet, pod: Claimant, owner: Owner, claim: VolumeClaim) -> bool:
    policy = stateful_set.spec.persistent_volume_claim_retention_policy
    if _DELETE not in (policy.when_scaled, policy.when_deleted):
        # A claim that is retained in any case may have any owner.
        return False
    for reference in claim.metadata.owner_references:
        same = next(
            (each for each in (owner.controller_ref(), _pod_ref(pod)) if _is_named(reference, each)), None
        )
        if same.uid != reference.uid if same is not None else reference.controller:
            return True
    return False


def _is_stale(references: Sequence[OwnerReference], ref: ControllerRef) -> bool:
    """Whether it refers to an owner of this kind and name with another UID."""
    named = next((each for each in references if _is_named(each, ref)), None)
    return named is not None and named.uid != ref.uid


def _is_named(reference: OwnerReference, ref: ControllerRef) -> bool:
    return (reference.api_version, reference.kind, reference.name) == (ref.api_version, ref.kind, ref.name)


def _pod_ref(pod: Claimant) -> ControllerRef:
    return ControllerRef(PODS.api_version, PODS.kind, pod.name, pod.uid)

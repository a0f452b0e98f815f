"""Views of claims, volumes and storage classes, and which volume suits a claim. Pure.

Shared by the volume controllers and the scheduler, so that both choose the same volume.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from podlife.api.labels import selector_matches
from podlife.api.node_requirement import NodeRequirement
from podlife.api.quantity import parse_nanos
from podlife.api.views import Metadata

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
STORAGE_PROVISIONER = "volume.kubernetes.io/storage-provisioner"
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
# Indexes of informers: volumes by claim or class, and claims that are not bound by class.
BY_CLAIM = "claim"
UNBOUND = "unbound"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
_CLASS_PREFIXES = ("storageclass.kubernetes.io", "storageclass.beta.kubernetes.io")
DEFAULT_CLASS_ANNOTATIONS = tuple(f"{prefix}/is-default-class" for prefix in _CLASS_PREFIXES)


class VolumeMetadata(Metadata, rename="camel", gc=False):
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class ClaimReference(msgspec.Struct, gc=False):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class _Resources(msgspec.Struct, gc=False):
    requests: dict[str, str] = {}


class ClaimSpec(msgspec.Struct, rename="camel", gc=False):
    access_modes: tuple[str, ...] = ()
    resources: _Resources = msgspec.field(default_factory=_Resources)
    selector: dict[str, Any] | None = None
    storage_class_name: str | None = None
    volume_name: str = ""
    volume_mode: str = "Filesystem"
    volume_attributes_class_name: str | None = None
    data_source_ref: dict[str, Any] | None = None


class ClaimStatus(msgspec.Struct, rename="camel", gc=False):
    phase: str = ""
    access_modes: tuple[str, ...] = ()
    capacity: dict[str, str] = {}
    current_volume_attributes_class_name: str | None = None


class Claim(msgspec.Struct):
    metadata: VolumeMetadata
    spec: ClaimSpec = msgspec.field(default_factory=ClaimSpec)
    status: ClaimStatus = msgspec.field(default_factory=ClaimStatus)

    @property
    def key(self) -> tuple[str, str]:
        return (self.metadata.namespace, self.metadata.name)

    @property
    def class_name(self) -> str:
        annotated = self.metadata.annotations.get(_CLASS_ANNOTATION)
        return annotated if annotated is not None else self.spec.storage_class_name or ""

    @property
    def has_class(self) -> bool:
        """Whether it names a class, even the empty one."""
        return _CLASS_ANNOTATION in self.metadata.annotations or self.spec.storage_class_name is not None

    @property
    def storage(self) -> int:
        return parse_nanos(self.spec.resources.requests.get("storage", "0"))

    @property
    def is_fully_bound(self) -> bool:
        return bool(self.spec.volume_name) and BIND_COMPLETED in self.metadata.annotations


class VolumeSpec(msgspec.Struct, rename="camel", gc=False):
    access_modes: tuple[str, ...] = ()
    capacity: dict[str, str] = {}
    claim_ref: ClaimReference | None = None
    storage_class_name: str = ""
    volume_mode: str = "Filesystem"
    volume_attributes_class_name: str | None = None
    persistent_volume_reclaim_policy: str = ""
    node_affinity: dict[str, Any] | None = None
    host_path: dict[str, Any] | None = None
    csi: dict[str, Any] | None = None


class VolumeStatus(msgspec.Struct, gc=False):
    phase: str = ""


class Volume(msgspec.Struct):
    metadata: VolumeMetadata
    spec: VolumeSpec = msgspec.field(default_factory=VolumeSpec)
    status: VolumeStatus = msgspec.field(default_factory=VolumeStatus)

    @property
    def class_name(self) -> str:
        return self.metadata.annotations.get(_CLASS_ANNOTATION, self.spec.storage_class_name)

    @property
    def storage(self) -> int:
        return parse_nanos(self.spec.capacity.get("storage", "0"))

    def is_bound_to(self, claim: Claim) -> bool:
        """Whether it is bound to the claim, or reserved for it by name."""
        ref = self.spec.claim_ref
        return (
            ref is not None and (ref.namespace, ref.name) == claim.key and ref.uid in ("", claim.metadata.uid)
        )

    def is_reachable_from(self, node_labels: Mapping[str, str]) -> bool:
        required = (self.spec.node_affinity or {}).get("required")
        if required is None:
            return True
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        return NodeRequirement({"affinity": affinity}).matches("", node_labels)


class StorageClass(msgspec.Struct, rename="camel"):
    metadata: VolumeMetadata
    provisioner: str = ""
    reclaim_policy: str = "Delete"
    volume_binding_mode: str = "Immediate"
    mount_options: tuple[str, ...] = ()
    allowed_topologies: tuple[dict[str, Any], ...] = ()

    @property
    def waits_for_consumer(self) -> bool:
        return self.volume_binding_mode == "WaitForFirstConsumer"

    def allows(self, node_labels: Mapping[str, str]) -> bool:
        """Whether volumes may be provisioned for a node with these labels."""
        return not self.allowed_topologies or any(
            all(
                node_labels.get(each.get("key", "")) in (each.get("values") or ())
                for each in term.get("matchLabelExpressions") or ()
            )
            for term in self.allowed_topologies
        )


def default_class(classes: Iterable[StorageClass]) -> StorageClass | None:
    """The newest of the classes that are marked as default."""
    marked = [
        each
        for each in classes
        if any(each.metadata.annotations.get(name) == "true" for name in DEFAULT_CLASS_ANNOTATIONS)
    ]

    def order(each: StorageClass) -> tuple[float, str]:
        created = each.metadata.creation_timestamp
        return (-created.timestamp() if created else 0.0, each.metadata.name)

    return min(marked, key=order, default=None)


def why_unsuitable(volume: Volume, claim: Claim) -> str:
    """Why a volume that the claim names cannot be bound to it; empty if it can."""
    if volume.metadata.deletion_timestamp is not None:
        return f'the volume is marked for deletion "{volume.metadata.name}"'
    if volume.storage < claim.storage:
        return "requested PV is too small"
    if volume.class_name != claim.class_name:
        return "storageClassName does not match"
    if not _has_same_attributes(volume, claim):
        return "volumeAttributesClassName does not match"
    if volume.spec.volume_mode != claim.spec.volume_mode:
        return "incompatible volumeMode"
    return "" if set(claim.spec.access_modes) <= set(volume.spec.access_modes) else "incompatible accessMode"


def find_volume(
    claim: Claim,
    volumes: Iterable[Volume],
    *,
    is_delayed: bool = False,
    node_labels: Mapping[str, str] | None = None,
    excluded: Collection[str] = (),
) -> Volume | None:
    """The volume for a claim: among those with the fewest access modes one that is reserved for it, else the smallest
    available one. Without a node, a claim that waits for its consumer gets reserved volumes only."""
    suitable = [
        each
        for each in volumes
        if each.metadata.name not in excluded and _is_candidate(each, claim, is_delayed, node_labels)
    ]
    if node_labels is None:
        least = min((_mode_count(each) for each in suitable), default=0)
        suitable = [each for each in suitable if _mode_count(each) == least]
    for each in suitable:
        if each.is_bound_to(claim):
            return each if node_labels is None or each.is_reachable_from(node_labels) else None
    return min(suitable, key=lambda each: (each.storage, each.metadata.name), default=None)


def _is_candidate(
    volume: Volume, claim: Claim, is_delayed: bool, node_labels: Mapping[str, str] | None
) -> bool:
    spec = volume.spec
    has_modes = set(claim.spec.access_modes) <= set(spec.access_modes)
    is_alike = spec.volume_mode == claim.spec.volume_mode and _has_same_attributes(volume, claim)
    is_gone = volume.metadata.deletion_timestamp is not None
    if not (has_modes and is_alike) or is_gone or volume.storage < claim.storage:
        return False
    if spec.claim_ref is not None:
        return volume.is_bound_to(claim)
    if node_labels is None and is_delayed:
        return False
    selector = claim.spec.selector
    return (
        volume.status.phase == "Available"
        and (selector is None or selector_matches(selector, volume.metadata.labels))
        and volume.class_name == claim.class_name
        and (node_labels is None or volume.is_reachable_from(node_labels))
    )


def _has_same_attributes(volume: Volume, claim: Claim) -> bool:
    of_volume, of_claim = volume.spec.volume_attributes_class_name, claim.spec.volume_attributes_class_name
    return (of_volume or "") == (of_claim or "")


def _mode_count(volume: Volume) -> int:
    return len(set(volume.spec.access_modes))


def _claim_of_volume(volume: Volume) -> Iterable[str]:
    ref = volume.spec.claim_ref
    # A namespace never contains a colon: classes and claims are different keys.
    return (f"class:{volume.class_name}" if ref is None else f"{ref.namespace}/{ref.name}",)


def _class_of_unbound(claim: Claim) -> Iterable[str]:
    return () if claim.is_fully_bound else (claim.class_name,)


# Shared: an informer has its indexes once.
volumes_by_claim: Any = {BY_CLAIM: _claim_of_volume}
claims_by_class: Any = {UNBOUND: _class_of_unbound}


def volumes_for(claim: Claim, by_index: Callable[[str, str], Iterable[Volume]]) -> Iterator[Volume]:
    """The volumes that are reserved for the claim, and the free ones of its class."""
    for key in ("/".join(claim.key), f"class:{claim.class_name}"):
        yield from by_index(BY_CLAIM, key)


class _ClaimSource(msgspec.Struct, rename="camel", gc=False):
    claim_name: str = ""


class PodVolume(msgspec.Struct, rename="camel", gc=False):
    """A volume of a pod, as far as claims are concerned."""

    name: str = ""
    persistent_volume_claim: _ClaimSource | None = None
    ephemeral: dict[str, Any] | None = None

    def claim_name(self, pod_name: str) -> str:
        """The claim's name; empty if it uses none."""
        if self.persistent_volume_claim is not None:
            return self.persistent_volume_claim.claim_name
        return f"{pod_name}-{self.name}" if self.ephemeral is not None else ""


def claim_problem(claim: Claim, pod_namespace: str, pod_name: str, pod_uid: str) -> str:
    """Why the claim is not that of an ephemeral volume of the pod; empty if it is."""
    if any(each.controller and each.uid == pod_uid for each in claim.metadata.owner_references):
        return ""
    pod, name = f"{pod_namespace}/{pod_name}", "/".join(claim.key)
    return f"PVC {name} was not created for pod {pod} (pod is not owner)"

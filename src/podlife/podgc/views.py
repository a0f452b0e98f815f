"""The fields that the collector decodes of pods and namespaces.

Up to a million pods are kept in memory, so a pod has only what planning and preconditions need. Its owner is not among
them: the answer to its deletion has it (`Deleted`).
"""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from sys import intern

import msgspec

from podlife.api.codec import Object
from podlife.api.views import Metadata
from podlife.podgc.keep_until import KEEP_UNTIL, seconds_of

DISRUPTION_TARGET = "DisruptionTarget"


class PodAnnotations(msgspec.Struct, gc=False):
    """The annotations of a pod that podlife reads."""

    keep_until: str | None = msgspec.field(name=KEEP_UNTIL, default=None)


class PodMetadata(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    finalizers: tuple[str, ...] = ()
    # None for almost every pod, even if it has other annotations.
    annotations: PodAnnotations | None = None

    def __post_init__(self) -> None:
        self.namespace = intern(self.namespace)
        if isinstance(self.annotations, PodAnnotations) and self.annotations.keep_until is None:
            self.annotations = None
        if self.finalizers:
            self.finalizers = tuple(intern(finalizer) for finalizer in self.finalizers)


class PodSpec(msgspec.Struct, rename="camel", gc=False):
    node_name: str = ""

    def __post_init__(self) -> None:
        self.node_name = intern(self.node_name)


class Condition(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_probe_time: str | None = None
    last_transition_time: str | None = None
    observed_generation: int = 0


class PodStatus(msgspec.Struct, rename="camel", gc=False):
    phase: str = ""
    reason: str = ""
    observed_generation: int = 0
    conditions: tuple[Condition, ...] = ()
    # Not an API field: the types of all conditions, in order, for patches that preserve it.
    condition_types: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.phase, self.reason = intern(self.phase), intern(self.reason)
        if self.conditions:
            self.condition_types = _shared(tuple(each.type for each in self.conditions))
            # Only the condition that this controller writes is needed (GC-100); the others would outweigh the pod.
            self.conditions = tuple(each for each in self.conditions if each.type == DISRUPTION_TARGET)


@lru_cache(maxsize=256)
def _shared(types: tuple[str, ...]) -> tuple[str, ...]:
    """Almost all pods share a few combinations of condition types."""
    return types


class Pod(msgspec.Struct, gc=False):
    metadata: PodMetadata
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    @property
    def key(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def kept_until(self) -> float:
        """The end of its keep-until protection, in seconds since 1970; 0 for none."""
        notes = self.metadata.annotations
        return 0.0 if notes is None else seconds_of(notes.keep_until or "")

    @property
    def is_terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def is_terminated(self) -> bool:
        """Counts for the threshold, even with an empty or unknown phase (GC-10)."""
        return self.status.phase not in ("Pending", "Running", "Unknown")

    @property
    def is_candidate(self) -> bool:
        """Terminated or being deleted: only such pods are collected without their node being gone."""
        return self.is_terminating or self.is_terminated

    @property
    def has_ended(self) -> bool:
        """Its phase is final and never rewritten (GC-91)."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def is_evicted(self) -> bool:
        return self.status.phase == "Failed" and self.status.reason == "Evicted"

    @property
    def is_held(self) -> bool:
        """Deleted, and held by its finalizers alone."""
        metadata = self.metadata
        return (
            metadata.deletion_timestamp is not None
            and metadata.deletion_grace_period_seconds == 0
            and bool(metadata.finalizers)
        )


class Terminated(msgspec.Struct, rename="camel", gc=False):
    exit_code: int = 0
    finished_at: datetime | None = None


class ContainerState(msgspec.Struct, gc=False):
    terminated: Terminated | None = None


class ContainerStatus(msgspec.Struct, rename="camel", gc=False):
    state: ContainerState | None = None
    last_state: ContainerState | None = None

    @property
    def end(self) -> Terminated | None:
        """Its last termination."""
        for state in (self.state, self.last_state):
            if state is not None and state.terminated is not None:
                return state.terminated
        return None


class NamespaceMetadata(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    resource_version: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    # Only podlife's own; others may be long.
    annotations: dict[str, str] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        self.name = intern(self.name)
        self.annotations = {
            name: text for name, text in self.annotations.items() if name.startswith("podlife.dev/")
        }


class Namespace(msgspec.Struct, gc=False):
    """Labels and podlife annotations of a namespace."""

    metadata: NamespaceMetadata


class Deleted(msgspec.Struct, gc=False):
    """The answer to a deletion: the object as it is now, or a Status, which has no such metadata."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)


def controller_title(metadata: Object) -> str:
    """KIND/NAME of the controller of an undecoded object, or ""."""
    owner = next((each for each in metadata.get("ownerReferences") or () if each.get("controller")), None)
    return "" if owner is None else f"{owner.get('kind')}/{owner.get('name')}"

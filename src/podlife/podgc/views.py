"""What the collector decodes of pods, and nothing else of them.

A pod is held for as long as it lives, a million of them at a time: it keeps what decides about it and what names
it in a precondition. Its owner is not among that; the answer to its deletion tells it (`Deleted`).
"""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from sys import intern

import msgspec

from podlife.api.views import Metadata
from podlife.podgc.keep_until import KEEP_UNTIL, seconds_of

__all__ = ["Condition", "Deleted", "Namespace", "Pod", "PodMetadata", "PodSpec", "PodStatus"]

DISRUPTION_TARGET = "DisruptionTarget"


class Notes(msgspec.Struct, gc=False):
    """What podlife itself wants to know of a pod's annotations."""

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
    # None for nearly every pod: also where there are others.
    annotations: Notes | None = None

    def __post_init__(self) -> None:
        self.namespace = intern(self.namespace)
        if isinstance(self.annotations, Notes) and self.annotations.keep_until is None:
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
    # No field of the API: the types of all conditions, in their order, for patches that keep it.
    condition_types: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.phase, self.reason = intern(self.phase), intern(self.reason)
        if self.conditions:
            self.condition_types = _shared(tuple(each.type for each in self.conditions))
            # Only the one that this controller writes matters to it (GC-100); the others weigh more than the pod.
            self.conditions = tuple(each for each in self.conditions if each.type == DISRUPTION_TARGET)


@lru_cache(maxsize=256)
def _shared(types: tuple[str, ...]) -> tuple[str, ...]:
    """Pods differ little in the conditions they have: nearly all of them share a few tuples."""
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
        """Until when its own annotation protects it, in seconds since 1970; 0 for not at all."""
        notes = self.metadata.annotations
        return 0.0 if notes is None else seconds_of(notes.keep_until or "")

    @property
    def is_terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def is_terminated(self) -> bool:
        """For the threshold: an empty or unknown phase counts too (GC-10)."""
        return self.status.phase not in ("Pending", "Running", "Unknown")

    @property
    def has_ended(self) -> bool:
        """Such a phase is never rewritten (GC-91)."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def is_evicted(self) -> bool:
        return self.status.phase == "Failed" and self.status.reason == "Evicted"

    @property
    def is_held(self) -> bool:
        """Nothing is left to delete: it goes when its finalizers do."""
        metadata = self.metadata
        return (
            metadata.deletion_timestamp is not None
            and metadata.deletion_grace_period_seconds == 0
            and bool(metadata.finalizers)
        )


class NamespaceMetadata(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    resource_version: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    # Those of ours only; others may be long.
    annotations: dict[str, str] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        self.name = intern(self.name)
        self.annotations = {
            name: text for name, text in self.annotations.items() if name.startswith("podlife.dev/")
        }


class Namespace(msgspec.Struct, gc=False):
    """What is decided by of the namespace of a pod: how it is labelled, and what a person has said on it."""

    metadata: NamespaceMetadata


class Deleted(msgspec.Struct, gc=False):
    """What a server answers to a deletion: the object as it stands now, or a Status, which has no such metadata."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)

"""What `podlife up` and `podlife status` read of nodes and pods, and how they describe it."""

from __future__ import annotations

from datetime import datetime

import msgspec

from podlife.api.views import Metadata, PodSpec, Taint
from podlife.explain import PodIdentity

_BY_REASON = {
    "DeletionByPodGC": "collected by pod GC",
    "DeletionByTaintManager": "evicted: its node has a taint that it does not tolerate",
    "EvictionByEvictionAPI": "evicted, as kubectl drain does",
    "PreemptionByScheduler": "preempted for a pod of higher priority",
    "TerminationByKubelet": "ended by its node",
}
# Reasons whose message says more than the reason itself.
_WITH_MESSAGE = ("DeletionByPodGC", "TerminationByKubelet", "PreemptionByScheduler")


class _Condition(msgspec.Struct, rename="camel", frozen=True, gc=False):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_heartbeat_time: datetime | None = None


class _Waiting(msgspec.Struct, frozen=True, gc=False):
    reason: str = ""


class _State(msgspec.Struct, frozen=True, gc=False):
    waiting: _Waiting | None = None


class _Container(msgspec.Struct, frozen=True, gc=False):
    state: _State = _State()


class _PodStatus(msgspec.Struct, rename="camel", frozen=True, gc=False):
    phase: str = ""
    reason: str = ""
    conditions: tuple[_Condition, ...] = ()
    container_statuses: tuple[_Container, ...] = ()


class DisplayedPod(msgspec.Struct, frozen=True, gc=False):
    metadata: Metadata
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: _PodStatus = _PodStatus()

    @property
    def name(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def state(self) -> str:
        """As in kubectl's STATUS column."""
        if self.metadata.deletion_timestamp is not None:
            return "Terminating"
        for each in self.status.container_statuses:
            if each.state.waiting is not None and each.state.waiting.reason not in (
                "",
                "ContainerCreating",
                "PodInitializing",
            ):
                return each.state.waiting.reason
        return self.status.reason or self.status.phase or "Pending"

    @property
    def has_ended(self) -> bool:
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def disruption(self) -> str:
        """Why the pod is being disrupted; empty if it is not."""
        for each in self.status.conditions:
            if each.type == "DisruptionTarget" and each.status == "True":
                why = _BY_REASON.get(each.reason, each.reason)
                message = each.message.removeprefix("PodGC: ") if each.reason in _WITH_MESSAGE else ""
                return f"{why}: {message}" if message else why
        return ""

    @property
    def identity(self) -> PodIdentity:
        metadata = self.metadata
        owner = next((each for each in metadata.owner_references if each.controller), None)
        return PodIdentity(
            metadata.namespace,
            metadata.name,
            metadata.uid,
            metadata.creation_timestamp,
            ("", "") if owner is None else (owner.kind, owner.name),
            fields={"spec.nodeName": self.spec.node_name},
        )


class _NodeSpec(msgspec.Struct, frozen=True, gc=False):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class _NodeStatus(msgspec.Struct, frozen=True, gc=False):
    conditions: tuple[_Condition, ...] = ()


class DisplayedNode(msgspec.Struct, frozen=True, gc=False):
    metadata: Metadata
    spec: _NodeSpec = _NodeSpec()
    status: _NodeStatus = _NodeStatus()

    @property
    def ready(self) -> _Condition:
        return next((each for each in self.status.conditions if each.type == "Ready"), _Condition())

    @property
    def is_ready(self) -> bool:
        return self.ready.status == "True"

    @property
    def state(self) -> str:
        """As kubectl shows it."""
        state = "Ready" if self.is_ready else "NotReady"
        return f"{state},SchedulingDisabled" if self.spec.unschedulable else state

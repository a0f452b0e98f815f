"""Views of nodes and of what is on them."""

from __future__ import annotations

import ipaddress

import msgspec

from podlife.api.views import Metadata
from podlife.nodehealth.views import READY, MonitoredNodeCondition, NodeTaint, Toleration

ANNOTATION = "podlife.dev/out-of-service"
_CONTROL_PLANE = "node-role.kubernetes.io/control-plane"


class FencedNodeMetadata(Metadata):
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}

    def __post_init__(self) -> None:
        Metadata.__post_init__(self)
        # Others are not needed, and can be larger than the rest of the node.
        self.labels = {key: self.labels[key] for key in (_CONTROL_PLANE,) if key in self.labels}
        self.annotations = {key: self.annotations[key] for key in (ANNOTATION,) if key in self.annotations}


class FencedNodeSpec(msgspec.Struct, gc=False):
    taints: tuple[NodeTaint, ...] = ()
    provider_id: str = msgspec.field(default="", name="providerID")


class FencedNodeCondition(MonitoredNodeCondition, frozen=True):
    last_transition_time: str | None = None


class NodeAddress(msgspec.Struct, gc=False, frozen=True):
    type: str = ""
    address: str = ""


class FencedNodeStatus(msgspec.Struct, gc=False):
    conditions: tuple[FencedNodeCondition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()


class FencedNode(msgspec.Struct, gc=False):
    metadata: FencedNodeMetadata
    spec: FencedNodeSpec = msgspec.field(default_factory=FencedNodeSpec)
    status: FencedNodeStatus = msgspec.field(default_factory=FencedNodeStatus)

    @property
    def ready(self) -> FencedNodeCondition | None:
        return next((each for each in self.status.conditions if each.type == READY), None)

    @property
    def is_ready(self) -> bool:
        return self.ready is not None and self.ready.status == "True"

    @property
    def is_control_plane(self) -> bool:
        return _CONTROL_PLANE in self.metadata.labels

    @property
    def internal_ips(self) -> tuple[str, ...]:
        """Untrusted: only valid addresses are kept."""
        addresses = (each.address for each in self.status.addresses if each.type == "InternalIP")
        return tuple(each for each in addresses if _is_address(each))


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


class PodOnNodeSpec(msgspec.Struct, gc=False):
    tolerations: tuple[Toleration, ...] = ()


class PodOnNode(msgspec.Struct, gc=False):
    metadata: Metadata
    spec: PodOnNodeSpec = msgspec.field(default_factory=PodOnNodeSpec)


class AttachmentSpec(msgspec.Struct, rename="camel", gc=False):
    node_name: str = ""


class Attachment(msgspec.Struct, gc=False):
    metadata: Metadata
    spec: AttachmentSpec = msgspec.field(default_factory=AttachmentSpec)

"""What the two controllers read of Services, pods, nodes and of what they wrote before."""

from __future__ import annotations

from datetime import datetime
from ipaddress import ip_address
from typing import Any

import msgspec

from podlife.api.codec import Object
from podlife.api.views import Metadata

_HEADLESS = "None"


class Labelled(Metadata, rename="camel", gc=False):
    labels: dict[str, str] = {}


class Annotated(Labelled, rename="camel", gc=False):
    annotations: dict[str, str] = {}


class ServicePort(msgspec.Struct, rename="camel", gc=False):
    port: int = 0
    name: str = ""
    protocol: str = "TCP"
    target_port: int | str = 0
    app_protocol: str | None = None


class ServiceSpec(msgspec.Struct, rename="camel", gc=False):
    type: str = ""
    selector: dict[str, str] | None = None
    ports: tuple[ServicePort, ...] = ()
    cluster_ip: str = msgspec.field(name="clusterIP", default="")
    ip_families: tuple[str, ...] = ()
    publish_not_ready_addresses: bool = False
    traffic_distribution: str | None = None


class Service(msgspec.Struct, gc=False):
    metadata: Labelled
    spec: ServiceSpec = msgspec.field(default_factory=ServiceSpec)

    @property
    def selects_pods(self) -> bool:
        """Whether its endpoints are those of pods; others write their endpoints themselves."""
        return self.spec.selector is not None and self.spec.type != "ExternalName"

    @property
    def is_headless(self) -> bool:
        return self.spec.cluster_ip in ("", _HEADLESS)

    @property
    def families(self) -> tuple[str, ...]:
        if self.spec.ip_families:
            return self.spec.ip_families
        # Of a server that does not set it.
        return ("IPv4", "IPv6") if self.is_headless else (family_of(self.spec.cluster_ip),)

    def selects(self, labels: dict[str, str]) -> bool:
        wanted = self.spec.selector if self.selects_pods else None
        return wanted is not None and wanted.items() <= labels.items()


class ContainerPort(msgspec.Struct, rename="camel", gc=False):
    container_port: int = 0
    name: str = ""
    protocol: str = "TCP"


class Container(msgspec.Struct, rename="camel", gc=False):
    ports: tuple[ContainerPort, ...] = ()
    # Only sidecars among the init containers have one.
    restart_policy: str = ""


class PodSpec(msgspec.Struct, rename="camel", gc=False):
    node_name: str = ""
    hostname: str = ""
    subdomain: str = ""
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()


class PodIP(msgspec.Struct, gc=False):
    ip: str = ""


class Condition(msgspec.Struct, rename="camel", gc=False):
    type: str = ""
    status: str = ""
    last_transition_time: datetime | None = None


class PodStatus(msgspec.Struct, rename="camel", gc=False):
    phase: str = ""
    pod_ips: tuple[PodIP, ...] = msgspec.field(name="podIPs", default=())
    conditions: tuple[Condition, ...] = ()


class EndpointPod(msgspec.Struct, gc=False):
    metadata: Labelled
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    @property
    def readiness(self) -> Condition | None:
        return next((each for each in self.status.conditions if each.type == "Ready"), None)

    @property
    def is_ready(self) -> bool:
        found = self.readiness
        return found is not None and found.status == "True"

    @property
    def is_terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def has_endpoint(self) -> bool:
        return self.status.phase not in ("Succeeded", "Failed") and bool(self.status.pod_ips)

    def addresses(self, family: str) -> list[str]:
        """Without those of loopback, where pods of a local cluster are: the server refuses them as endpoints."""
        found = (each.ip for each in self.status.pod_ips if family_of(each.ip) == family)
        return [address for address in found if not ip_address(address).is_loopback]


class Node(msgspec.Struct, gc=False):
    metadata: Labelled


class EndpointSlice(msgspec.Struct, rename="camel", gc=False):
    metadata: Annotated
    address_type: str = ""
    endpoints: list[dict[str, Any]] | None = None
    ports: list[dict[str, Any]] | None = None


class Endpoints(msgspec.Struct, gc=False):
    metadata: Annotated
    subsets: list[Object] | None = None


def family_of(address: str) -> str:
    """IPv4 or IPv6; empty for an invalid address."""
    try:
        return f"IPv{ip_address(address).version}"
    except ValueError:
        return ""

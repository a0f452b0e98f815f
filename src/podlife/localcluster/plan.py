"""Components of a local cluster and their configurations, derived from its settings."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from podlife.daemons.catalog import (
    CSR_SIGNING,
    LOCAL_PATH,
    POD_GC,
    ROOT_CA_PUBLISHER,
    SERVICE_ACCOUNT,
    TOKENS_CONTROLLER,
    choose,
)
from podlife.localcluster.components import APISERVER, CONTROLLERS, HOLLOW_NODES, NODE, POD_SHUTDOWN, UI
from podlife.localcluster.forkserver import Message
from podlife.localcluster.state_dir import StateDir
from podlife.localcluster.supervisor import Component
from podlife.nodehealth import NodeHealthSettings

# Nodes are NODE-0, NODE-1 …
_NODE = "node"
# The nodes of one machine share its network, and so do their clients.
_ADDRESS = "127.0.0.1"
# Of a network for documentation: the route to it is the default one. Nothing is sent.
_ANYWHERE = "https://192.0.2.1"


@dataclass(frozen=True, slots=True)
class LocalClusterSettings:
    nodes: int = 3
    # `process`, `containerd` or `sim`.
    runtime: str = "process"
    port: int = 6443
    bind: str = "127.0.0.1"
    # Further names and addresses of the API server.
    names: tuple[str, ...] = ()
    # Address at which pods reach the API server. Empty: with containerd one of this machine, else the loopback.
    advertise_address: str = ""
    controllers: tuple[str, ...] = ("*", "scheduler", "local-path-provisioner")
    node_health: NodeHealthSettings = field(default_factory=NodeHealthSettings)
    max_pods: int = 110
    pod_gc_threshold: int = 12_500
    pod_gc_quarantine_seconds: float = 40.0
    node_lease_seconds: int = 40
    not_ready_toleration_seconds: int = 300
    unreachable_toleration_seconds: int = 300
    # 0 keeps events.
    event_ttl_seconds: float = 3600.0
    # How long pods may take to terminate when the cluster stops.
    stop_seconds: float = 30.0
    containerd_socket: Path = Path("/run/containerd/containerd.sock")
    # For simulated nodes.
    scenario: Path | None = None
    # None: in the state directory; empty: no audit log.
    audit_log_path: str | None = None
    audit_policy_file: str = ""
    audit_log_max_mb: int = 10
    audit_log_max_days: int = 0
    audit_log_max_backups: int = 3
    # Whether the page is served.
    ui: bool = True
    verbosity: int = 0


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    settings: LocalClusterSettings
    state_dir: StateDir

    @property
    def is_simulated(self) -> bool:
        return self.settings.runtime == "sim"

    @property
    def node_names(self) -> list[str]:
        return [f"{_NODE}-{number}" for number in range(self.settings.nodes)]

    @property
    def audit_log_path(self) -> str:
        """Empty: no audit log."""
        path = self.settings.audit_log_path
        return str(self.state_dir.audit_log) if path is None else path

    def make_apiserver(self) -> Component:
        settings = self.settings
        config: dict[str, Any] = {
            "data": str(self.state_dir.path),
            "bind": settings.bind,
            "port": settings.port,
            "names": list(settings.names),
            "advertise_address": self._advertise_address,
            "needs_accounts": {SERVICE_ACCOUNT, ROOT_CA_PUBLISHER} <= self._controller_names,
            "not_ready_toleration_seconds": settings.not_ready_toleration_seconds,
            "unreachable_toleration_seconds": settings.unreachable_toleration_seconds,
            "event_ttl_seconds": settings.event_ttl_seconds,
            "audit_log_path": self.audit_log_path,
            "audit_policy_file": settings.audit_policy_file,
            "audit_log_max_mb": settings.audit_log_max_mb,
            "audit_log_max_days": settings.audit_log_max_days,
            "audit_log_max_backups": settings.audit_log_max_backups,
        }
        return self._component(APISERVER, APISERVER, config)

    @property
    def _controller_names(self) -> set[str]:
        return {each.name for each in choose(self.settings.controllers)}

    @property
    def _advertise_address(self) -> str:
        """Pods of containerd have a network of their own, in which the loopback is theirs."""
        given = self.settings.advertise_address
        if given or self.settings.runtime != "containerd" or self.settings.bind != _ADDRESS:
            return given
        from podlife.daemons.node import own_address

        address = own_address(_ANYWHERE)
        return "" if address == _ADDRESS else address

    def make_controllers(self) -> Component:
        key = self.state_dir.path / "pki" / "sa.key"
        pod_gc = {
            "threshold": self.settings.pod_gc_threshold,
            "quarantine_seconds": self.settings.pod_gc_quarantine_seconds,
        }
        signing = {"signing_cert_file": str(self.state_dir.authority_pem)}
        config = {
            "kubeconfig": str(self.state_dir.controllers_kubeconfig),
            "controllers": list(self.settings.controllers),
            "options": {
                POD_GC: pod_gc,
                CSR_SIGNING: signing,
                LOCAL_PATH: {"root": str(self.state_dir.volumes)},
                TOKENS_CONTROLLER: {"private_key_file": str(key)},
            },
            "node_health": asdict(self.settings.node_health),
            "verbosity": self.settings.verbosity,
        }
        return self._component(CONTROLLERS, CONTROLLERS, config)

    def make_ui(self) -> Component | None:
        """Its token is that of the state directory, so that the address survives restarts."""
        if not self.settings.ui:
            return None
        config = {
            "kubeconfig": str(self.state_dir.kubeconfig),
            "port": 0,
            "token": self.state_dir.page_token(),
            "audit_log": self.audit_log_path,
            "threshold": self.settings.pod_gc_threshold,
            "quarantine_seconds": self.settings.pod_gc_quarantine_seconds,
            "verbosity": self.settings.verbosity,
        }
        return self._component(UI, UI, config)

    @property
    def simulated_kubeconfig(self) -> Path:
        return self.state_dir.node(_NODE) / "kubeconfig"

    def make_nodes(self) -> list[Component]:
        """One process each; simulated nodes share one process, where a node costs next to nothing."""
        if not self.is_simulated:
            return [self._component(name, NODE, self._node_config(name)) for name in self.node_names]
        if not self.settings.nodes:
            return []
        scenario = self.settings.scenario
        config = {
            "kubeconfig": str(self.simulated_kubeconfig),
            "name": _NODE,
            "data": str(self.state_dir.node(_NODE)),
            "nodes": self.settings.nodes,
            "max_pods": self.settings.max_pods,
            "scenario": "" if scenario is None else str(scenario),
            "verbosity": self.settings.verbosity,
        }
        return [self._component("nodes", HOLLOW_NODES, config)]

    def make_pod_shutdowns(self) -> list[Component]:
        """Components that terminate the pods of stopped nodes. Simulated pods end with their process."""
        if self.is_simulated:
            return []
        grace = {"grace_seconds": self.settings.stop_seconds}
        return [
            self._component(f"pods of {name}", POD_SHUTDOWN, self._node_config(name) | grace)
            for name in self.node_names
        ]

    def _node_config(self, name: str) -> Message:
        data = self.state_dir.node(name)
        return {
            "name": name,
            "data": str(data),
            "kubeconfig": str(data / "kubeconfig"),
            "runtime": self.settings.runtime,
            "address": _ADDRESS,
            "max_pods": self.settings.max_pods,
            "containerd_socket": str(self.settings.containerd_socket),
            "node_lease_duration_seconds": self.settings.node_lease_seconds,
            "verbosity": self.settings.verbosity,
        }

    def _component(self, name: str, kind: str, config: Message) -> Component:
        return Component(name, kind, config, self.state_dir.log(name.replace(" ", "-")))


def keep_port(server: Component, url: str) -> None:
    """Give a restarted server the port that clients know."""
    server.config = {**server.config, "port": urlsplit(url).port}

"""From what the user asked of `podlife up` to its parts: API server, controllers, nodes, and the order of each."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from podlife.cli.commands.controllers.nodehealth_options import NodeHealthOptions
from podlife.cli.commands.up.app import UpOptions
from podlife.localcluster.components import (
    APISERVER,
    CONTROLLERS,
    FLEET,
    NODE,
    STOP_PODS,
)
from podlife.localcluster.forkserver import Message
from podlife.localcluster.state_dir import UpFolder
from podlife.localcluster.supervisor import Supervised

__all__ = ["Plan", "keep_port"]

# Nodes are NODE-0, NODE-1 …
_NODE = "node"
# The nodes of one machine share its network; who calls them calls from there.
_ADDRESS = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Plan:
    options: UpOptions
    health: NodeHealthOptions
    controllers: tuple[str, ...]
    folder: UpFolder
    verbosity: int = 0

    @property
    def is_simulated(self) -> bool:
        return self.options.runtime == "sim"

    @property
    def node_names(self) -> list[str]:
        return [f"{_NODE}-{number}" for number in range(self.options.nodes)]

    @property
    def audit_log_path(self) -> str:
        """Empty where there is none."""
        path = self.options.audit_log_path
        return str(self.folder.audit_log) if path is None else path

    def make_apiserver(self) -> Supervised:
        options = self.options
        order: dict[str, Any] = {
            "data": str(self.folder.path),
            "bind": options.bind,
            "port": options.port,
            "names": list(options.name or ()),
            "not_ready_toleration_seconds": options.default_not_ready_toleration_seconds,
            "unreachable_toleration_seconds": options.default_unreachable_toleration_seconds,
            "audit_log_path": self.audit_log_path,
            "audit_policy_file": options.audit_policy_file,
            "audit_log_max_mb": options.audit_log_maxsize,
            "audit_log_max_days": options.audit_log_maxage,
            "audit_log_max_backups": options.audit_log_maxbackup,
        }
        return self._part(APISERVER, APISERVER, order)

    def make_controllers(self) -> Supervised:
        order = {
            "kubeconfig": str(self.folder.controllers_kubeconfig),
            "controllers": list(self.controllers),
            "syncs": {
                "terminated_pod_gc_threshold": self.options.terminated_pod_gc_threshold,
                "pod_gc_quarantine": self.options.pod_gc_quarantine,
            },
            "health": asdict(self.health),
            "verbosity": self.verbosity,
        }
        return self._part(CONTROLLERS, CONTROLLERS, order)

    @property
    def simulated_kubeconfig(self) -> Path:
        return self.folder.node(_NODE) / "kubeconfig"

    def make_nodes(self) -> list[Supervised]:
        """One process each; simulated ones are all in one, where a node costs next to nothing."""
        if not self.is_simulated:
            return [self._part(name, NODE, self._node_order(name)) for name in self.node_names]
        if not self.options.nodes:
            return []
        order = {
            "kubeconfig": str(self.simulated_kubeconfig),
            "name": _NODE,
            "data": str(self.folder.node(_NODE)),
            "nodes": self.options.nodes,
            "max_pods": self.options.max_pods,
            "scenario": "" if self.options.scenario is None else str(self.options.scenario),
            "verbosity": self.verbosity,
        }
        return [self._part("nodes", FLEET, order)]

    def make_stoppers(self) -> list[Supervised]:
        """What ends the pods of nodes whose agents have ended. Simulated pods end with their process."""
        if self.is_simulated:
            return []
        grace = {"grace_seconds": self.options.stop_timeout}
        return [
            self._part(f"pods of {name}", STOP_PODS, self._node_order(name) | grace)
            for name in self.node_names
        ]

    def _node_order(self, name: str) -> Message:
        folder = self.folder.node(name)
        return {
            "name": name,
            "data": str(folder),
            "kubeconfig": str(folder / "kubeconfig"),
            "runtime": self.options.runtime,
            "address": _ADDRESS,
            "max_pods": self.options.max_pods,
            "containerd_socket": str(self.options.containerd_socket),
            "node_lease_duration_seconds": self.options.node_lease_duration_seconds,
            "verbosity": self.verbosity,
        }

    def _part(self, name: str, kind: str, order: Message) -> Supervised:
        return Supervised(name, kind, order, self.folder.log(name.replace(" ", "-")))


def keep_port(apiserver: Supervised, url: str) -> None:
    """Whoever knows the server finds it where it was, also after it was started again."""
    apiserver.order = {**apiserver.order, "port": urlsplit(url).port}

"""How a node presents itself to its cluster, with upstream's defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from podlife import __version__

# The Kubernetes whose behaviour this is, as others compare it, and whose work it is.
KUBELET_VERSION = f"v1.36.0+podlife.{__version__}"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Below which the node says that it is short of something; None is never. What must stay free of memory and
    storage is not given to pods either."""

    memory_bytes: int | None = 100 * 1024 * 1024
    storage_percent: float | None = 10.0
    inodes_percent: float | None = 5.0
    pids_percent: float | None = None


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """`labels`, `taints` and `annotations` are given to a node that this kubelet creates; of one that exists
    only the labels that a kubelet owns are set. `register_again`: a deleted node is created again at once;
    upstream does that only when the kubelet restarts. `hostname` is a name that API servers can
    resolve; without it they reach the node by its first address."""

    name: str
    hostname: str = ""
    addresses: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, Any], ...] = ()
    provider_id: str = ""
    kubelet_port: int = 10250
    kubelet_version: str = KUBELET_VERSION
    max_pods: int = 110
    # Quantities by resource that pods do not get, besides what the thresholds keep free.
    reserved: Mapping[str, str] = field(default_factory=dict)
    thresholds: Thresholds = Thresholds()
    # How long a shortage that is over is still reported: one that comes and goes must not move pods.
    pressure_seconds: float = 300.0
    lease_seconds: int = 40
    renew_seconds: float = 10.0
    check_seconds: float = 10.0
    report_seconds: float = 300.0
    # For how long a runtime that does not answer is believed to be there.
    runtime_patience_seconds: float = 30.0
    # Off if an informer that many kubelets share passes the node on as it changes.
    watches: bool = True
    register_again: bool = False
    # Serve the node even if another kubelet renews its lease; that kubelet ends.
    takes_over: bool = False

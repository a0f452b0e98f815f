"""How a node presents itself to its cluster, with upstream's defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from podlife import __version__

# The implemented Kubernetes version in comparable form, and podlife's own.
KUBELET_VERSION = f"v1.36.0+podlife.{__version__}"


RESIZE_FEATURES = ("InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers")
"""The API server allows these resizes only on nodes that declare them."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Pressure thresholds; None disables one. The memory and storage thresholds are also subtracted from what pods can
    allocate."""

    memory_bytes: int | None = 100 * 1024 * 1024
    storage_percent: float | None = 10.0
    inodes_percent: float | None = 5.0
    pids_percent: float | None = None


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """`labels`, `taints` and `annotations` apply to a node that this kubelet creates; on an existing node only the
    labels that a kubelet owns are set. `register_again`: a deleted node is created again at once; upstream does that
    only when the kubelet restarts. `hostname` must be resolvable by API servers; without it they use the first
    address."""

    name: str
    hostname: str = ""
    addresses: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, Any], ...] = ()
    provider_id: str = ""
    kubelet_port: int = 10250
    # Features that API servers may use with this kubelet.
    declared_features: tuple[str, ...] = RESIZE_FEATURES
    kubelet_version: str = KUBELET_VERSION
    max_pods: int = 110
    # Quantities by resource that are not allocatable, in addition to the thresholds.
    reserved: Mapping[str, str] = field(default_factory=dict)
    thresholds: Thresholds = Thresholds()
    # How long pressure is reported after it has ended, so that fluctuations do not move pods.
    pressure_seconds: float = 300.0
    lease_seconds: int = 40
    renew_seconds: float = 10.0
    check_seconds: float = 10.0
    report_seconds: float = 300.0
    # How long an unresponsive runtime still counts as available.
    runtime_patience_seconds: float = 30.0
    # False if a shared informer passes on changes of the node.
    watches: bool = True
    register_again: bool = False
    # Serve the node even if another kubelet renews its lease; that kubelet exits.
    takes_over: bool = False

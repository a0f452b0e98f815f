"""The probes of a node's pods: asked when they are due, and what they found.

`ProberManager` is the `Probes` of `podlife.kubelet.interfaces`. When a probe runs and what its results mean is decided
in `podlife.kubelet.prober_state`; how it is asked over the network stands in `podlife.kubelet.probe`.
"""

from podlife.kubelet.prober.manager import PodStatuses, ProberManager
from podlife.kubelet.prober.metrics import (
    PROBE_SECONDS,
    PROBE_TOTAL,
    ProbeLabels,
    ProbeMetrics,
)

__all__ = ["PROBE_SECONDS", "PROBE_TOTAL", "PodStatuses", "ProbeLabels", "ProbeMetrics", "ProberManager"]

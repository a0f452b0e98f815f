"""The probes of a node's pods: asked when they are due, and what they found.

`ProbeManager` is the `Probes` of `podlife.kubelet.ports`. When a probe runs and what its results mean is decided in
`podlife.kubelet.lifecycle.probes`; how it is asked over the network stands in `podlife.kubelet.asking`.
"""

from podlife.kubelet.probing.metrics import PROBE_SECONDS, PROBE_TOTAL, ProbeLabels, ProbeMetrics
from podlife.kubelet.probing.probe_manager import ProbeManager, Statuses

__all__ = ["PROBE_SECONDS", "PROBE_TOTAL", "ProbeLabels", "ProbeManager", "ProbeMetrics", "Statuses"]

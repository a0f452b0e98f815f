"""Settings of node health. Names and defaults are kube-controller-manager's, except the grace period, which is the
well-known 40 s (v1.36: 50 s).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NodeHealthSettings:
    # The pause between two looks at all nodes (NL-01).
    monitor_period_seconds: float = 5.0
    # How long a node may be silent, and how long one that has never said anything.
    monitor_grace_seconds: float = 40.0
    startup_grace_seconds: float = 60.0
    # How many nodes of a zone are tainted in a second, and in a large one that is partly down (NL-02).
    eviction_rate: float = 0.1
    secondary_eviction_rate: float = 0.01
    # A zone with more nodes than this is large; a small one that is partly down is not evicted (NL-72).
    large_zone_threshold: int = 50
    unhealthy_zone_threshold: float = 0.55

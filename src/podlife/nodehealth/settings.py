"""Settings of node health. Names and defaults are kube-controller-manager's, except the grace period, which is the
well-known 40 s (v1.36: 50 s).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NodeHealthSettings:
    # Interval between passes over all nodes (NL-01).
    monitor_period_seconds: float = 5.0
    # Grace period of a node that stops reporting, and of one that has never reported.
    monitor_grace_seconds: float = 40.0
    startup_grace_seconds: float = 60.0
    # Nodes tainted per second and zone, and in a large zone that is partly down (NL-02).
    eviction_rate: float = 0.1
    secondary_eviction_rate: float = 0.01
    # A zone with more nodes than this is large; a small one that is partly down is not evicted (NL-72).
    large_zone_threshold: int = 50
    unhealthy_zone_threshold: float = 0.55

"""What node health is judged by. The names are kube-controller-manager's; so are the defaults, but for the grace, which
is the 40 s that people know (v1.36 has 50 s)."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Settings"]


@dataclass(frozen=True, slots=True)
class Settings:
    # The pause between two looks at all nodes (NL-01).
    monitor_period_seconds: float = 5.0
    # How long a node may be silent, and how long one that has never said anything.
    monitor_grace_seconds: float = 40.0
    startup_grace_seconds: float = 60.0
    # How many nodes of a zone are tainted in a second, and in a large one that is partly down (NL-02).
    eviction_rate: float = 0.1
    secondary_eviction_rate: float = 0.01
    # A zone with more nodes than this is large; in a small one that is partly down nobody is evicted (NL-72).
    large_zone_threshold: int = 50
    unhealthy_zone_threshold: float = 0.55

"""What the collector counts about itself: plain numbers that an exporter reads when it is asked.

The two counters have upstream's names and labels, but count what happened: a pod once when the server has taken
its deletion, never a failed try (GC-112) and never one that was gone already (GC-113).
"""

from __future__ import annotations

from collections import Counter

from podlife.podgc.settings import Cause
from podlife.workqueue import Distribution

__all__ = ["DELETED_TOTAL", "ERRORS_TOTAL", "Metrics"]

DELETED_TOTAL = "pod_gc_collector_force_delete_pods_total"
ERRORS_TOTAL = "pod_gc_collector_force_delete_pod_errors_total"

_REACTION_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_PASS_SECONDS = (0.00001, 0.0001, 0.001, 0.01, 0.1, 1.0, 10.0)


class Metrics:
    """`deleted` and `errors` are by namespace and reason."""

    def __init__(self) -> None:
        self.deleted: Counter[tuple[str, Cause]] = Counter()
        self.errors: Counter[tuple[str, Cause]] = Counter()
        # From the event that made a pod collectable to its deletion on the wire.
        self.reaction_seconds = Distribution(_REACTION_SECONDS)
        # How long it took to decide, in a look at everything or after an event.
        self.pass_seconds = Distribution(_PASS_SECONDS)
        self.node_checks: Counter[str] = Counter()
        # By the rule that chose them.
        self.deleted_by_rule: Counter[str] = Counter()
        # How many policies were put in force, and how often one was taken or refused.
        self.policy_generation = 1
        self.policy_reloads: Counter[str] = Counter()
        self.is_policy_refused = False
        # Pods that would have been deleted if the collector did not only observe, each once.
        self.observed: Counter[tuple[str, Cause]] = Counter()
        # Which guards have held somebody back of late, and where; where a mass failure was seen, and how often one was.
        self.held_back: set[tuple[str, str]] = set()
        self.stops: set[str] = set()
        self.mass_stops = 0

"""Metrics of the collector, as plain numbers; `prometheus` exports them.

Two counters have upstream's names and labels, but count results: a pod counts once, when the server has accepted its
deletion; failed attempts (GC-112) and pods that were already gone (GC-113) do not count.
"""

from __future__ import annotations

from collections import Counter

from podlife.podgc.reasons import Cause
from podlife.workqueue import Distribution

DELETED_TOTAL = "pod_gc_collector_force_delete_pods_total"
ERRORS_TOTAL = "pod_gc_collector_force_delete_pod_errors_total"

_REACTION_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_PASS_SECONDS = (0.00001, 0.0001, 0.001, 0.01, 0.1, 1.0, 10.0)


class Metrics:
    """`deleted` and `errors` are by namespace and reason."""

    def __init__(self) -> None:
        self.deleted: Counter[tuple[str, Cause]] = Counter()
        self.errors: Counter[tuple[str, Cause]] = Counter()
        # From the event that made a pod collectable to the delete request.
        self.reaction_seconds = Distribution(_REACTION_SECONDS)
        # Duration of planning, in a full pass or after an event.
        self.pass_seconds = Distribution(_PASS_SECONDS)
        self.node_checks: Counter[str] = Counter()
        # By rule.
        self.deleted_by_rule: Counter[str] = Counter()
        # Number of policies put in force, and of reloads by result.
        self.policy_generation = 1
        self.policy_reloads: Counter[str] = Counter()
        self.is_policy_refused = False
        # Pods that observe-only kept from being deleted, each counted once.
        self.observed: Counter[tuple[str, Cause]] = Counter()
        # Guards that hold pods back, by guard and namespace; places of mass failures, and their number so far.
        self.held_back: set[tuple[str, str]] = set()
        self.stops: set[str] = set()
        self.mass_stops = 0

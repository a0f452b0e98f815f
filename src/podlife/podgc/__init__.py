"""The pod garbage collector: finds, explains and removes pods that no other controller removes.

Events keep a `PodIndex` up to date, `planner` selects victims with pure functions, `Collector` removes them while it
runs and `GcSession` once. Every deletion carries a UID, nothing is decided on stale caches, and plans, sweeps and the
running controller make the same decisions, including guards. The GC- rules are upstream's behaviour;
docs/parity.md has the deliberate differences, docs/gc-from-python.md the use from Python.
"""

from podlife.podgc.collector import Collector
from podlife.podgc.finalizers.round import Finalizers
from podlife.podgc.index import PodIndex
from podlife.podgc.metrics import Metrics
from podlife.podgc.plan import Action, Guard, HeldBack, Later, Plan, Refusal, Upcoming, Victim, WaitingVictim
from podlife.podgc.policy.model import Guards, Policy
from podlife.podgc.policy.parse import PolicyError, load_policy, read_policy
from podlife.podgc.reasons import Reason, RuleReason
from podlife.podgc.removal import Outcome, PreDeleteStep, Removal, Stay
from podlife.podgc.session import Deletions, GcSession
from podlife.podgc.settings import FeatureGates, Selection, Settings
from podlife.podgc.summary import Failure, Progress, Summary

__all__ = [
    "Action",
    "Collector",
    "Deletions",
    "Failure",
    "FeatureGates",
    "Finalizers",
    "GcSession",
    "Guard",
    "Guards",
    "HeldBack",
    "Later",
    "Metrics",
    "Outcome",
    "Plan",
    "PodIndex",
    "Policy",
    "PolicyError",
    "PreDeleteStep",
    "Progress",
    "Reason",
    "Refusal",
    "Removal",
    "RuleReason",
    "Selection",
    "Settings",
    "Stay",
    "Summary",
    "Upcoming",
    "Victim",
    "WaitingVictim",
    "load_policy",
    "read_policy",
]

"""The pod garbage collector: finds, explains and removes the pods that nobody else finishes.

`index` is kept up to date by events, `policy` decides on it in pure functions, `collector` acts. It guarantees that
every deletion names the UID it means, that nothing is decided on caches that are not live, and that plan, sweep and
the running controller decide the same, guards included. How upstream behaves is in the GC- rules; where this one
differs on purpose it does less harm: see docs/parity.md. How it is used from Python is in docs/gc-from-python.md.
"""

from podlife.podgc.collector import Collector
from podlife.podgc.guards.budget import Guard, Refusal
from podlife.podgc.index import PodIndex
from podlife.podgc.metrics import Metrics
from podlife.podgc.plan import Action, HeldBack, Later, Plan, Upcoming, Victim, WaitingVictim
from podlife.podgc.policy.model import Guards, Policy
from podlife.podgc.policy.parse import PolicyError, load_policy, read_policy
from podlife.podgc.pre_delete import PreDeleteStep, Stay
from podlife.podgc.reasons import Reason, RuleReason
from podlife.podgc.removal import Outcome, Removal
from podlife.podgc.session import Deletions, Finalizers, GcSession
from podlife.podgc.settings import FeatureGates, Selection, Settings
from podlife.podgc.sweep import Failure, Progress, Summary

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

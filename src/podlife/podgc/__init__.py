"""The pod garbage collector: finds, explains and removes the pods that nobody else finishes.

`index` is kept up to date by events, `policy` decides on it in pure functions, `collector` acts. It guarantees that
every deletion names the UID it means, that nothing is decided on caches that are not live, and that plan, sweep and
the running controller decide the same. How upstream behaves is in the GC- rules; where this one differs on purpose
it does less harm: see docs/parity.md.
"""

from podlife.podgc.collector import Collector
from podlife.podgc.index import PodIndex
from podlife.podgc.metrics import Metrics
from podlife.podgc.policy import Action, Later, Plan, Victim
from podlife.podgc.removal import Outcome
from podlife.podgc.settings import FeatureGates, Reason, Selection, Settings
from podlife.podgc.sweep import Failure, Progress, Summary

__all__ = [
    "Action",
    "Collector",
    "Failure",
    "FeatureGates",
    "Later",
    "Metrics",
    "Outcome",
    "Plan",
    "PodIndex",
    "Progress",
    "Reason",
    "Selection",
    "Settings",
    "Summary",
    "Victim",
]

"""A scheduler: enough for a cluster on one machine, and right in what it does. A real cluster has its own.

    plane.add(Scheduler(plane))

`filters` and `placing` say whether a node can take a pod, `deciding` which one does: pure functions over `nodes`, which
events keep up to date. `scheduler` watches, binds and tells.
"""

from podlife.scheduler.scheduler import DEFAULT_SCHEDULER, Scheduler

__all__ = ["DEFAULT_SCHEDULER", "Scheduler"]

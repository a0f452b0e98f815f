"""A scheduler for a cluster on one machine. Clusters with kube-scheduler do not need it.

    plane.add(Scheduler(plane))

`filters` and `topology_filters` say whether a node can run a pod, `schedule_algorithm` selects the node: pure
functions over `node_cache`, which events keep up to date. `scheduler` watches, binds and records events.
"""

from podlife.scheduler.scheduler import DEFAULT_SCHEDULER, Scheduler

__all__ = ["DEFAULT_SCHEDULER", "Scheduler"]

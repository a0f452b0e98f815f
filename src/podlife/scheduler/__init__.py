"""A scheduler for a cluster on one machine. Clusters with kube-scheduler do not need it.

    plane.add(Scheduler(plane))

`schedule_algorithm` filters and selects nodes, `topology_filters` compares with other pods: pure functions over
`node_cache`, which events keep up to date. `scheduler` watches, binds and records events.
"""

from podlife.scheduler.scheduler import DEFAULT_SCHEDULER, Scheduler

__all__ = ["DEFAULT_SCHEDULER", "Scheduler"]

"""PodDisruptionBudgets: how many of their pods may be evicted now.

The controller fills in the status that the API server goes by when it answers an eviction. Without it no pod that a
budget covers can be evicted, and `kubectl drain` waits for ever.
"""

from podlife.workloads.disruption.controller import DisruptionController

__all__ = ["DisruptionController"]

"""Disruption controller: maintains the status of PodDisruptionBudgets.

The API server reads that status to decide on evictions. Without the controller no pod covered by a budget can be
evicted, and `kubectl drain` does not finish.
"""

from podlife.workloads.disruption.controller import DisruptionController

__all__ = ["DisruptionController"]

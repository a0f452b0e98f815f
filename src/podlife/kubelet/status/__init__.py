"""The status manager: reports the statuses of the node's pods to the API server.

`StatusGenerator` generates a pod's status from its runtime state; its rules (phase, conditions, container statuses,
readiness) are pure, in one module each. Only `StatusManager` writes statuses to the API server (the SM- rules): it
combines several changes into one patch and never touches a pod of the same name with another UID.
"""

from podlife.kubelet.status.generate import StatusGenerator, is_restart_under_way
from podlife.kubelet.status.manager import ApiStatusClient, StatusManager

__all__ = ["ApiStatusClient", "StatusGenerator", "StatusManager", "is_restart_under_way"]

"""The status manager: what the API server is told of the node's pods, and when.

`StatusGenerator` generates the status of a pod from what the runtime has; its rules (phase, conditions, container
statuses, readiness) are pure and have a module each. `StatusManager` is the only way to the API server for statuses
(the SM- rules): several changes become one patch, and a pod of the same name with another UID is never touched.
"""

from podlife.kubelet.status.generate import StatusGenerator, is_restart_under_way
from podlife.kubelet.status.manager import ApiStatusClient, StatusManager

__all__ = ["ApiStatusClient", "StatusGenerator", "StatusManager", "is_restart_under_way"]

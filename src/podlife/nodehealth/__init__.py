"""Node health: nodes that stop reporting are marked as not ready and tainted, and pods leave tainted nodes.

Two controllers, as upstream; each runs against any API server, and they only communicate through it:

* `NodeLifecycleController`: conditions, taints, pods marked as not ready, zones and rates (NL- and RQ- rules).
* `TaintEvictionController`: tolerations and their seconds, evictions (TE- rules).

Decisions are pure (`node_health`, `zones`, `rate_limited_timed_queue`, `taints`, `evictions`).

Guarantees:
* Nothing is decided while a cache is stale.
* The server is asked once more before a node is marked or a pod is deleted.
* Each deletion carries the UID of its pod.

The API server adds default tolerations. The pod garbage collector acts on the out-of-service taint; `out_of_service`
sets it.
"""

from podlife.nodehealth.node_lifecycle import NodeLifecycleController
from podlife.nodehealth.settings import NodeHealthSettings
from podlife.nodehealth.taint_eviction import TaintEvictionController

__all__ = ["NodeHealthSettings", "NodeLifecycleController", "TaintEvictionController"]

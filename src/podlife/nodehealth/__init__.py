"""Node health: nodes that fall silent are shown as not ready and tainted, and pods leave tainted nodes.

Two controllers, as upstream has them; each runs on any API server, and they meet only through it:

* `NodeLifecycleController`: conditions, taints, pods shown as not ready, zones and rates (NL- and RQ- rules).
* `TaintEvictionController`: tolerations and their seconds, evictions (TE- rules).

Decisions are pure (`health`, `decision`, `zones`, `tainting_queue`, `taints`, `tolerating`, `evictions`), what acts is
thin. It guarantees that nothing is decided while a cache is not live, that the server is asked once more before a node
is declared silent or a pod is deleted, and that each deletion names the UID it means. Default tolerations are the API
server's; what the out-of-service taint does is the pod collector's, and who sets it by itself is `out_of_service`.
"""

from podlife.nodehealth.node_lifecycle import NodeLifecycleController
from podlife.nodehealth.settings import NodeHealthSettings
from podlife.nodehealth.taint_eviction import TaintEvictionController

__all__ = ["NodeHealthSettings", "NodeLifecycleController", "TaintEvictionController"]

"""Why a pod or a node is where it is, what will act on it and when, and the command that would unblock it.

`reading` reads and never writes; everything else is pure: what was read and the time go in, an `Explanation` comes out.
It guarantees that nothing is concluded from what could not be read, and that commands which destroy name the UID they
mean. When collectors and evictions act is decided by their own rules, which are handed in (`Rules`).
"""

from podlife.explain.audit_deletion import PodIdentity, find_deletion
from podlife.explain.audit_log import SIMULATED_NODES, AuditedRequest, Collection
from podlife.explain.audit_text import phrase
from podlife.explain.cluster_snapshot import (
    Collecting,
    Held,
    Rules,
    Standing,
    World,
)
from podlife.explain.explanation import (
    Cause,
    Explanation,
    Happening,
    Remedy,
    Upcoming,
    as_dict,
)
from podlife.explain.missing_pods import explain_absent
from podlife.explain.nodes import explain_gone_node, explain_node
from podlife.explain.pods import explain_pod, pod_causes
from podlife.explain.reader import Reader

__all__ = [
    "SIMULATED_NODES",
    "AuditedRequest",
    "Cause",
    "Collecting",
    "Collection",
    "Explanation",
    "Happening",
    "Held",
    "PodIdentity",
    "Reader",
    "Remedy",
    "Rules",
    "Standing",
    "Upcoming",
    "World",
    "as_dict",
    "explain_absent",
    "explain_gone_node",
    "explain_node",
    "explain_pod",
    "find_deletion",
    "phrase",
    "pod_causes",
]

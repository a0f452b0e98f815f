"""Why a pod or a node is where it is, what will act on it and when, and the command that would unblock it.

`reading` reads and never writes; everything else is pure: what was read and the time go in, an `Explanation` comes out.
It guarantees that nothing is concluded from what could not be read, and that commands which destroy name the UID they
mean. When collectors and evictions act is decided by their own rules, which are handed in (`ActionRules`).
"""

from podlife.explain.audit_deletion import PodIdentity, find_deletion
from podlife.explain.audit_log import SIMULATED_NODES, AuditCollection, AuditedRequest
from podlife.explain.audit_text import phrase
from podlife.explain.cluster_snapshot import (
    ActionRules,
    ClusterSnapshot,
    CollectorRule,
    PolicyHold,
    PolicyStatus,
)
from podlife.explain.explanation import (
    Cause,
    Explanation,
    Happening,
    Remedy,
    UpcomingAction,
    as_dict,
)
from podlife.explain.missing_pods import explain_absent
from podlife.explain.nodes import explain_gone_node, explain_node
from podlife.explain.pods import explain_pod, pod_causes, stage_of
from podlife.explain.reader import SnapshotReader
from podlife.explain.timeline import hooked, told_by

__all__ = [
    "SIMULATED_NODES",
    "ActionRules",
    "AuditCollection",
    "AuditedRequest",
    "Cause",
    "ClusterSnapshot",
    "CollectorRule",
    "Explanation",
    "Happening",
    "PodIdentity",
    "PolicyHold",
    "PolicyStatus",
    "Remedy",
    "SnapshotReader",
    "UpcomingAction",
    "as_dict",
    "explain_absent",
    "explain_gone_node",
    "explain_node",
    "explain_pod",
    "find_deletion",
    "hooked",
    "phrase",
    "pod_causes",
    "stage_of",
    "told_by",
]

"""Explains pods and nodes of a live cluster, by the rules of the components that will act on them.

`explain` is pure and does not import other components; here it gets the rules of the pod collector, its policy and
taint eviction, and a client to read with. Nothing is written.
"""

from podlife.diagnosis.audit_file import read_audit_file
from podlife.diagnosis.look import (
    ArchiveSource,
    find_stuck,
    look_at_node,
    look_at_pod,
    with_archived,
    with_kubectl_flags,
)
from podlife.diagnosis.rules import PolicyVerdicts, acting_rules

__all__ = [
    "ArchiveSource",
    "PolicyVerdicts",
    "acting_rules",
    "find_stuck",
    "look_at_node",
    "look_at_pod",
    "read_audit_file",
    "with_archived",
    "with_kubectl_flags",
]

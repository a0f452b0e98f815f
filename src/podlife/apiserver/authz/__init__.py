"""Authorization: what a user may do, decided without I/O. There is no RBAC."""

from podlife.apiserver.authz.attributes import Attributes, Decision, NodeView, PolicyRule
from podlife.apiserver.authz.authorizer import authorize, forbidden, rules_for
from podlife.apiserver.authz.pod_references import find_reference, references

__all__ = [
    "Attributes",
    "Decision",
    "NodeView",
    "PolicyRule",
    "authorize",
    "find_reference",
    "forbidden",
    "references",
    "rules_for",
]

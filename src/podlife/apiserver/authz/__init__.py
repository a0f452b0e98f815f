"""Authorization: what a user may do, decided without I/O."""

from podlife.apiserver.authz.attributes import Attributes, Decision, NodeView, selected_name
from podlife.apiserver.authz.authorizer import Authorizer, forbidden
from podlife.apiserver.authz.bootstrap_policy import AUTO_UPDATE, bootstrap_policy
from podlife.apiserver.authz.pod_references import find_reference, references
from podlife.apiserver.authz.rbac import RbacPolicy, RoleRef
from podlife.apiserver.authz.rules import RuleSet, count_permissions, describe, permissions, quoted

__all__ = [
    "AUTO_UPDATE",
    "Attributes",
    "Authorizer",
    "Decision",
    "NodeView",
    "RbacPolicy",
    "RoleRef",
    "RuleSet",
    "bootstrap_policy",
    "count_permissions",
    "describe",
    "find_reference",
    "forbidden",
    "permissions",
    "quoted",
    "references",
    "selected_name",
]

"""Authorization: a decision from a user and the attributes of a request, without I/O.

There is no RBAC; there are five kinds of users. Members of `system:masters` may do everything. The controllers may
use every resource but may not impersonate. A node may do what the Node authorizer allows (`node_authorizer`). A
user with a bootstrap token may request a node's certificate and nothing else. Every authenticated user may use
discovery and review its own rights.
"""

from __future__ import annotations

from collections.abc import Sequence

from podlife.apiserver.authn import BOOTSTRAPPERS, CLUSTER_INFO, CONTROLLERS, MASTERS, UserInfo
from podlife.apiserver.authz.attributes import ALLOWED, DENIED, Attributes, Decision, NodeView, PolicyRule
from podlife.apiserver.authz.node_authorizer import authorize_node
from podlife.errors import ForbiddenError

_MASTER_RULES = (PolicyRule(("*",), ("*",), ("*",)), PolicyRule(("*",), paths=("*",)))
_CONTROLLER_RULES = (
    PolicyRule(
        ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"), ("*",), ("*",)
    ),
    PolicyRule(("get",), paths=("*",)),
)
_AUTHENTICATED_RULES = (
    PolicyRule(
        ("create",), ("authorization.k8s.io",), ("selfsubjectaccessreviews", "selfsubjectrulesreviews")
    ),
    PolicyRule(("create",), ("authentication.k8s.io",), ("selfsubjectreviews",)),
    PolicyRule(
        ("get",),
        paths=(
            *("/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*"),
            *("/healthz", "/livez", "/readyz", "/version", "/version/"),
        ),
    ),
)
_BOOTSTRAP_RULES = (PolicyRule(("create", "get"), ("certificates.k8s.io",), ("certificatesigningrequests",)),)
_PUBLIC_RULES = (PolicyRule(("get",), paths=("/healthz", "/livez", "/readyz", "/version", "/version/")),)

# Components for which upstream has separate identities and which act on all objects.
_CONTROLLER_USERS = frozenset({CONTROLLERS.name, "system:kube-scheduler"})


def authorize(user: UserInfo, attributes: Attributes, nodes: NodeView) -> Decision:
    """Decide whether the user may do it; only denials carry a reason."""
    if MASTERS in user.groups:
        return ALLOWED
    if any(rule.allows(attributes) for rule in rules_for(user)) or _is_cluster_info(attributes):
        return ALLOWED
    if user.node_name:
        return authorize_node(user.node_name, attributes, nodes)
    return DENIED


def _is_cluster_info(attributes: Attributes) -> bool:
    what = (attributes.verb, attributes.group, attributes.target, attributes.namespace, attributes.name)
    return what == ("get", "", "configmaps", *CLUSTER_INFO)


def rules_for(user: UserInfo) -> Sequence[PolicyRule]:
    """Return the user's rules. A node may do more than its rules say, depending on its pods."""
    common = _AUTHENTICATED_RULES if "system:authenticated" in user.groups else _PUBLIC_RULES
    if MASTERS in user.groups:
        return (*_MASTER_RULES, *common)
    if user.name in _CONTROLLER_USERS:
        return (*_CONTROLLER_RULES, *common)
    if BOOTSTRAPPERS in user.groups:
        return (*_BOOTSTRAP_RULES, *common)
    return common


def forbidden(user: UserInfo, attributes: Attributes, decision: Decision) -> ForbiddenError:
    """Return the 403 error in upstream's words."""
    subject = f"{attributes.resource}.{attributes.group}" if attributes.group else attributes.resource
    if subject and attributes.name:
        subject += f' "{attributes.name}"'
    text = f"{subject} is forbidden: " if subject else "forbidden: "
    text += _forbidden_message(user, attributes)
    if decision.reason:
        text += f": {decision.reason}"
    details = {"name": attributes.name, "group": attributes.group, "kind": attributes.resource}
    return ForbiddenError(text, details={key: value for key, value in details.items() if value})


def _forbidden_message(user: UserInfo, attributes: Attributes) -> str:
    if not attributes.resource:
        text = f'User "{user.name}" cannot {attributes.verb} path "{attributes.path}"'
    else:
        where = (
            f'in the namespace "{attributes.namespace}"' if attributes.namespace else "at the cluster scope"
        )
        text = (
            f'User "{user.name}" cannot {attributes.verb} resource "{attributes.target}" '
            f'in API group "{attributes.group}" {where}'
        )
    # As upstream: an answer must not look like HTML to a browser.
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

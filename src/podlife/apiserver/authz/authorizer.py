"""What an identity may do: a decision from who asks and what is asked, with no I/O.

There are five kinds of users. Members of `system:masters` may do everything. The controllers may use every
resource, but not act as somebody else. A node may do what the Node authorizer lets it (`node_authorization`). Who joins
may ask for a node's certificate, and nothing else.
Everybody who is authenticated may look around (discovery) and ask about themselves. There is no RBAC.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from podlife.apiserver.authn.authenticator import (
    BOOTSTRAPPERS,
    CLUSTER_INFO,
    CONTROLLERS,
    User,
)
from podlife.errors import ForbiddenError

__all__ = [
    "Attributes",
    "Decision",
    "NodeView",
    "Rule",
    "authorize",
    "forbidden",
    "forbidden_message",
    "rules_for",
]


@dataclass(frozen=True, slots=True)
class Attributes:
    """What is asked. A request for a path that is no resource has an empty `resource`."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""
    field_selector: str = ""

    @property
    def target(self) -> str:
        """`pods`, `pods/status`: as rules name it."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


@dataclass(frozen=True, slots=True)
class Decision:
    allowed: bool
    reason: str = ""


ALLOWED = Decision(True)
DENIED = Decision(False)


class NodeView(Protocol):
    """Knows which objects the pods bound to a node need."""

    def is_related(self, node_name: str, resource: str, namespace: str, name: str) -> bool:
        """Whether a pod on this node is, or refers to, this object. `resource` is `secrets`, `pods` …"""
        ...


@dataclass(frozen=True, slots=True)
class Rule:
    """What is allowed: verbs on resources of groups, or verbs on paths. `*` stands for all."""

    verbs: tuple[str, ...]
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    def allows(self, asked: Attributes) -> bool:
        if not _covers(self.verbs, asked.verb):
            return False
        if not asked.resource:
            return any(_covers_path(path, asked.path) for path in self.paths)
        return _covers(self.groups, asked.group) and _covers_resource(self.resources, asked)


_MASTER_RULES = (Rule(("*",), ("*",), ("*",)), Rule(("*",), paths=("*",)))
_CONTROLLER_RULES = (
    Rule(("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"), ("*",), ("*",)),
    Rule(("get",), paths=("*",)),
)
_EVERYBODY_RULES = (
    Rule(("create",), ("authorization.k8s.io",), ("selfsubjectaccessreviews", "selfsubjectrulesreviews")),
    Rule(("create",), ("authentication.k8s.io",), ("selfsubjectreviews",)),
    Rule(
        ("get",),
        paths=(
            *("/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*"),
            *("/healthz", "/livez", "/readyz", "/version", "/version/"),
        ),
    ),
)
_BOOTSTRAP_RULES = (Rule(("create", "get"), ("certificates.k8s.io",), ("certificatesigningrequests",)),)
_PUBLIC_RULES = (Rule(("get",), paths=("/healthz", "/livez", "/readyz", "/version", "/version/")),)

# Parts of a cluster that upstream gives identities of their own, and that act on everybody's objects.
_CONTROLLER_USERS = frozenset({CONTROLLERS.name, "system:kube-scheduler"})


def authorize(user: User, asked: Attributes, nodes: NodeView) -> Decision:
    """Whether the user may do it; the reason is only for those who may not."""
    if "system:masters" in user.groups:
        return ALLOWED
    if any(rule.allows(asked) for rule in rules_for(user)) or _is_cluster_info(asked):
        return ALLOWED
    if user.node_name:
        from podlife.apiserver.authz.node_authorizer import authorize_node

        return authorize_node(user.node_name, asked, nodes)
    return DENIED


def _is_cluster_info(asked: Attributes) -> bool:
    what = (asked.verb, asked.group, asked.target, asked.namespace, asked.name)
    return what == ("get", "", "configmaps", *CLUSTER_INFO)


def rules_for(user: User) -> Sequence[Rule]:
    """What the user may do as far as rules can say it: a node may do more, depending on its pods."""
    common = _EVERYBODY_RULES if "system:authenticated" in user.groups else _PUBLIC_RULES
    if "system:masters" in user.groups:
        return (*_MASTER_RULES, *common)
    if user.name in _CONTROLLER_USERS:
        return (*_CONTROLLER_RULES, *common)
    if BOOTSTRAPPERS in user.groups:
        return (*_BOOTSTRAP_RULES, *common)
    return common


def forbidden(user: User, asked: Attributes, decision: Decision) -> ForbiddenError:
    """The 403 in upstream's words."""
    text = forbidden_message(user, asked)
    if decision.reason:
        text = f"{text}: {decision.reason}"
    kind = f"{asked.resource}.{asked.group}" if asked.group else asked.resource
    details = {"name": asked.name, "group": asked.group, "kind": asked.resource}
    return ForbiddenError(
        _subject(kind, asked.name) + text, details={key: value for key, value in details.items() if value}
    )


def forbidden_message(user: User, asked: Attributes) -> str:
    if not asked.resource:
        text = f'User "{user.name}" cannot {asked.verb} path "{asked.path}"'
    else:
        where = f'in the namespace "{asked.namespace}"' if asked.namespace else "at the cluster scope"
        text = (
            f'User "{user.name}" cannot {asked.verb} resource "{asked.target}" '
            f'in API group "{asked.group}" {where}'
        )
    # As upstream: no answer may look like HTML to a browser.
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _subject(kind: str, name: str) -> str:
    if not kind:
        return "forbidden: "
    return f'{kind} "{name}" is forbidden: ' if name else f"{kind} is forbidden: "


def _covers(values: tuple[str, ...], value: str) -> bool:
    return value in values or "*" in values


def _covers_resource(resources: tuple[str, ...], asked: Attributes) -> bool:
    return _covers(resources, asked.target) or (
        bool(asked.subresource) and f"*/{asked.subresource}" in resources
    )


def _covers_path(pattern: str, path: str) -> bool:
    if pattern.endswith("*"):
        return path.startswith(pattern[:-1])
    return path == pattern

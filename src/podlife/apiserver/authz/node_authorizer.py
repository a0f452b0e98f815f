"""Node authorizer: what a node may do, by upstream's rules.

A node reads itself, the pods bound to it and what those pods need, and nothing of other nodes. Rules that depend on
the object are in `admission.node_restriction`. The reasons are upstream's words.
"""

from __future__ import annotations

from podlife.api.selectors import FieldSelector, parse_field_selector
from podlife.apiserver.authz.attributes import ALLOWED, DENIED, Attributes, Decision, NodeView, PolicyRule

_READ = ("get", "list", "watch")
_OWN_VERBS = ("get", "create", "update", "patch", "delete")
_LEASE_NAMESPACE = "kube-node-lease"

# Allowed to every node.
_RULES = (
    PolicyRule(("create",), ("authentication.k8s.io",), ("tokenreviews",)),
    PolicyRule(("create",), ("authorization.k8s.io",), ("subjectaccessreviews", "localsubjectaccessreviews")),
    PolicyRule(_READ, ("",), ("services",)),
    PolicyRule(("create", "update", "patch"), ("", "events.k8s.io"), ("events",)),
    PolicyRule(("get",), ("",), ("endpoints",)),
    PolicyRule(("create", *_READ), ("certificates.k8s.io",), ("certificatesigningrequests",)),
    PolicyRule(_READ, ("storage.k8s.io",), ("csidrivers",)),
    PolicyRule(_READ, ("node.k8s.io",), ("runtimeclasses",)),
)


def authorize_node(node_name: str, asked: Attributes, nodes: NodeView) -> Decision:
    match (asked.group, asked.resource):
        case ("", "secrets" | "configmaps"):
            return _read_related(node_name, asked, nodes)
        case ("", "persistentvolumeclaims") if asked.subresource == "status":
            return _update_related_status(node_name, asked, nodes)
        case ("", "persistentvolumeclaims" | "persistentvolumes") | ("storage.k8s.io", "volumeattachments"):
            return _get_related(node_name, asked, nodes)
        case ("", "serviceaccounts"):
            return _service_account(node_name, asked, nodes)
        case ("coordination.k8s.io", "leases"):
            return _lease(node_name, asked)
        case ("storage.k8s.io", "csinodes"):
            return _csi_node(node_name, asked)
        case ("", "nodes"):
            return _node(node_name, asked)
        case ("", "namespaces") if (asked.verb, asked.name, asked.subresource) == ("get", "kube-system", ""):
            # Unlike upstream: the namespace's UID identifies the cluster, and an agent compares it with the one it
            # joined.
            return ALLOWED
        case ("", "pods"):
            return _pod(node_name, asked, nodes)
    return ALLOWED if any(rule.allows(asked) for rule in _RULES) else DENIED


def _related(node_name: str, asked: Attributes, nodes: NodeView, name: str = "") -> Decision:
    name = name or asked.name
    if not name:
        return Decision(False, "No Object name found")
    if not nodes.is_related(node_name, asked.resource, asked.namespace, name):
        return Decision(False, f"no relationship found between node '{node_name}' and this object")
    return ALLOWED


def _read_related(node_name: str, asked: Attributes, nodes: NodeView) -> Decision:
    if asked.verb not in _READ:
        return Decision(False, "can only read resources of this type")
    if asked.subresource:
        return Decision(False, "cannot read subresource")
    if not asked.namespace:
        return Decision(False, "can only read namespaced object of this type")
    return _related(node_name, asked, nodes, _name_asked(asked))


def _get_related(node_name: str, asked: Attributes, nodes: NodeView) -> Decision:
    if asked.verb != "get":
        return Decision(False, "can only get individual resources of this type")
    if asked.subresource:
        return Decision(False, "cannot get subresource")
    return _related(node_name, asked, nodes)


def _update_related_status(node_name: str, asked: Attributes, nodes: NodeView) -> Decision:
    if asked.verb not in ("update", "patch"):
        return Decision(False, "can only get/update/patch this type")
    return _related(node_name, asked, nodes)


def _service_account(node_name: str, asked: Attributes, nodes: NodeView) -> Decision:
    if asked.verb == "get" and not asked.subresource:
        return _read_related(node_name, asked, nodes)
    if asked.verb != "create" or not asked.name:
        return Decision(False, "can only create tokens for individual service accounts")
    if asked.subresource != "token":
        return Decision(False, "can only create token subresource of serviceaccount")
    return _related(node_name, asked, nodes)


def _lease(node_name: str, asked: Attributes) -> Decision:
    if asked.verb not in _OWN_VERBS:
        return Decision(False, "can only get, create, update, patch, or delete a node lease")
    if asked.namespace != _LEASE_NAMESPACE:
        return Decision(False, f'can only access leases in the "{_LEASE_NAMESPACE}" system namespace')
    # The name of a new object is not known here: admission checks it.
    if asked.verb != "create" and asked.name != node_name:
        return Decision(False, "can only access node lease with the same name as the requesting node")
    return ALLOWED


def _csi_node(node_name: str, asked: Attributes) -> Decision:
    if asked.verb not in _OWN_VERBS:
        return Decision(False, "can only get, create, update, patch, or delete a CSINode")
    if asked.subresource:
        return Decision(False, "cannot authorize CSINode subresources")
    if asked.verb != "create" and asked.name != node_name:
        return Decision(False, "can only access CSINode with the same name as the requesting node")
    return ALLOWED


def _node(node_name: str, asked: Attributes) -> Decision:
    if asked.subresource:
        is_report = asked.subresource == "status" and asked.verb in ("update", "patch")
        return ALLOWED if is_report else DENIED
    if asked.verb in ("create", "update", "patch"):
        return ALLOWED
    if asked.verb not in _READ:
        return DENIED
    name = _name_asked(asked)
    if name == node_name:
        return ALLOWED
    if not name:
        return Decision(False, f"node '{node_name}' cannot read all nodes, only its own Node object")
    return Decision(False, f"node '{node_name}' cannot read '{name}', only its own Node object")


def _pod(node_name: str, asked: Attributes, nodes: NodeView) -> Decision:
    match (asked.subresource, asked.verb):
        case ("", "get"):
            return _get_related(node_name, asked, nodes)
        case ("", "list" | "watch"):
            return _list_pods(node_name, asked, nodes)
        case ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create"):
            return ALLOWED
    return DENIED


def _list_pods(node_name: str, asked: Attributes, nodes: NodeView) -> Decision:
    if _selector(asked).exact("spec.nodeName") == node_name:
        return ALLOWED
    if name := _name_asked(asked):
        return _related(node_name, asked, nodes, name)
    return Decision(False, "can only list/watch pods with spec.nodeName field selector")


def _name_asked(asked: Attributes) -> str:
    """A list or watch that selects one name is a read of that object."""
    if asked.name or asked.verb not in ("list", "watch"):
        return asked.name
    return _selector(asked).exact("metadata.name") or ""


def _selector(asked: Attributes) -> FieldSelector:
    try:
        return parse_field_selector(asked.field_selector)
    except ValueError:
        return FieldSelector()

"""Node authorizer: what a node may do, by upstream's rules.

A node reads itself, the pods bound to it and what those pods need, and nothing of other nodes. Rules that depend on
the object are in `admission.node_restriction`. The reasons are upstream's words.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import msgspec

from podlife.api.codec import Object, decode_object
from podlife.api.selectors import FieldSelector, parse_field_selector
from podlife.apiserver.authz.attributes import ALLOWED, DENIED, Attributes, Decision, NodeView
from podlife.apiserver.authz.bootstrap_policy import node_rules
from podlife.apiserver.authz.pod_references import references
from podlife.apiserver.authz.rules import RuleSet
from podlife.apiserver.storage import Event, EventType, Key, Record, Store

_READ = ("get", "list", "watch")
_OWN_VERBS = ("get", "create", "update", "patch", "delete")
_LEASE_NAMESPACE = "kube-node-lease"


@cache
def _rules() -> RuleSet:
    """Allowed to every node."""
    return RuleSet(node_rules())


def authorize_node(node_name: str, attributes: Attributes, nodes: NodeView) -> Decision:
    match (attributes.group, attributes.resource):
        case ("", "secrets" | "configmaps"):
            return _read_related(node_name, attributes, nodes)
        case ("", "persistentvolumeclaims") if attributes.subresource == "status":
            if attributes.verb not in ("update", "patch"):
                return Decision(False, "can only get/update/patch this type")
            return _related(node_name, attributes, nodes)
        case (
            ("", "persistentvolumeclaims" | "persistentvolumes")
            | ("storage.k8s.io", "volumeattachments")
            | ("resource.k8s.io", "resourceclaims")
        ):
            return _get_related(node_name, attributes, nodes)
        case ("", "serviceaccounts"):
            return _service_account(node_name, attributes, nodes)
        case ("coordination.k8s.io", "leases"):
            return _lease(node_name, attributes)
        case ("storage.k8s.io", "csinodes"):
            return _csi_node(node_name, attributes)
        case ("", "nodes"):
            return _node(node_name, attributes)
        case ("", "pods"):
            return _pod(node_name, attributes, nodes)
        case ("resource.k8s.io", "resourceslices"):
            return _resource_slice(node_name, attributes, nodes)
    return ALLOWED if _rules().allows(attributes) else DENIED


def _related(node_name: str, attributes: Attributes, nodes: NodeView, name: str = "") -> Decision:
    name = name or attributes.name
    if not name:
        return Decision(False, "No Object name found")
    if not nodes.is_related(node_name, attributes.resource, attributes.namespace, name):
        return Decision(False, f"no relationship found between node '{node_name}' and this object")
    return ALLOWED


def _read_related(node_name: str, attributes: Attributes, nodes: NodeView) -> Decision:
    if attributes.verb not in _READ:
        return Decision(False, "can only read resources of this type")
    if attributes.subresource:
        return Decision(False, "cannot read subresource")
    if not attributes.namespace:
        return Decision(False, "can only read namespaced object of this type")
    return _related(node_name, attributes, nodes, _name_asked(attributes))


def _get_related(node_name: str, attributes: Attributes, nodes: NodeView) -> Decision:
    if attributes.verb != "get":
        return Decision(False, "can only get individual resources of this type")
    if attributes.subresource:
        return Decision(False, "cannot get subresource")
    return _related(node_name, attributes, nodes)


def _service_account(node_name: str, attributes: Attributes, nodes: NodeView) -> Decision:
    if attributes.verb == "get" and not attributes.subresource:
        return _read_related(node_name, attributes, nodes)
    if attributes.verb != "create" or not attributes.name:
        return Decision(False, "can only create tokens for individual service accounts")
    if attributes.subresource != "token":
        return Decision(False, "can only create token subresource of serviceaccount")
    return _related(node_name, attributes, nodes)


def _lease(node_name: str, attributes: Attributes) -> Decision:
    if attributes.verb not in _OWN_VERBS:
        return Decision(False, "can only get, create, update, patch, or delete a node lease")
    if attributes.namespace != _LEASE_NAMESPACE:
        return Decision(False, f'can only access leases in the "{_LEASE_NAMESPACE}" system namespace')
    # The name of a new object is not known here: admission checks it.
    if attributes.verb != "create" and attributes.name != node_name:
        return Decision(False, "can only access node lease with the same name as the requesting node")
    return ALLOWED


def _csi_node(node_name: str, attributes: Attributes) -> Decision:
    if attributes.verb not in _OWN_VERBS:
        return Decision(False, "can only get, create, update, patch, or delete a CSINode")
    if attributes.subresource:
        return Decision(False, "cannot authorize CSINode subresources")
    if attributes.verb != "create" and attributes.name != node_name:
        return Decision(False, "can only access CSINode with the same name as the requesting node")
    return ALLOWED


def _resource_slice(node_name: str, attributes: Attributes, nodes: NodeView) -> Decision:
    if attributes.subresource:
        return Decision(False, "cannot authorize ResourceSlice subresources")
    match attributes.verb:
        case "create":
            return ALLOWED
        case "get" | "update" | "patch" | "delete":
            return _related(node_name, attributes, nodes)
        case "watch" | "list" | "deletecollection":
            if _selector(attributes).exact("spec.nodeName") == node_name:
                return ALLOWED
            how = "can only list/watch/deletecollection resourceslices with nodeName field selector"
            return Decision(False, how)
    verbs = "get, watch, list, create, update, patch, delete, deletecollection"
    return Decision(False, f"only the following verbs are allowed for a ResourceSlice: {verbs}")


def _node(node_name: str, attributes: Attributes) -> Decision:
    if attributes.subresource:
        is_report = attributes.subresource == "status" and attributes.verb in ("update", "patch")
        return ALLOWED if is_report else DENIED
    if attributes.verb in ("create", "update", "patch"):
        return ALLOWED
    if attributes.verb not in _READ:
        return DENIED
    name = _name_asked(attributes)
    if name == node_name:
        return ALLOWED
    if not name:
        return Decision(False, f"node '{node_name}' cannot read all nodes, only its own Node object")
    return Decision(False, f"node '{node_name}' cannot read '{name}', only its own Node object")


def _pod(node_name: str, attributes: Attributes, nodes: NodeView) -> Decision:
    match (attributes.subresource, attributes.verb):
        case ("", "get"):
            return _get_related(node_name, attributes, nodes)
        case ("", "list" | "watch"):
            return _list_pods(node_name, attributes, nodes)
        case ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create"):
            return ALLOWED
    return DENIED


def _list_pods(node_name: str, attributes: Attributes, nodes: NodeView) -> Decision:
    if _selector(attributes).exact("spec.nodeName") == node_name:
        return ALLOWED
    if name := _name_asked(attributes):
        return _related(node_name, attributes, nodes, name)
    return Decision(False, "can only list/watch pods with spec.nodeName field selector")


def _name_asked(attributes: Attributes) -> str:
    """A list or watch that selects one name is a read of that object."""
    if attributes.name or attributes.verb not in ("list", "watch"):
        return attributes.name
    return _selector(attributes).exact("metadata.name") or ""


def _selector(attributes: Attributes) -> FieldSelector:
    try:
        return parse_field_selector(attributes.field_selector)
    except ValueError:
        return FieldSelector()


class _Annotations(msgspec.Struct):
    mirror: str | None = msgspec.field(default=None, name="kubernetes.io/config.mirror")


class _Metadata(msgspec.Struct):
    annotations: _Annotations | None = None


class _Pod(msgspec.Struct):
    """What decides: the rest, which may be large, is not decoded."""

    metadata: _Metadata
    spec: Object | None = None


_pods = msgspec.json.Decoder(_Pod)


class StoreNodeView:
    """Which objects a node's pods need, as an index that follows the pods in the store: a decision costs the same
    however many pods there are, and what a node may read follows its pods without delay.

    As upstream, pods that have ended count until they are deleted, and mirror pods, which a node creates, give it
    nothing. The index changes on the event loop only; other threads may read it.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        # The node of each pod and what it needs there.
        self._pods: dict[Key, tuple[str, frozenset[tuple[str, str]]]] = {}
        # The number of pods that need an object: by node, resource, namespace and name.
        self._needed: dict[tuple[str, str, str, str], int] = {}
        store.follow("pods", self._follow_pod)

    def is_related(self, node_name: str, resource: str, namespace: str, name: str) -> bool:
        match resource:
            case "pods":
                pod = self._pods.get(Key("pods", namespace, name))
                return pod is not None and pod[0] == node_name
            case "persistentvolumes":
                volume = self._get(Key("persistentvolumes", "", name)) or {}
                claim = (volume.get("spec") or {}).get("claimRef")
                if not claim:
                    return False
                claimed = claim.get("namespace", ""), claim.get("name", "")
                return self.is_related(node_name, "persistentvolumeclaims", *claimed)
            case "volumeattachments" | "resourceslices":
                group = "storage" if resource == "volumeattachments" else "resource"
                found = self._get(Key(f"{resource}.{group}.k8s.io", "", name))
                return found is not None and _node_of(found) == node_name
            case _:
                return (node_name, resource, namespace, name) in self._needed

    def _follow_pod(self, event: Event) -> None:
        key = event.record.key
        old = self._pods.get(key)
        new = None if event.type is EventType.DELETED else _needs(event.record)
        if new == old:
            return
        if new is not None:
            self._pods[key] = new
            self._count(key.namespace, *new, 1)
        else:
            del self._pods[key]
        if old is not None:
            self._count(key.namespace, *old, -1)

    def _count(self, namespace: str, node_name: str, needs: Iterable[tuple[str, str]], change: int) -> None:
        for resource, name in needs:
            needed = node_name, resource, namespace, name
            count = self._needed.get(needed, 0) + change
            if count:
                self._needed[needed] = count
            else:
                del self._needed[needed]

    def _get(self, key: Key) -> Object | None:
        record = self._store.get(key)
        return decode_object(record.value) if record else None


def _needs(record: Record) -> tuple[str, frozenset[tuple[str, str]]] | None:
    """The node of a pod and what it refers to; None if it has no node, or cannot be read."""
    try:
        pod = _pods.decode(record.value)
        spec = pod.spec or {}
        if not (node_name := spec.get("nodeName")):
            return None
        if pod.metadata.annotations is not None and pod.metadata.annotations.mirror is not None:
            return node_name, frozenset()
        return node_name, frozenset(references({"metadata": {"name": record.key.name}, "spec": spec}))
    except (msgspec.MsgspecError, AttributeError, TypeError, ValueError):
        # No such pod passes validation; if one is stored, it must not keep the store from its work.
        return None


def _node_of(obj: Object) -> str:
    return str((obj.get("spec") or {}).get("nodeName", ""))

"""NodeRestriction: what a node may change, where that depends on the object.

A node changes only itself, its lease and the pods bound to it; it creates only mirror pods of its own that need no
other API object, and it cannot set labels or taints on itself that attract pods. What does not depend on the object
is decided before (`node_authorizer`). The messages are upstream's.
"""

from __future__ import annotations

from typing import Any

from podlife.api.codec import Object, decode_object
from podlife.apiserver.admission import AdmissionRequest, Operation, Reader
from podlife.apiserver.authz import find_reference
from podlife.apiserver.storage import Key
from podlife.errors import NotFoundError

_MIRROR = "kubernetes.io/config.mirror"
_LEASE_NAMESPACE = "kube-node-lease"
_RESTRICTED = "node-restriction.kubernetes.io"
_KUBELET_NAMESPACES = ("kubelet.kubernetes.io", "node.kubernetes.io")
_KUBELET_LABELS = frozenset(
    {"kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch"}
    | {"beta.kubernetes.io/os", "beta.kubernetes.io/arch"}
    | {"node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type"}
    | {"topology.kubernetes.io/zone", "topology.kubernetes.io/region"}
    | {"failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"}
)


def restrict_nodes(change: AdmissionRequest, reader: Reader) -> None:
    """The plug-in: raises ForbiddenError if the user is a node and may not do this."""
    node_name = change.user.node_name
    if not node_name:
        return
    match change.resource.key:
        case "pods":
            _check_pod(node_name, change, reader)
        case "nodes":
            _check_node(node_name, change)
        case "persistentvolumeclaims":
            _check_claim(node_name, change)
        case "leases.coordination.k8s.io":
            _check_lease(node_name, change)
        case "serviceaccounts" if (change.operation, change.subresource) == (Operation.CREATE, "token"):
            _check_token_request(node_name, change, reader)
        case "csinodes.storage.k8s.io" if change.name != node_name:
            raise change.forbidden("can only access CSINode with the same name as the requesting node")
        case "resourceslices.resource.k8s.io" if change.operation in (Operation.CREATE, Operation.DELETE):
            if _node_of(change.new or change.old or {}) != node_name:
                verb = change.operation.lower()
                same = "with the same NodeName as the requesting node"
                raise change.forbidden(f"can only {verb} ResourceSlice {same}")


def _check_pod(node_name: str, change: AdmissionRequest, reader: Reader) -> None:
    node = f'node "{node_name}"'
    match (change.subresource, change.operation):
        case ("", Operation.CREATE):
            _check_mirror_pod(node_name, change, reader)
        case ("", Operation.DELETE):
            if _bound_to(change, reader) != node_name:
                raise change.forbidden(f"{node} can only delete pods with spec.nodeName set to itself")
        case ("", operation):
            text = f'unexpected operation "{operation}", {node} can only create and delete mirror pods'
            raise change.forbidden(text)
        case ("status", Operation.UPDATE):
            _check_pod_status(node_name, change)
        case ("eviction", Operation.CREATE):
            if _bound_to(change, reader) != node_name:
                text = f"node {node_name} can only evict pods with spec.nodeName set to itself"
                raise change.forbidden(text)
        case ("status" | "eviction", operation):
            raise change.forbidden(f'unexpected operation "{operation}"')
        case (subresource, _):
            text = f"unexpected pod subresource \"{subresource}\", only 'status' and 'eviction' are allowed"
            raise change.forbidden(text)


def _check_mirror_pod(node_name: str, change: AdmissionRequest, reader: Reader) -> None:
    pod = change.new or {}
    node = f'node "{node_name}"'
    if _MIRROR not in (_metadata(pod).get("annotations") or {}):
        raise change.forbidden(
            f'pod does not have "{_MIRROR}" annotation, {node} can only create mirror pods'
        )
    if _node_of(pod) != node_name:
        raise change.forbidden(f"{node} can only create pods with spec.nodeName set to itself")
    _check_owner(node_name, change, _metadata(pod).get("ownerReferences") or [], reader)
    if resource := find_reference(pod):
        raise change.forbidden(f"{node} can not create pods that reference {resource}")


def _check_owner(node_name: str, change: AdmissionRequest, owners: list[Object], reader: Reader) -> None:
    node = f'node "{node_name}"'
    if len(owners) > 1:
        raise change.forbidden(f"{node} can only create pods with a single owner reference set to itself")
    owner = owners[0] if owners else {}
    if (owner.get("apiVersion"), owner.get("kind"), owner.get("name")) != ("v1", "Node", node_name):
        raise change.forbidden(f"{node} can only create pods with an owner reference set to itself")
    if not owner.get("controller"):
        raise change.forbidden(f"{node} can only create pods with a controller owner reference set to itself")
    if owner.get("blockOwnerDeletion"):
        raise change.forbidden(f"{node} must not set blockOwnerDeletion on an owner reference")
    found = _read(reader, Key("nodes", "", node_name))
    if found is None:
        raise NotFoundError(f'nodes "{node_name}" not found', details={"name": node_name, "kind": "nodes"})
    uid = _metadata(found).get("uid", "")
    if owner.get("uid", "") != uid:
        raise change.forbidden(f"node {node_name} UID mismatch: expected {owner.get('uid', '')} got {uid}")


def _check_pod_status(node_name: str, change: AdmissionRequest) -> None:
    old, new = change.old or {}, change.new or {}
    node = f'node "{node_name}"'
    if _node_of(old) != node_name:
        limit = "can only update pod status for pods with spec.nodeName set to itself"
        raise change.forbidden(f"{node} {limit}")
    if (_metadata(old).get("labels") or {}) != (_metadata(new).get("labels") or {}):
        raise change.forbidden(f"{node} cannot update labels through pod status")
    old_status, new_status = old.get("status") or {}, new.get("status") or {}
    if (old_status.get("resourceClaimStatuses") or []) != (new_status.get("resourceClaimStatuses") or []):
        raise change.forbidden(f"{node} cannot update resource claim statues")
    if old_status.get("extendedResourceClaimStatus") != new_status.get("extendedResourceClaimStatus"):
        raise change.forbidden(f"{node} cannot update extended resource claim status")


def _check_node(node_name: str, change: AdmissionRequest) -> None:
    node = f'node "{node_name}"'
    if change.name != node_name:
        raise change.forbidden(f'{node} is not allowed to modify node "{change.name}"')
    new, old = change.new or {}, change.old or {}
    if change.operation is Operation.CREATE:
        if _spec(new).get("configSource") is not None:
            raise change.forbidden(f"{node} is not allowed to create pods with a non-nil configSource")
        if labels := _forbidden_labels(new, {}):
            text = f"{node} is not allowed to set the following labels: {', '.join(labels)}"
            raise change.forbidden(text)
    elif change.operation is Operation.UPDATE:
        _check_node_update(node, change, new, old)


def _check_node_update(node: str, change: AdmissionRequest, new: Object, old: Object) -> None:
    source = _spec(new).get("configSource")
    if source is not None and source != _spec(old).get("configSource"):
        raise change.forbidden(f"{node} is not allowed to update configSource to a new non-nil configSource")
    if (_spec(new).get("taints") or []) != (_spec(old).get("taints") or []):
        raise change.forbidden(f"{node} is not allowed to modify taints")
    if (_metadata(new).get("ownerReferences") or []) != (_metadata(old).get("ownerReferences") or []):
        raise change.forbidden(f"{node} is not allowed to modify ownerReferences")
    if labels := _forbidden_labels(new, old):
        raise change.forbidden(f"is not allowed to modify labels: {', '.join(labels)}")


def _check_claim(node_name: str, change: AdmissionRequest) -> None:
    if change.subresource != "status":
        raise change.forbidden("may only update PVC status")
    if change.operation is not Operation.UPDATE:
        raise change.forbidden(f'unexpected operation "{change.operation}"')
    if _without_report(change.old or {}) != _without_report(change.new or {}):
        limit = "is not allowed to update fields other than status.quantity and status.conditions"
        raise change.forbidden(f'node "{node_name}" {limit}')


def _check_lease(node_name: str, change: AdmissionRequest) -> None:
    if change.namespace != _LEASE_NAMESPACE:
        raise change.forbidden(f'can only access leases in the "{_LEASE_NAMESPACE}" system namespace')
    if change.name != node_name:
        raise change.forbidden("can only access node lease with the same name as the requesting node")


def _check_token_request(node_name: str, change: AdmissionRequest, reader: Reader) -> None:
    """A node gets tokens for its own pods only, for the audiences that they ask for."""
    spec = _spec(change.new or {})
    ref = spec.get("boundObjectRef") or {}
    if (ref.get("apiVersion"), ref.get("kind")) != ("v1", "Pod") or not ref.get("name"):
        raise change.forbidden("node requested token not bound to a pod")
    if not ref.get("uid"):
        raise change.forbidden("node requested token with a pod binding without a uid")
    pod = _read(reader, Key("pods", change.namespace, ref["name"]))
    if pod is None:
        details = {"name": ref["name"], "kind": "pods"}
        raise NotFoundError(f'pods "{ref["name"]}" not found', details=details)
    if ref["uid"] != _metadata(pod)["uid"]:
        raise change.forbidden(
            f"the UID in the bound object reference ({ref['uid']}) does not match the UID in record. "
            "The object might have been deleted and then recreated"
        )
    if _node_of(pod) != node_name:
        raise change.forbidden("node requested token bound to a pod scheduled on a different node")
    audiences = spec.get("audiences") or [""]
    if len(audiences) > 1:
        raise change.forbidden("node may only request 0 or 1 audiences")
    if audiences[0] not in _token_audiences(pod):
        raise change.forbidden(
            f'audience "{audiences[0]}" not found in pod spec volume, {change.user.name} is not authorized to '
            "request tokens for this audience"
        )


def _token_audiences(pod: Object) -> set[str]:
    return {
        str(source["serviceAccountToken"].get("audience", ""))
        for volume in _spec(pod).get("volumes") or ()
        for source in (volume.get("projected") or {}).get("sources") or ()
        if source.get("serviceAccountToken") is not None
    }


def _without_report(claim: Object) -> Object:
    """A claim without the fields its node may report."""
    metadata = {k: v for k, v in _metadata(claim).items() if k not in ("resourceVersion", "managedFields")}
    reported = ("capacity", "conditions", "allocatedResources", "allocatedResourceStatuses")
    status = {k: v for k, v in (claim.get("status") or {}).items() if k not in reported}
    return {"metadata": metadata, "spec": _spec(claim), "status": status}


def _forbidden_labels(new: Object, old: Object) -> list[str]:
    """Labels that the change sets, alters or removes although the node may not choose them."""
    after: dict[str, str] = _metadata(new).get("labels") or {}
    before: dict[str, str] = _metadata(old).get("labels") or {}
    changed = {key for key in after.keys() | before.keys() if after.get(key) != before.get(key)}
    return sorted(key for key in changed if not _is_own_label(key))


def _is_own_label(key: str) -> bool:
    prefix, slash, _ = key.partition("/")
    if not slash:
        return True
    if _is_under(prefix, _RESTRICTED):
        return False
    if not _is_under(prefix, "kubernetes.io") and not _is_under(prefix, "k8s.io"):
        return True
    return key in _KUBELET_LABELS or any(_is_under(prefix, allowed) for allowed in _KUBELET_NAMESPACES)


def _is_under(prefix: str, domain: str) -> bool:
    return prefix == domain or prefix.endswith(f".{domain}")


def _metadata(obj: Object) -> dict[str, Any]:
    return obj.get("metadata") or {}


def _spec(obj: Object) -> dict[str, Any]:
    return obj.get("spec") or {}


def _node_of(pod: Object) -> str:
    return str(_spec(pod).get("nodeName", ""))


def _bound_to(change: AdmissionRequest, reader: Reader) -> str:
    """Node of the pod to delete or evict; raises NotFoundError if there is no such pod."""
    pod = _read(reader, Key("pods", change.namespace, change.name))
    if pod is None:
        details = {"name": change.name, "kind": "pods"}
        raise NotFoundError(f'pods "{change.name}" not found', details=details)
    return _node_of(pod)


def _read(reader: Reader, key: Key) -> Object | None:
    record = reader(key)
    return decode_object(record.value) if record else None

"""Who may have devices: administrative access needs a label of the namespace, and a claim's status needs permissions.

Upstream's strategies check this, so what is refused is a field (422). Who allocates devices needs the permission
`resourceclaims/binding`; who reports about those of a driver needs `resourceclaims/driver` by the driver's name, on the
node of the claim or on any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from podlife.api.codec import Object, decode_object
from podlife.api.field_errors import FieldError, forbidden, invalid
from podlife.apiserver import authz
from podlife.apiserver.admission import AdmissionRequest, Operation, Plugin, Reader
from podlife.apiserver.authn import UserInfo
from podlife.apiserver.authz import Attributes, Decision
from podlife.apiserver.storage import Key

_GROUP = "resource.k8s.io"
_CLAIMS, _TEMPLATES = f"resourceclaims.{_GROUP}", f"resourceclaimtemplates.{_GROUP}"
_LABEL = "resource.kubernetes.io/admin-access"
_NODE_NAME = "authentication.kubernetes.io/node-name"

May = Callable[[UserInfo, Attributes], Decision]


def restrict_devices(may: May) -> Plugin:
    def plugin(attributes: AdmissionRequest, reader: Reader) -> None:
        resource, new = attributes.resource, attributes.new
        if resource.key not in (_CLAIMS, _TEMPLATES) or new is None:
            return
        errors: list[FieldError] = []
        if path := _admin_access(attributes):
            record = reader(Key("namespaces", "", attributes.namespace))
            labels = decode_object(record.value)["metadata"].get("labels") or {} if record else {}
            if labels.get(_LABEL) != "true":
                detail = f"requires the `{_LABEL}: true` label on the containing namespace"
                errors.append(forbidden(path, f"admin access to devices {detail}"))
        if attributes.subresource == "status":
            errors += _check_status(attributes, may)
        if errors:
            raise invalid(resource.kind, resource.group, new["metadata"]["name"], errors)

    return plugin


def _admin_access(attributes: AdmissionRequest) -> str:
    """Where the request asks for administrative access for the first time; empty if it does not."""
    if attributes.subresource == "status":
        results, path = _results(_status(attributes.new)), "status.allocation.devices.results"
        if any(each.get("adminAccess") for each in _results(_status(attributes.old))):
            return ""
    elif attributes.operation is Operation.CREATE:
        spec = (attributes.new or {})["spec"]
        spec = spec["spec"] if attributes.resource.key == _TEMPLATES else spec
        # Of a template, too: upstream's path is that of a claim.
        requests, path = spec["devices"].get("requests") or (), "spec.devices.requests"
        results = [each.get("exactly") or {} for each in requests]
    else:
        return ""
    found = (index for index, each in enumerate(results) if each.get("adminAccess"))
    return next((f"{path}[{index}].adminAccess" for index in found), "")


def _status(claim: Object | None) -> Object:
    return (claim or {}).get("status") or {}


def _results(status: Object) -> list[Object]:
    return ((status.get("allocation") or {}).get("devices") or {}).get("results") or []


def _check_status(attributes: AdmissionRequest, may: May) -> Iterator[FieldError]:
    new, old, verb = _status(attributes.new), _status(attributes.old), attributes.verb
    user = attributes.user

    def refused(verb: str, subresource: str, namespace: str = "", name: str = "") -> str:
        asked = Attributes(verb, _GROUP, "resourceclaims", subresource, namespace, name)
        decision = may(user, asked)
        return "" if decision.allowed else str(authz.forbidden(user, asked, decision))

    fields = ("allocation", "reservedFor")
    is_bound = any((new.get(field) or None) != (old.get(field) or None) for field in fields)
    if is_bound and (problem := refused(verb, "binding")):
        needed = f'requires resource="resourceclaims/binding", verb="{verb}" permission: {problem}'
        yield forbidden("status.allocation", f"changing status.allocation or status.reservedFor {needed}")
    if new.get("allocation") is None:
        return
    node = _node_of(new["allocation"])
    is_there = bool(node) and user.name.startswith("system:serviceaccount:")
    is_there = is_there and dict(user.extra).get(_NODE_NAME) == (node,)
    verbs = [f"{prefix}-node:{verb}" for prefix in ("associated",) * is_there + ("arbitrary",)]
    for driver in _reported_drivers(new, old):
        problems = [refused(each, "driver", attributes.namespace, driver) for each in verbs]
        if all(problems):
            shown = " ".join(verbs)
            needed = f'requires resource="resourceclaims/driver", verb="[{shown}]" permission: {problems[0]}'
            yield forbidden("status.devices", f"changing status.devices {needed}")


def _reported_drivers(new: Object, old: Object) -> list[str]:
    """Drivers of devices about which something else is reported than before."""
    after, before = new.get("devices") or [], old.get("devices") or []
    changed = [each for each in after if each not in before] + [each for each in before if each not in after]
    return sorted({each["driver"] for each in changed})


def _node_of(allocation: Object) -> str:
    """The one node that the devices can be used on; empty if there may be others."""
    match (allocation.get("nodeSelector") or {}).get("nodeSelectorTerms"):
        case [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [str(name)]}], **rest}]:
            return "" if rest.get("matchExpressions") else name
    return ""

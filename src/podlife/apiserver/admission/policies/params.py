"""The parameters of a binding: objects of the policy's `paramKind`. Errors are ValueError in upstream's words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from podlife.api.codec import Object, decode_object
from podlife.api.labels import selector_matches
from podlife.apiserver.resource import Resource
from podlife.apiserver.storage import Key, Store

FindKind = Callable[[str, str], Resource | None]
"""The resource of an API version and a kind."""


def collect_params(
    store: Store, resource: Resource | None, reference: Object | None, namespace: str
) -> Sequence[Object | None]:
    """One object for each evaluation; None stands for no parameter, and no element for none found and that allowed."""
    if resource is None or reference is None:
        return [None]
    given = reference.get("namespace") or ""
    if resource.namespaced and not (given or namespace):
        raise ValueError(
            "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
        )
    if given and not resource.namespaced:
        raise ValueError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
    found = _found(store, resource, reference, (given or namespace) if resource.namespaced else "")
    if not found and reference.get("parameterNotFoundAction") == "Deny":
        raise ValueError("no params found for policy binding with `Deny` parameterNotFoundAction")
    return found


def _found(store: Store, resource: Resource, reference: Object, namespace: str) -> list[Object]:
    if name := reference.get("name"):
        record = store.get(Key(resource.storage_key, namespace, name))
        records = [] if record is None else [record]
    else:
        records = list(store.list(resource.storage_key, namespace))
    selector = reference.get("selector") or {}
    read = resource.from_stored or (lambda obj: obj)
    objects = (read(decode_object(record.value)) for record in records)
    typed = {"apiVersion": resource.api_version, "kind": resource.kind}
    return [
        {**typed, **obj} for obj in objects if selector_matches(selector, obj["metadata"].get("labels") or {})
    ]

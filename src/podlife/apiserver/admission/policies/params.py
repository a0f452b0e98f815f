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
    objects = (_read(resource, record.value) for record in records)
    return [obj for obj in objects if selector_matches(selector, obj["metadata"].get("labels") or {})]


def _read(resource: Resource, value: bytes) -> Object:
    typed = {"apiVersion": resource.api_version, "kind": resource.kind}
    if resource.custom is None or resource.custom.converter is None:
        obj = decode_object(value)
        return {**typed, **(obj if resource.from_stored is None else resource.from_stored(obj))}
    # No webhook can be called in the middle of an evaluation.
    stored = resource.custom.converter.read(value)
    if stored["apiVersion"] != resource.api_version:
        raise ValueError(
            f"paramKind {resource.api_version} is stored as {stored['apiVersion']}: use that version"
        )
    return stored

"""Writes of typed objects: the difference between two instances of a custom resource's class, as a merge patch.

A view has only the fields that its class declares, so it is never written as a whole: what the server has beside
them stays. Each write carries the UID and the resourceVersion of the object that was read: if it has changed since,
the write fails with ConflictError.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from podlife.api.codec import Object, encode, is_same, plain
from podlife.client.client import Client
from podlife.client.refs import Ref

S = TypeVar("S", bound=msgspec.Struct)


async def save(client: Client, old: S, new: S) -> S:
    """Write what `new` (`msgspec.structs.replace(old, …)`) changes, without the status; returns the object as stored.
    Nothing is sent if nothing changes. Raises ConflictError if `old` is stale."""
    if getattr(new, "status", None) != getattr(old, "status", None):
        raise ValueError("the status has changed: write it with save_status")
    return await _write(client, old, new, "")


async def save_status(client: Client, obj: S, status: object) -> S:
    """Write the status of the object, as `save` does."""
    return await _write(client, obj, msgspec.structs.replace(obj, status=status), "status")


async def _write(client: Client, old: S, new: S, subresource: str) -> S:
    ref, before, after = Ref.of(type(old)), plain(old), plain(new)
    metadata = before["metadata"]
    name, namespace = metadata["name"], metadata["namespace"]
    patch = difference(before, after, {})
    if _has_objects_in_lists(patch):
        # A list is written as a whole: what its elements have beside declared fields must be read first.
        patch = difference(before, after, await client.get(ref, name, namespace))
    if not patch:
        return old
    precondition = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
    patch["metadata"] = {**patch.get("metadata", {}), **precondition}
    return await client.patch(ref, name, patch, namespace, subresource=subresource, view=type(old))


def difference(old: Object, new: Object, stored: Object) -> Object:
    """The merge patch from one to the other. `stored` is the old object with its undeclared fields."""
    patch: Object = {name: None for name in old if name not in new}
    for name, value in new.items():
        before, kept = old.get(name), stored.get(name)
        if isinstance(before, dict) and isinstance(value, dict):
            if inner := difference(before, value, kept if isinstance(kept, dict) else {}):
                patch[name] = inner
        elif not is_same(before, value):
            patch[name] = _completed(before, value, kept)
    return patch


def _completed(old: Any, new: Any, stored: Any) -> Any:
    """The new value with the undeclared fields of the stored one. Elements of lists are recognised by their name or
    type, and without these by all they have."""
    if isinstance(old, dict) and isinstance(new, dict) and isinstance(stored, dict):
        undeclared = {name: each for name, each in stored.items() if name not in old}
        return undeclared | {
            name: _completed(old.get(name), each, stored.get(name)) for name, each in new.items()
        }
    if (
        isinstance(old, list)
        and isinstance(new, list)
        and isinstance(stored, list)
        and len(old) == len(stored)
    ):
        known = {_identity(each): (each, kept) for each, kept in zip(old, stored, strict=True)}
        origins = (known.get(_identity(each), (None, None)) for each in new)
        return [_completed(was, each, kept) for each, (was, kept) in zip(new, origins, strict=True)]
    return new


def _identity(element: Any) -> bytes:
    has_name = isinstance(element, dict) and (element.get("name") or element.get("type"))
    return encode(has_name or element)


def _has_objects_in_lists(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_objects_in_lists, value.values()))
    return isinstance(value, list) and any(isinstance(each, dict) for each in value)

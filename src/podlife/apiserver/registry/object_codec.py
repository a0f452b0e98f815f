"""Objects between the wire, the verbs and the store.

Stored bytes are JSON without `kind` and `apiVersion`, which the resource knows: so a list is a join of them, exactly
as kube-apiserver writes lists, and one stored event can be served by both event groups. Inside the verbs an object is
a dictionary without these two fields.

`metadata.managedFields` are half of a small object, and most writes leave them alone. They are stored between two
tabs, which JSON never has inside of a string: so they are found, and copied, without being decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from msgspec import Raw

from podlife.api.codec import Object, decode_object, encode, escape_as_go
from podlife.apiserver.registry.managed_fields import decode_entries
from podlife.apiserver.resource import Resource


def encode_stored(obj: Object) -> bytes:
    """Encode for the store. Metadata comes first, so that a reader of the wire finds it at once."""
    meta = obj["metadata"]
    if isinstance(managers := meta.get("managedFields"), list):
        meta = {**meta, "managedFields": _between_tabs(encode(managers))}
    stored = {"metadata": meta, **obj}
    stored["metadata"] = meta
    value = encode(stored)
    # kube-controller-manager recognizes its own patch in a ControllerRevision by its bytes.
    return escape_as_go(value) if "revision" in obj else value


def _between_tabs(managers: bytes) -> Raw:
    return Raw(b"\t%b\t" % managers)


def encoder(obj: Object) -> Callable[[int], bytes]:
    """For a `Change`: encodes the object at the assigned revision."""

    def at(revision: int) -> bytes:
        obj["metadata"]["resourceVersion"] = str(revision)
        return encode_stored(obj)

    return at


def decode_stored(resource: Resource, value: bytes) -> Object:
    """A stored object as the verbs change it: that of a custom resource is in the shape of the requested version."""
    obj = decode_in_part(value)
    meta = obj["metadata"]
    if isinstance(managers := meta.get("managedFields"), Raw):
        meta["managedFields"] = decode_entries(managers)
    is_custom = resource.custom is not None and resource.from_stored is not None
    return resource.from_stored(obj) if is_custom and resource.from_stored is not None else obj


def decode_in_part(value: bytes) -> Object:
    """A stored object with its managers as they are stored: for writes that leave them alone."""
    head, tab, rest = value.partition(b"\t")
    if not tab:
        return decode_object(value)
    managers, _, tail = rest.partition(b"\t")
    obj = decode_object(b"%bnull%b" % (head, tail))
    obj["metadata"]["managedFields"] = _between_tabs(managers)
    return obj


@lru_cache(maxsize=1024)
def envelope(resource: Resource) -> bytes:
    """Beginning of an object on the wire: everything up to its stored bytes, less their brace."""
    return b'{"kind":%s,"apiVersion":%s,' % (encode(resource.kind), encode(resource.api_version))


def whole(resource: Resource, value: bytes) -> bytes:
    """Stored bytes as an object on the wire."""
    if resource.from_stored is not None:
        return encode(with_type(resource, resource.from_stored(decode_object(value))))
    return envelope(resource) + value[1:]


def with_type(resource: Resource, obj: Object) -> Object:
    return {"kind": resource.kind, "apiVersion": resource.api_version, **obj}


def list_body(resource: Resource, values: Sequence[bytes], meta: Object) -> list[bytes]:
    """A list on the wire, in pieces: nothing is copied, however long the list."""
    if resource.from_stored is not None:
        values = [encode(resource.from_stored(decode_object(value))) for value in values]
    if resource.custom is not None:
        # Upstream's list of objects without a Go type: each says what it is.
        values = [envelope(resource) + value[1:] for value in values]
        meta = {"continue": "", **meta}
    head = encode({"kind": resource.list_kind, "apiVersion": resource.api_version, "metadata": meta})
    if not values:
        return [head[:-1] + b',"items":[]}']
    pieces: list[bytes] = [b","] * (2 * len(values) + 1)
    pieces[0] = head[:-1] + b',"items":['
    pieces[1::2] = values
    pieces[-1] = b"]}"
    return pieces

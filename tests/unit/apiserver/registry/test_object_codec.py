"""Stored bytes: what is read from them is what was written, with managers and without."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.api.codec import decode_object, encode
from podlife.apiserver.registry.object_codec import decode_in_part, decode_stored, encode_stored, whole
from podlife.apiserver.resource import Resource

PODS = Resource("", "v1", "Pod", "pods")


def pod(managers: list[dict[str, Any]] | None) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": "a", "annotations": {"tab": 'a\tb "]\t'}}
    if managers is not None:
        meta["managedFields"] = managers
    return {"metadata": {**meta, "uid": "u"}, "spec": {"note": "\t[\t]"}}


MANAGERS: list[dict[str, Any]] = [
    {
        "manager": 'a\t"b',
        "operation": "Apply",
        "apiVersion": "v1",
        "fieldsV1": {'v:"\\t]}"': {}, "f:x\t": {}},
    },
    {"operation": "Update", "apiVersion": "v1", "time": "2030-01-01T00:00:00Z", "subresource": "status"},
]


@pytest.mark.parametrize("managers", [None, [], MANAGERS], ids=["absent", "empty", "two"])
def test_a_stored_object_is_read_as_it_was(managers: list[dict[str, Any]] | None) -> None:
    stored = encode_stored(pod(managers))
    assert decode_stored(PODS, stored) == pod(managers)
    assert decode_object(stored) == pod(managers)
    assert decode_object(whole(PODS, stored)) == {"kind": "Pod", "apiVersion": "v1", **pod(managers)}


@pytest.mark.parametrize("managers", [None, [], MANAGERS], ids=["absent", "empty", "two"])
def test_an_object_that_was_read_in_part_is_stored_as_it_was(managers: list[dict[str, Any]] | None) -> None:
    stored = encode_stored(pod(managers))
    obj = decode_in_part(stored)
    assert encode_stored(obj) == stored
    obj["spec"] = {}
    assert decode_object(encode_stored(obj)) == {**pod(managers), "spec": {}}


def test_an_object_of_an_earlier_version_has_no_tabs_and_is_read_as_well() -> None:
    stored = encode(pod(MANAGERS))
    assert decode_stored(PODS, stored) == pod(MANAGERS)
    assert decode_object(encode_stored(decode_in_part(stored))) == pod(MANAGERS)

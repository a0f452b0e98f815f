from __future__ import annotations

from typing import Any

import pytest

from podlife.api.names import check_dns_subdomain
from podlife.apiserver.registry.metadata import carry_over
from podlife.apiserver.strategies.object_meta import validate_metadata, validate_metadata_update

STORED = {
    "name": "p",
    "namespace": "default",
    "uid": "u",
    "resourceVersion": "5",
    "generation": 2,
    "creationTimestamp": "2030-01-01T00:00:00Z",
}


def updated(old: dict[str, Any], **changes: Any) -> tuple[dict[str, Any], list[str]]:
    new = {**old, **changes}
    new = {field: value for field, value in new.items() if value is not None}
    carry_over(new, old)
    return new, [str(error) for error in validate_metadata_update(new, old)]


def test_an_unchanged_object_is_accepted() -> None:
    assert updated(STORED)[1] == []


@pytest.mark.parametrize("field", ["name", "namespace", "uid"])
def test_identity_does_not_change(field: str) -> None:
    assert updated(STORED, **{field: "other"})[1] == [
        f'metadata.{field}: Invalid value: "other": field is immutable'
    ]


def test_what_a_client_leaves_out_is_kept() -> None:
    new, errors = updated(STORED, uid=None, creationTimestamp=None, generation=None)
    assert errors == []
    assert new == STORED


def test_a_client_cannot_move_generation_or_creation() -> None:
    new, errors = updated(STORED, generation=9, creationTimestamp="2031-01-01T00:00:00Z")
    assert errors == []
    assert new == STORED


def test_a_living_object_cannot_be_marked_as_deleted_by_an_update() -> None:
    errors = updated(STORED, deletionTimestamp="2030-01-01T00:00:00Z")[1]
    assert errors == ['metadata.deletionTimestamp: Invalid value: "2030-01-01T00:00:00Z": field is immutable']


def test_an_update_needs_a_resource_version() -> None:
    assert updated(STORED, resourceVersion=None)[1] == [
        'metadata.resourceVersion: Invalid value: "": must be specified for an update'
    ]


def test_a_namespaced_kind_needs_a_namespace_and_another_refuses_one() -> None:
    without = {"name": "a"}
    within = {"name": "a", "namespace": "n"}
    assert [str(e) for e in validate_metadata(without, True, check_dns_subdomain)] == [
        "metadata.namespace: Required value"
    ]
    assert [str(e) for e in validate_metadata(within, False, check_dns_subdomain)] == [
        "metadata.namespace: Forbidden: not allowed on this type"
    ]


def test_a_new_object_needs_a_name() -> None:
    errors = validate_metadata({"namespace": "n"}, True, check_dns_subdomain)
    assert [str(e) for e in errors] == ["metadata.name: Required value: name or generateName is required"]

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from podlife.api.views import Metadata, MetadataOnly
from podlife.client import REPLICA_SETS
from podlife.podcontrol import ControllerRef, InvalidOwnerError, Owner, owner_of
from podlife.podcontrol.owner import controller_ref_of

OWNER = Owner("apps/v1", "ReplicaSet", "web", "u", "default", "7")


def test_item_of_a_list_is_what_its_resource_says() -> None:
    metadata = {"name": "web", "namespace": "default", "uid": "u", "resourceVersion": "7"}
    assert owner_of({"metadata": metadata}, REPLICA_SETS) == OWNER
    going = {"metadata": {**metadata, "deletionTimestamp": "2030-01-01T00:00:00Z"}}
    assert owner_of(going, REPLICA_SETS) == replace(OWNER, is_deleting=True)
    other = {"apiVersion": "example.com/v1", "kind": "Fleet", "metadata": metadata}
    assert owner_of(other, REPLICA_SETS).kind == "Fleet"


def test_a_view_is_what_its_resource_says() -> None:
    metadata = Metadata(name="web", namespace="default", uid="u", resource_version="7")
    assert owner_of(MetadataOnly(metadata), REPLICA_SETS) == OWNER
    going = msgspec.structs.replace(metadata, deletion_timestamp=datetime(2030, 1, 1, tzinfo=UTC))
    assert owner_of(MetadataOnly(going), REPLICA_SETS).is_deleting


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("api_version", "no owner api version provided"),
        ("kind", "no owner kind provided"),
        ("name", "no owner name provided"),
        ("uid", "no owner uid provided"),
    ],
)
def test_owner_to_which_no_reference_can_point_is_refused(field: str, message: str) -> None:
    blank: dict[str, Any] = {field: ""}
    with pytest.raises(InvalidOwnerError) as caught:
        replace(OWNER, **blank).controller_ref()
    assert str(caught.value) == message


def test_controller_is_found_among_other_owners() -> None:
    ref = ControllerRef("apps/v1", "ReplicaSet", "web", "u")
    other = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "n"}
    pod = {"metadata": {"ownerReferences": [other, {**other, "controller": False}, ref.to_object()]}}
    assert controller_ref_of(pod) == ref == OWNER.controller_ref()
    assert controller_ref_of({"metadata": {"ownerReferences": [other]}}) is None
    assert controller_ref_of({}) is None


def test_reference_leaves_out_what_is_not_said() -> None:
    ref = ControllerRef("v1", "Node", "n", "u", controller=None, block_owner_deletion=None)
    assert ref.to_object() == {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}

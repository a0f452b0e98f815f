"""Who may write the status of a claim: permissions for allocations, and for what a driver reports, by node."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.apiserver.admission import AdmissionRequest, Operation
from podlife.apiserver.admission.device_access import restrict_devices
from podlife.apiserver.authn import UserInfo
from podlife.apiserver.authz import Attributes, Decision
from podlife.apiserver.resource import Resource
from podlife.errors import InvalidError

Object = dict[str, Any]

CLAIMS = Resource("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims")
FIELD = {"key": "metadata.name", "operator": "In", "values": ["node-a"]}
ALLOCATION: Object = {"nodeSelector": {"nodeSelectorTerms": [{"matchFields": [FIELD]}]}}
REPORT = {"driver": "gpu.example.com", "pool": "p", "device": "a"}
OTHER = {"driver": "nic.example.com", "pool": "p", "device": "b"}
DRIVER = "system:serviceaccount:default:driver"


def user(on: str = "", name: str = DRIVER) -> UserInfo:
    extra = (("authentication.kubernetes.io/node-name", (on,)),) if on else ()
    return UserInfo(name, extra=extra)


def refused(by: UserInfo, new: Object, old: Object, *allowed: tuple[str, str, str]) -> list[str]:
    """The fields that are refused if these are the permissions: verb, resource and name."""

    def may(asking: UserInfo, asked: Attributes) -> Decision:
        assert (asking, asked.group) == (by, "resource.k8s.io")
        return Decision((asked.verb, asked.target, asked.name) in allowed)

    before, after = ({"metadata": {"name": "c"}, "spec": {}, "status": each} for each in (old, new))
    request = AdmissionRequest(
        Operation.UPDATE, by, CLAIMS, "default", "c", "status", after, before, verb="patch"
    )
    try:
        restrict_devices(may)(request, lambda key: None)
    except InvalidError as error:
        return [cause["field"] for cause in error.details["causes"]]
    return []


BINDING = ("patch", "resourceclaims/binding", "")
ON_ITS_NODE = ("associated-node:patch", "resourceclaims/driver", "gpu.example.com")
ANYWHERE = ("arbitrary-node:patch", "resourceclaims/driver", "gpu.example.com")


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ({"allocation": ALLOCATION}, {}),
        ({}, {"allocation": ALLOCATION}),
        ({"allocation": ALLOCATION, "reservedFor": [{"uid": "1"}]}, {"allocation": ALLOCATION}),
    ],
)
def test_an_allocation_or_a_reservation_needs_the_permission_to_bind(new: Object, old: Object) -> None:
    assert refused(user(), new, old) == ["status.allocation"]
    assert refused(user(), new, old, BINDING) == []


def test_a_driver_reports_on_its_own_node_or_with_a_permission_for_all() -> None:
    old, new = {"allocation": ALLOCATION}, {"allocation": ALLOCATION, "devices": [REPORT]}
    assert refused(user("node-a"), new, old, ON_ITS_NODE) == []
    for stranger in (user("node-b"), user(), user("node-a", name="jane")):
        assert refused(stranger, new, old, ON_ITS_NODE) == ["status.devices"]
        assert refused(stranger, new, old, ANYWHERE) == []


def test_only_drivers_whose_reports_change_need_a_permission() -> None:
    old = {"allocation": ALLOCATION, "devices": [OTHER]}
    assert refused(user(), {**old, "devices": [OTHER, REPORT]}, old, ANYWHERE) == []
    assert refused(user(), {**old, "devices": [REPORT]}, old, ANYWHERE) == ["status.devices"]
    assert refused(user(), old, old) == []


def test_claims_that_other_nodes_may_use_are_on_no_node() -> None:
    terms = ALLOCATION["nodeSelector"]["nodeSelectorTerms"]
    label = {"key": "zone", "operator": "Exists"}
    for selector in (
        {"nodeSelectorTerms": terms * 2},
        {"nodeSelectorTerms": [terms[0] | {"matchExpressions": [label]}]},
        {"nodeSelectorTerms": [{"matchFields": [FIELD | {"operator": "NotIn"}]}]},
    ):
        old = {"allocation": {"nodeSelector": selector}}
        new = {**old, "devices": [REPORT]}
        assert refused(user("node-a"), new, old, ON_ITS_NODE) == ["status.devices"]

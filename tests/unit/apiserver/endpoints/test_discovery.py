from __future__ import annotations

import json
import re
from typing import Any

import pytest

from podlife.apiserver.catalog import ResourceCatalog
from podlife.apiserver.endpoints import discovery
from podlife.apiserver.registry.negotiation import JSON
from podlife.apiserver.resource_table import RESOURCES

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
ALL_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
CATALOG = ResourceCatalog()
UPDATE = ["get", "patch", "update"]


def listed(group: str, version: str) -> dict[str, dict[str, Any]]:
    answer = json.loads(json.dumps(discovery.api_resource_list(CATALOG, group, version)))
    return {entry["name"]: entry for entry in answer["resources"]}


def test_core_versions_are_served_under_api() -> None:
    assert discovery.api_versions(CATALOG, "127.0.0.1:6443") == {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}],
    }


def test_groups_are_listed_with_their_preferred_version() -> None:
    groups = discovery.api_group_list(CATALOG)
    assert groups["kind"] == "APIGroupList"
    version = {"groupVersion": "apps/v1", "version": "v1"}
    assert groups["groups"][1] == {"name": "apps", "versions": [version], "preferredVersion": version}
    names = dict.fromkeys(name for name, _ in CATALOG.group_versions if name)
    assert [group["name"] for group in groups["groups"]] == list(names)


def test_one_group_is_described_on_its_own() -> None:
    version = {"groupVersion": "batch/v1", "version": "v1"}
    assert discovery.api_group(CATALOG, "batch") == {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": "batch",
        "versions": [version],
        "preferredVersion": version,
    }


def test_group_or_version_that_is_not_there_is_none() -> None:
    assert discovery.api_group(CATALOG, "") is None
    assert discovery.api_group(CATALOG, "nope") is None
    assert discovery.api_resource_list(CATALOG, "apps", "v2") is None


def test_core_list_says_no_api_version_and_others_do() -> None:
    core, apps = (
        discovery.api_resource_list(CATALOG, "", "v1"),
        discovery.api_resource_list(CATALOG, "apps", "v1"),
    )
    assert core is not None
    assert apps is not None
    assert (core.get("apiVersion"), core["groupVersion"]) == (None, "v1")
    assert (apps.get("apiVersion"), apps["groupVersion"]) == ("v1", "apps/v1")


def test_resource_is_described_as_the_real_server_describes_it() -> None:
    assert listed("", "v1")["pods"] == {
        "name": "pods",
        "singularName": "pod",
        "namespaced": True,
        "kind": "Pod",
        "verbs": ALL_VERBS,
        "shortNames": ["po"],
        "categories": ["all"],
        "storageVersionHash": "xPOwRZ+Yhw8=",
    }


@pytest.mark.parametrize(
    ("name", "rest"),
    [
        ("pods/binding", {"kind": "Binding", "verbs": ["create"]}),
        ("pods/eviction", {"group": "policy", "version": "v1", "kind": "Eviction", "verbs": ["create"]}),
        ("pods/exec", {"kind": "PodExecOptions", "verbs": ["create", "get"]}),
        ("pods/log", {"kind": "Pod", "verbs": ["get"]}),
        ("pods/status", {"kind": "Pod", "verbs": UPDATE}),
        (
            "replicationcontrollers/scale",
            {"group": "autoscaling", "version": "v1", "kind": "Scale", "verbs": UPDATE},
        ),
    ],
)
def test_subresource_is_described_with_what_it_speaks(name: str, rest: dict[str, object]) -> None:
    assert listed("", "v1")[name] == {"name": name, "singularName": "", "namespaced": True, **rest}


def test_namespaces_cannot_be_deleted_as_a_collection() -> None:
    verbs = listed("", "v1")["namespaces"]["verbs"]
    assert verbs == [each for each in ALL_VERBS if each != "deletecollection"]


def test_review_can_only_be_created() -> None:
    review = listed("authorization.k8s.io", "v1")["selfsubjectaccessreviews"]
    assert review["verbs"] == ["create"]
    assert "storageVersionHash" not in review


def test_events_of_the_newer_group_are_stored_as_the_older() -> None:
    newer, older = listed("events.k8s.io", "v1")["events"], listed("", "v1")["events"]
    assert newer["storageVersionHash"] == older["storageVersionHash"] == "r2yiGXH7wu8="


def test_resources_are_listed_by_name() -> None:
    names = list(listed("", "v1"))
    assert names == sorted(names)


def test_aggregated_documents_hold_every_resource_between_them() -> None:
    found = set()
    for core in (True, False):
        for group in json.loads(discovery.aggregated(CATALOG, core=core).body)["items"]:
            assert ("name" not in group["metadata"]) == core
            for version in group["versions"]:
                assert version["freshness"] == "Current"
                found |= {
                    (group["metadata"].get("name", ""), version["version"], each["resource"])
                    for each in version["resources"]
                }
    assert found == {(row.group, row.version, row.plural) for row in RESOURCES}


def test_aggregated_resource_is_described_as_the_real_server_describes_it() -> None:
    document = json.loads(discovery.aggregated(CATALOG, core=True).body)
    resources = {each["resource"]: each for each in document["items"][0]["versions"][0]["resources"]}
    own = {"group": "", "version": "", "kind": "ReplicationController"}
    scale = {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    assert resources["replicationcontrollers"] == {
        "resource": "replicationcontrollers",
        "responseKind": own,
        "scope": "Namespaced",
        "singularResource": "replicationcontroller",
        "verbs": ALL_VERBS,
        "shortNames": ["rc"],
        "categories": ["all"],
        "subresources": [
            {"subresource": "scale", "responseKind": scale, "verbs": UPDATE},
            {"subresource": "status", "responseKind": own, "verbs": UPDATE},
        ],
    }


def test_aggregated_documents_are_told_apart_by_their_tags() -> None:
    core, groups = discovery.aggregated(CATALOG, core=True), discovery.aggregated(CATALOG, core=False)
    assert core.etag != groups.etag
    assert re.fullmatch(r'"[0-9A-F]{128}"', core.etag)


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", False),
        (JSON, False),
        (AGGREGATED, True),
        (
            f"{AGGREGATED},application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,{JSON}",
            True,
        ),
        ("application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList", False),
    ],
)
def test_aggregated_document_is_given_to_who_asks_for_it(accept: str, *, expected: bool) -> None:
    assert discovery.is_aggregated(accept) is expected


def test_version_is_one_that_clients_can_parse() -> None:
    info = discovery.version_info()
    assert (info["major"], info["minor"]) == ("1", "36")
    assert re.fullmatch(r"v1\.36\.\d+\+podlife(\.[0-9A-Za-z-]+)+", info["gitVersion"])
    assert all(isinstance(value, str) for value in info.values())

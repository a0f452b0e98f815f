"""Which resources are followed, from the documents that servers give."""

from __future__ import annotations

import json
from typing import Any

import pytest

from podlife.client import Client, InProcessTransport, Ref
from podlife.client.discovery import ServerResources, discover
from podlife.errors import ApiError
from podlife.wire import Request, Response

ALL = ["create", "delete", "get", "list", "patch", "watch"]
PODS = Ref("", "v1", "pods", kind="Pod")
NODES = Ref("", "v1", "nodes", namespaced=False, kind="Node")
WIDGETS = Ref("example.com", "v2", "widgets", kind="Widget")


class Server:
    """Answers by path; what it does not know is 404, a number is a refusal."""

    def __init__(self, documents: dict[str, Any]) -> None:
        self.documents = documents
        self.asked: list[str] = []

    async def __call__(self, request: Request) -> Response:
        self.asked.append(request.path)
        found = self.documents.get(request.path, 404)
        if isinstance(found, int):
            return Response(found, json.dumps({"kind": "Status", "code": found, "message": "no"}).encode())
        return Response(200, json.dumps(found).encode())

    async def discover(self) -> ServerResources:
        async with Client(InProcessTransport(self), timeout_seconds=1) as client:
            return await discover(client)


def new(resource: str, kind: str, verbs: list[str] = ALL, *, scope: str = "Namespaced") -> dict[str, Any]:
    """An entry of an aggregated document."""
    return {"resource": resource, "responseKind": {"kind": kind}, "scope": scope, "verbs": verbs}


def old(name: str, kind: str, verbs: list[str] = ALL, *, namespaced: bool = True) -> dict[str, Any]:
    """An entry of a version's own document."""
    return {"name": name, "singularName": "", "namespaced": namespaced, "kind": kind, "verbs": verbs}


def aggregated(**groups: list[dict[str, Any]]) -> dict[str, Any]:
    items = [{"metadata": {"name": name}, "versions": versions} for name, versions in groups.items()]
    return {"kind": "APIGroupDiscoveryList", "items": items}


CORE = {
    "version": "v1",
    "freshness": "Current",
    "resources": [
        new("pods", "Pod"),
        new("nodes", "Node", scope="Cluster"),
        new("bindings", "Binding", ["create"]),
        new("componentstatuses", "ComponentStatus", ["get", "list"], scope="Cluster"),
    ],
}


async def test_what_can_be_listed_watched_and_deleted_is_followed_whatever_else_there_is() -> None:
    server = Server({"/api": aggregated(**{"": [CORE]}), "/apis": aggregated()})
    found = await server.discover()
    assert found.followed == {PODS, NODES}
    assert found.kinds["v1", "Binding"] == Ref("", "v1", "bindings", kind="Binding")
    assert not found.unknown
    assert server.asked == ["/api", "/apis"]


async def test_a_resource_of_several_versions_is_followed_once_in_the_preferred_one_and_known_in_all() -> (
    None
):
    versions = [
        {"version": "v2", "resources": [new("widgets", "Widget"), new("listless", "Listless", ["get"])]},
        {
            "version": "v1",
            "resources": [new("widgets", "Widget"), new("gears", "Gear"), new("listless", "Listless")],
        },
    ]
    server = Server({"/api": aggregated(), "/apis": aggregated(**{"example.com": versions})})
    found = await server.discover()
    assert found.followed == {WIDGETS, Ref("example.com", "v1", "gears", kind="Gear")}
    assert found.kinds["example.com/v1", "Widget"].version == "v1"
    assert found.kinds["example.com/v2", "Widget"].version == "v2"
    assert ("example.com/v3", "Widget") not in found.kinds


async def test_a_version_that_the_server_has_not_heard_of_for_long_is_unknown() -> None:
    stale = {"version": "v2", "freshness": "Stale", "resources": [new("widgets", "Widget")]}
    server = Server({"/api": aggregated(**{"": [CORE]}), "/apis": aggregated(**{"example.com": [stale]})})
    found = await server.discover()
    assert found.followed == {PODS, NODES}
    assert found.unknown == {"example.com/v2"}


OLD = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {
        "kind": "APIGroupList",
        "groups": [
            {
                "name": "example.com",
                "versions": [{"version": "v1"}, {"version": "v2"}],
                "preferredVersion": {"version": "v2"},
            },
            {"name": "down.example.com", "versions": [{"version": "v1"}]},
        ],
    },
    "/api/v1": {
        "resources": [old("pods", "Pod"), old("pods/log", "Pod"), old("nodes", "Node", namespaced=False)]
    },
    "/apis/example.com/v1": {"resources": [old("widgets", "Widget")]},
    "/apis/example.com/v2": {"resources": [old("widgets", "Widget")]},
}


async def test_a_server_without_aggregated_documents_is_asked_version_by_version() -> None:
    found = await Server({**OLD, "/apis/down.example.com/v1": 500}).discover()
    assert found.followed == {PODS, NODES, WIDGETS}
    assert found.unknown == {"down.example.com/v1"}


async def test_a_version_that_is_not_served_any_more_is_no_unknown_one() -> None:
    found = await Server(OLD).discover()
    assert not found.unknown
    assert found.followed == {PODS, NODES, WIDGETS}


@pytest.mark.parametrize("path", ["/api", "/apis"])
async def test_a_server_that_says_nothing_is_an_error(path: str) -> None:
    with pytest.raises(ApiError):
        await Server({**OLD, path: 403}).discover()

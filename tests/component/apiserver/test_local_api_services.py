"""Every group and version that the server serves has an APIService, and those of definitions come and go with them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from podlife.apiserver.aggregation.local_api_services import LocalApiServiceController, register_built_in
from podlife.apiserver.apiextensions.controller import CustomResourceDefinitionController
from podlife.apiserver.endpoints import ApiHandler
from podlife.testing import virtual_time
from tests.component.apiserver.requests import ask
from tests.component.apiserver.test_custom_resources import CRDS, MERGE, definition
from tests.kit.embedded import start
from tests.workloads.runs import at_work

API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
MANAGED = "kube-aggregator.kubernetes.io/automanaged"


async def names(handler: ApiHandler) -> list[str]:
    await asyncio.sleep(5)
    _, found = await ask(handler, "GET", API_SERVICES)
    return [each["metadata"]["name"] for each in found["items"]]


@asynccontextmanager
async def following() -> AsyncIterator[ApiHandler]:
    handler = await start()
    definitions = CustomResourceDefinitionController(handler.registry)
    local = LocalApiServiceController(handler.registry)
    async with at_work(definitions.run), at_work(local.run):
        yield handler


def version(name: str, **more: Any) -> dict[str, Any]:
    [made] = definition()["spec"]["versions"]
    return made | {"name": name, "storage": False} | more


@virtual_time
async def test_built_in_groups_are_registered_when_the_server_starts() -> None:
    handler = await start()
    await register_built_in(handler.registry)
    found = await names(handler)
    assert {"v1.", "v1.apps", "v1.autoscaling", "v2.autoscaling", "v1.apiextensions.k8s.io"} <= {*found}
    # All but the group of APIServices itself, as upstream.
    assert len(found) == len(handler.registry.catalog.group_versions) - 1
    _, apps = await ask(handler, "GET", f"{API_SERVICES}/v1.apps")
    assert apps["metadata"]["labels"] == {MANAGED: "onstart"}
    assert apps["spec"] == {
        "group": "apps",
        "version": "v1",
        "groupPriorityMinimum": 17800,
        "versionPriority": 15,
    }
    [condition] = apps["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Available", "True", "Local")


@virtual_time
async def test_the_next_start_restores_what_was_deleted_and_removes_what_is_not_served() -> None:
    handler = await start()
    await register_built_in(handler.registry)
    before = await names(handler)
    await ask(handler, "DELETE", f"{API_SERVICES}/v1.apps")
    for name, labels in (("v1.old.example.com", {MANAGED: "onstart"}), ("v1.own.example.com", {})):
        spec = {"group": name[3:], "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1}
        await ask(handler, "POST", API_SERVICES, {"metadata": {"name": name, "labels": labels}, "spec": spec})
    await register_built_in(handler.registry)
    assert sorted(await names(handler)) == sorted([*before, "v1.own.example.com"])


@virtual_time
async def test_those_of_definitions_follow_their_served_versions() -> None:
    async with following() as handler:
        crd = definition()
        crd["spec"]["versions"] += [version("v2"), version("v3", served=False)]
        await ask(handler, "POST", CRDS, crd)
        assert await names(handler) == ["v1.example.com", "v2.example.com"]
        # Another definition has one of the versions, too.
        await ask(handler, "POST", CRDS, definition("gadgets"))
        _, found = await ask(handler, "GET", f"{API_SERVICES}/v2.example.com")
        assert found["metadata"]["labels"] == {MANAGED: "true"}
        assert (found["spec"]["groupPriorityMinimum"], found["spec"]["versionPriority"]) == (1000, 100)
        await ask(handler, "DELETE", f"{CRDS}/widgets.example.com")
        assert await names(handler) == ["v1.example.com"]
        await ask(handler, "DELETE", f"{CRDS}/gadgets.example.com")
        assert await names(handler) == []


@virtual_time
async def test_one_that_a_user_deletes_comes_back_and_one_that_a_user_made_stays() -> None:
    async with following() as handler:
        service = {"namespace": "default", "name": "fish"}
        spec = {"group": "example.com", "version": "v2", "groupPriorityMinimum": 1, "versionPriority": 1}
        own = {"metadata": {"name": "v2.example.com"}, "spec": spec | {"service": service}}
        await ask(handler, "POST", API_SERVICES, own)
        crd = definition()
        crd["spec"]["versions"] += [version("v2")]
        await ask(handler, "POST", CRDS, crd)
        assert await names(handler) == ["v1.example.com", "v2.example.com"]
        await ask(handler, "DELETE", f"{API_SERVICES}/v1.example.com")
        assert await names(handler) == ["v1.example.com", "v2.example.com"]
        patch = {"spec": {"versions": definition()["spec"]["versions"]}}
        await ask(handler, "PATCH", f"{CRDS}/widgets.example.com", patch, kind=MERGE)
        assert await names(handler) == ["v1.example.com", "v2.example.com"]
        _, found = await ask(handler, "GET", f"{API_SERVICES}/v2.example.com")
        assert found["spec"]["service"]["name"] == "fish"

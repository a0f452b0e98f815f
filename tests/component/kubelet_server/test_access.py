"""Who may call the node, and what else it tells."""

from __future__ import annotations

import json

import pytest

from tests.component.kubelet_server.kit import World

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATHS = [
    "/containerLogs/default/web/main",
    "/pods",
    "/runningpods/",
    "/healthz",
    "/metrics",
    "/stats/summary",
    "/x",
]


@pytest.mark.parametrize("path", PATHS)
async def test_a_caller_that_proves_nothing_is_refused_with_401(world: World, path: str) -> None:
    async with world.caller(None).get(f"{world.url}{path}") as answer:
        assert (answer.status, await answer.text()) == (401, "Unauthorized")


async def test_a_caller_that_may_not_is_refused_with_403(world: World) -> None:
    async with world.caller("eve", "people").get(f"{world.url}/pods") as answer:
        line = "Forbidden (user=eve, verb=get, resource=nodes, subresource(s)=[pods proxy])\n"
        assert (answer.status, await answer.text()) == (403, line)


async def test_pods_are_those_the_agent_knows(world: World) -> None:
    world.pods.add("web", "main")
    status, text = await world.get("/pods")
    pods = json.loads(text)
    assert (status, pods["kind"]) == (200, "PodList")
    assert "web" in [pod["metadata"]["name"] for pod in pods["items"]]


async def test_running_pods_are_those_the_runtime_knows(world: World) -> None:
    await world.pods.run("web", "sleep 100")
    world.pods.known.clear()
    _, text = await world.get("/runningpods/")
    [pod] = json.loads(text)["items"]
    assert pod["metadata"]["name"] == "web"
    assert [each["name"] for each in pod["spec"]["containers"]] == ["main"]


async def test_health_and_metrics_and_summary_are_told(world: World) -> None:
    world.pods.add("web", "main")
    assert await world.get("/healthz") == (200, "ok")
    status, _ = await world.get("/metrics")
    assert status == 200
    _, text = await world.get("/stats/summary")
    assert json.loads(text)["pods"][0]["podRef"]["name"] == "web"


async def test_a_method_that_a_path_does_not_have_is_refused(world: World) -> None:
    async with world.caller().delete(f"{world.url}/pods") as answer:
        assert answer.status == 405

"""Logs of real containers through the node's endpoint."""

from __future__ import annotations

import asyncio

from tests.component.kubelet_endpoint.kit import World


async def test_the_log_of_a_container_is_what_it_said(world: World) -> None:
    pod = await world.pods.run("web", "echo one; echo two >&2; sleep 0.01")
    await world.pods.ended(pod["status"]["containerStatuses"][0]["containerID"].rpartition("/")[2])
    status, text = await world.get("/containerLogs/default/web/main")
    assert (status, sorted(text.splitlines())) == (200, ["one", "two"])

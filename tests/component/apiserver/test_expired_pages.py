"""Pages of a list whose revision has been compacted."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from podlife.apiserver.endpoints import ApiHandler
from podlife.apiserver.registry.list_options import encode_continue
from podlife.client import CONFIG_MAPS
from podlife.testing import virtual_time
from tests.component.apiserver.requests import ask
from tests.kit.embedded import connect, start

PATH = "/api/v1/namespaces/default/configmaps"


async def page(server: ApiHandler, token: str = "") -> tuple[int, dict[str, Any]]:
    return await ask(server, "GET", f"{PATH}?limit=2" + (f"&continue={token}" if token else ""))


def names(body: dict[str, Any]) -> list[str]:
    return [each["metadata"]["name"] for each in body["items"]]


async def filled() -> ApiHandler:
    server = await start()
    for number in range(6):
        await connect(server).create(CONFIG_MAPS, {"metadata": {"name": f"m{number}"}}, "default")
    return server


@virtual_time
async def test_a_page_that_expired_can_be_continued_with_what_there_is_now() -> None:
    server = await filled()
    _, first = await page(server)
    client = connect(server)
    await client.delete(CONFIG_MAPS, "m2", "default")
    await asyncio.sleep(400)
    await client.create(CONFIG_MAPS, {"metadata": {"name": "m9"}}, "default")
    code, refused = await page(server, first["metadata"]["continue"])
    assert (code, refused["reason"]) == (410, "Expired")
    assert "use the continue token in this response" in refused["message"]
    code, second = await page(server, refused["metadata"]["continue"])
    assert (code, names(second)) == (200, ["m3", "m4"])
    assert second["metadata"]["resourceVersion"] != first["metadata"]["resourceVersion"]
    assert second["metadata"]["remainingItemCount"] == 2
    # From here on the list is consistent again.
    await client.delete(CONFIG_MAPS, "m5", "default")
    code, third = await page(server, second["metadata"]["continue"])
    assert (code, names(third)) == (200, ["m5", "m9"])
    assert third["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]


@virtual_time
async def test_a_page_is_consistent_for_five_minutes() -> None:
    server = await filled()
    _, first = await page(server)
    await connect(server).delete(CONFIG_MAPS, "m2", "default")
    await asyncio.sleep(290)
    code, second = await page(server, first["metadata"]["continue"])
    assert (code, names(second)) == (200, ["m2", "m3"])


@pytest.mark.parametrize("revision", [0, -2])
@virtual_time
async def test_a_token_with_another_revision_below_one_is_refused(revision: int) -> None:
    code, _ = await page(await filled(), encode_continue(revision, "default/m2"))
    assert code == 400

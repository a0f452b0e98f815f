"""Lists among thousands of objects: other requests get their turn, and nothing is missed or repeated."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from podlife.apiserver.endpoints import ApiHandler
from tests.component.apiserver.requests import CONFIG_MAPS, TABLE, send, whole
from tests.kit import embedded

MANY = 2_000


async def create(handler: ApiHandler, name: str) -> None:
    body = {"metadata": {"name": name, "labels": {"app": "web"}}}
    assert (await send(handler, "POST", CONFIG_MAPS, body)).status == 201


@pytest.fixture
async def handler() -> ApiHandler:
    handler = await embedded.start()
    for number in range(MANY):
        await create(handler, f"map-{number:04}")
    return handler


async def test_a_change_while_a_list_is_chosen_comes_after_it(handler: ApiHandler) -> None:
    before = handler.registry.store.revision
    async with asyncio.TaskGroup() as group:
        listing = group.create_task(send(handler, "GET", f"{CONFIG_MAPS}?labelSelector=app=web"))
        await asyncio.sleep(0)
        assert not listing.done()
        await create(handler, "late")
        await send(handler, "DELETE", f"{CONFIG_MAPS}/map-1999")
        assert not listing.done()
    found: Any = json.loads(await whole(listing.result()))
    assert found["metadata"]["resourceVersion"] == str(before)
    assert [item["metadata"]["name"] for item in found["items"]] == [f"map-{n:04}" for n in range(MANY)]


async def test_a_watch_that_begins_with_a_long_choice_tells_everything_once(handler: ApiHandler) -> None:
    watch = await send(handler, "GET", f"{CONFIG_MAPS}?watch=1&labelSelector=app=web&timeoutSeconds=60")
    assert isinstance(watch.body, AsyncIterator)
    events: list[tuple[str, str]] = []

    async def follow() -> None:
        assert isinstance(watch.body, AsyncIterator)
        async for part in watch.body:
            for line in part.splitlines():
                event = json.loads(line)
                events.append((event["type"], event["object"]["metadata"]["name"]))
            if events[-1] == ("DELETED", "late"):
                return

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(follow())
        await asyncio.sleep(0)
        assert events == []
        await create(handler, "late")
        await send(handler, "DELETE", f"{CONFIG_MAPS}/late")
    assert events[:MANY] == [("ADDED", f"map-{n:04}") for n in range(MANY)]
    assert events[MANY:] == [("ADDED", "late"), ("DELETED", "late")]


@pytest.mark.parametrize("accept", [TABLE, "application/yaml"])
async def test_a_long_list_in_another_form_is_made_beside_the_loop(handler: ApiHandler, accept: str) -> None:
    turns = 0

    async def tick() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    answer = await send(handler, "GET", CONFIG_MAPS, accept=accept)
    async with asyncio.TaskGroup() as group:
        ticking = group.create_task(tick())
        while not turns:
            await asyncio.sleep(0)
        before = turns
        body = await whole(answer)
        ticking.cancel()
    assert b"map-0000" in body
    assert b"map-1999" in body
    # How many there were is the scheduler's choice: on the loop itself there would be none.
    assert turns > before


async def test_a_short_list_in_another_form_is_answered_at_once(handler: ApiHandler) -> None:
    answer = await send(handler, "GET", f"{CONFIG_MAPS}?limit=500", accept=TABLE)
    assert isinstance(answer.body, bytes)
    assert len(json.loads(answer.body)["rows"]) == 500

"""Plays scenarios and compares each mark with what kube-controller-manager and kube-apiserver made of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from podlife.api.codec import Object
from podlife.client import Client
from tests.resourcequota.scenarios import SCENARIOS
from tests.resourcequota.stage import DEADLINE_SECONDS, Stage

GOLDEN = Path(__file__).parent / "golden.json"
CONTROLLER = "resourcequota-controller"
# How many scenarios are under way at once.
_AT_ONCE = 8
# Theirs has reacted to everything, or does so at its next resync.
_QUIET_SECONDS = 3.0
_POLL_SECONDS = 0.3


@cache
def golden() -> dict[str, list[Object]]:
    found: dict[str, list[Object]] = json.loads(GOLDEN.read_text())
    return found


async def record_all(client: Client, names: Iterable[str]) -> dict[str, list[Object]]:
    """What the cluster shows at each mark, when it has not changed for a while."""
    turns = asyncio.Semaphore(_AT_ONCE)

    async def one(name: str) -> list[Object]:
        async with turns:
            stage = Stage(client, name)
            await stage.open()
            return [await _quiet(stage) async for _ in SCENARIOS[name](stage)]

    names = list(names)
    return dict(zip(names, await asyncio.gather(*map(one, names)), strict=True))


async def _quiet(stage: Stage) -> Object:
    loop = asyncio.get_running_loop()
    last, since = await stage.seen(), loop.time()
    while loop.time() - since < _QUIET_SECONDS:
        await asyncio.sleep(_POLL_SECONDS)
        if (seen := await stage.seen()) != last:
            last, since = seen, loop.time()
    return _plain(last)


async def play(client: Client, name: str) -> str:
    """What differs from the golden outcome at the first mark where something does."""
    stage, expected = Stage(client, name), golden()[name]
    await stage.open()
    number = 0
    async for _ in SCENARIOS[name](stage):
        if complaint := await _reach(stage, expected[number]):
            return f"{name}, mark {number + 1}:\n{complaint}"
        number += 1
    return ""


async def play_all(client: Client, names: Iterable[str]) -> dict[str, str]:
    turns = asyncio.Semaphore(_AT_ONCE)

    async def one(name: str) -> str:
        async with turns:
            try:
                return await play(client, name)
            except Exception as error:  # noqa: BLE001 - it is the outcome
                return f"{name}: {type(error).__name__}: {error}"

    names = list(names)
    return dict(zip(names, await asyncio.gather(*map(one, names)), strict=True))


async def _reach(stage: Stage, expected: Object) -> str:
    deadline = asyncio.get_running_loop().time() + DEADLINE_SECONDS
    while (seen := _plain(await stage.seen())) != expected:
        # An answer stays as it is.
        is_final = seen["answers"] != expected["answers"]
        if is_final or asyncio.get_running_loop().time() > deadline:
            fields = [field for field in expected if seen[field] != expected[field]]
            return "\n".join(f"{field}:\n  {_unlike(seen[field], expected[field])}" for field in fields)
        await asyncio.sleep(_POLL_SECONDS)
    return ""


def _unlike(seen: Any, expected: Any) -> str:
    if isinstance(seen, list) and isinstance(expected, list) and len(seen) == len(expected):
        pairs = [pair for pair in zip(seen, expected, strict=True) if pair[0] != pair[1]]
        return "\n  ".join(f"{one!r}\n  not {other!r}" for one, other in pairs)
    return f"{seen!r}\n  not {expected!r}"


def _plain(seen: Object) -> Object:
    result: Object = json.loads(json.dumps(seen, sort_keys=True))
    return result

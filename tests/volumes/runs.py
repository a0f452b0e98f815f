"""Plays scenarios on a real server, side by side; at each mark it waits until nothing changes."""

from __future__ import annotations

import asyncio

from podlife.api.codec import Object
from podlife.client import Client
from podlife.volumes import (
    ClaimProtectionController,
    EphemeralVolumeController,
    PersistentVolumeBinder,
    VolumeAttributesClassProtectionController,
    VolumeProtectionController,
)
from tests.volumes.scenarios import SCENARIOS
from tests.volumes.stage import Stage

CONTROLLERS = (
    PersistentVolumeBinder,
    ClaimProtectionController,
    VolumeProtectionController,
    VolumeAttributesClassProtectionController,
    EphemeralVolumeController,
)
UPSTREAM = [each.name for each in CONTROLLERS]
# More than upstream's period of 15 s, on a busy machine: what is waited for has had its turn.
QUIET_SECONDS = 22.0
AT_ONCE = 40


async def play_all(
    client: Client, names: list[str], expected: dict[str, list[Object]] | None = None
) -> dict[str, list[Object]]:
    """What was seen at each mark. With `expected`, a mark ends as soon as it shows what is expected."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(name: str) -> list[Object]:
        async with turns:
            return await _play(client, name, (expected or {}).get(name))

    return dict(zip(names, await asyncio.gather(*map(one, names)), strict=True))


async def _play(client: Client, name: str, expected: list[Object] | None) -> list[Object]:
    stage = Stage(client, name)
    await stage.open()
    seen: list[Object] = []
    async for _ in SCENARIOS[name](stage):
        seen.append(await _settled(stage, expected[len(seen)] if expected else None))
    return seen


async def _settled(stage: Stage, expected: Object | None) -> Object:
    loop = asyncio.get_running_loop()
    last, since = await stage.seen(), loop.time()
    while loop.time() - since < QUIET_SECONDS and last != expected:
        await asyncio.sleep(1.0)
        now = await stage.seen()
        if now != last:
            last, since = now, loop.time()
    return last

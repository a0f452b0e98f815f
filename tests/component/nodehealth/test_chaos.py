"""Agents that stop and return, controllers that are killed, watches that are cut or stuck, by chance: what must hold
all the time and at the end. CHAOS_SEEDS=1000 plays more of them; one that fails is played again by its number, as in
`CHAOS_SEEDS=18 pytest -k "test_chaos[17]"`."""

from __future__ import annotations

import asyncio
import os
import random
from contextlib import AsyncExitStack

import pytest

from podlife.testing import virtual_time
from tests.component.nodehealth.world import (
    NOT_READY,
    UNREACHABLE,
    Line,
    Object,
    World,
    is_terminating,
    ready_status,
    taints,
    tolerates,
    world,
)

SEEDS = range(int(os.environ.get("CHAOS_SEEDS", "6")))
NODES = ("a1", "a2", "b1", "b2")
STEADY = "c1"
# How long each kind of pod bears a node that is down.
BEARS = {"short": 20, "default": 300}
STEPS = 12


class Chaos:
    def __init__(self, w: World, chance: random.Random) -> None:
        self.w = w
        self.chance = chance
        self.line = Line()
        self.alive = set(NODES)
        self.kills = AsyncExitStack()

    async def begin(self) -> None:
        await self.w.add_node(STEADY, zone="c")
        await self.w.add_pod("steady", STEADY)
        for name in NODES:
            await self.w.add_node(name, zone=name[0])
            for kind, seconds in BEARS.items():
                bears = [tolerates(key, seconds) for key in (NOT_READY, UNREACHABLE)]
                await self.w.add_pod(f"{kind}-{name}", name, tolerations=bears)
        await self.kills.enter_async_context(self.w.at_work(way=self.line))

    async def step(self) -> None:
        what = self.chance.choice([self.stop, self.start, self.start, self.kill, self.disturb, self.heal])
        await what()
        await asyncio.sleep(self.chance.choice([1, 7, 33, 61, 200]))

    async def stop(self) -> None:
        if self.alive:
            name = self.chance.choice(sorted(self.alive))
            self.alive.discard(name)
            await self.w.stop(name)

    async def start(self) -> None:
        if dead := sorted(set(NODES) - self.alive):
            name = self.chance.choice(dead)
            self.alive.add(name)
            await self.w.post(name)
            await self.w.renew(name)
            self.w.start(name)

    async def kill(self) -> None:
        await self.kills.aclose()
        self.line = Line()
        await self.kills.enter_async_context(self.w.at_work(way=self.line))

    async def disturb(self) -> None:
        way = self.chance.choice([self.line.cut, self.line.stuck])
        way.add(self.chance.choice(["nodes", "pods", "leases"]))

    async def heal(self) -> None:
        self.line.cut.clear()
        self.line.stuck.clear()


def evicting(node: Object) -> bool:
    return any(each.endswith(":NoExecute") for each in taints(node))


def tainted_since(w: World, name: str, at: float) -> float | None:
    """Since when the node had an evicting taint without interruption at this moment, as the server had it."""
    since = None
    for changed_at, kind, a_name, obj in w.history.changes:
        if (kind, a_name) != ("Node", name) or changed_at > at:
            continue
        if not evicting(obj):
            since = None
        elif since is None:
            since = changed_at
    return since


def check_evictions(w: World) -> None:
    """Nobody goes before its time is over, on a node that has the taint for that long."""
    for name in NODES:
        for kind, seconds in BEARS.items():
            gone_at = w.history.first("Pod", f"{kind}-{name}", is_terminating)
            if gone_at is not None:
                since = tainted_since(w, name, gone_at)
                assert since is not None, f"{kind}-{name} went from a node without a taint"
                assert gone_at - since >= seconds - 0.01, f"{kind}-{name} went too early"


@pytest.mark.parametrize("seed", SEEDS)
@virtual_time
async def test_chaos(seed: int) -> None:
    async with world() as w:
        chaos = Chaos(w, random.Random(seed))
        async with chaos.kills:
            await chaos.begin()
            await asyncio.sleep(10)
            for _ in range(STEPS):
                await chaos.step()
            await chaos.heal()
            # The watches come back, evictions take their turn, and tolerations run out.
            await asyncio.sleep(60 + 60 + 40 + 300 + 60)
            await check_the_end(chaos)


async def check_the_end(chaos: Chaos) -> None:
    w = chaos.w
    check_evictions(w)
    assert set(w.history.states("Node", STEADY, ready_status)) <= {None, "True"}
    assert not any(w.history.states("Node", STEADY, taints))
    assert not await w.has_gone("steady")
    for name in NODES:
        is_alive = name in chaos.alive
        node = await w.node(name)
        assert ready_status(node) == ("True" if is_alive else "Unknown"), name
        assert taints(node) == ([] if is_alive else ["unreachable:NoSchedule", "unreachable:NoExecute"]), name
        if not is_alive:
            assert [await w.has_gone(f"{kind}-{name}") for kind in BEARS] == [True, True], name

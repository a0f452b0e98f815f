"""Nodes that die and come back, people who set and remove taints, a controller that is killed or cut off, by chance:
what must hold of every change of every node. CHAOS_SEEDS=1000 plays more of them; one that fails is played again by its
number, as in `CHAOS_SEEDS=18 pytest -k "test_chaos[17]"`."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from podlife.client import NODES, PODS
from podlife.errors import ConflictError
from podlife.nodehealth.out_of_service import Portion
from podlife.nodehealth.out_of_service.record import OUT_OF_SERVICE
from podlife.testing import Cluster, ObservedChange, virtual_time
from tests.component.out_of_service.world import LAX, NAME, Fence, Making, annotation, cluster_with, node
from tests.component.stories.objects import OUT_OF_SERVICE as BY_HAND
from tests.component.stories.objects import condition, pod

SEEDS = range(int(os.environ.get("CHAOS_SEEDS", "3")))
STEPS = 10
NAMES = ("n1", "n2", "n3", "n4", "n5")
# Two of five may be out, and two have to be well.
SETTINGS = replace(LAX, cool_down_seconds=60.0, most=Portion(percent=40), min_healthy=Portion(number=2))


class Chaos:
    def __init__(self, cluster: Cluster, fence: Fence, chance: random.Random) -> None:
        self.cluster = cluster
        self.fence = fence
        self.chance = chance
        self.down: set[str] = set()
        # When the fence first and last could say that a node is dead.
        self.deaths: list[tuple[str, float, float]] = []
        self.died_at: dict[str, float] = {}

    async def step(self) -> None:
        acts = [self.die, self.die, self.boot, self.boot, self.kill, self.cut, self.taint, self.untaint]
        await self.chance.choice(acts)()
        await self.cluster.advance(seconds=self.chance.choice([1, 30, 130]))

    async def die(self) -> None:
        name = self.chance.choice(NAMES)
        if name not in self.down:
            await self.cluster.node(name).power_off()
            self.down.add(name)
            self.fence.dead.add(name)
            self.died_at[name] = self.cluster.time

    async def boot(self) -> None:
        for name in sorted(self.down)[:1]:
            self.down.remove(name)
            self.fence.dead.remove(name)
            self.deaths.append((name, self.died_at.pop(name), self.cluster.time))
            await self.cluster.node(name).start()

    async def kill(self) -> None:
        await self.cluster.controllers.restart(NAME)

    async def cut(self) -> None:
        faults = self.cluster.controllers.faults(NAME)
        faults.cut()
        await self.cluster.advance(seconds=self.chance.choice([5, 40]))
        faults.restore()

    async def taint(self) -> None:
        await self._edit(lambda taints: [*(each for each in taints if not _is_out(each)), BY_HAND])

    async def untaint(self) -> None:
        await self._edit(lambda taints: [each for each in taints if not _is_out(each)])

    async def _edit(self, edit: Any) -> None:
        name = self.chance.choice(NAMES)
        found = await node(self.cluster, name)
        taints = edit(found["spec"].get("taints") or [])
        about = {"resourceVersion": found["metadata"]["resourceVersion"]}
        try:
            await self.cluster.client.patch(NODES, name, {"metadata": about, "spec": {"taints": taints}})
        except ConflictError:
            return

    def was_dead(self, name: str, at: float) -> bool:
        """Whether the fence could have said so shortly before."""
        began = self.died_at.get(name)
        spare = SETTINGS.fresh_seconds
        return (began is not None and began <= at) or any(
            each == name and start <= at <= end + spare for each, start, end in self.deaths
        )


def _is_out(taint: dict[str, Any]) -> bool:
    return taint["key"] == OUT_OF_SERVICE


def _taint(obj: Any) -> dict[str, Any] | None:
    """Ours has a moment, a person's has none."""
    taints = () if obj is None else obj["spec"].get("taints") or ()
    return next((each for each in taints if _is_out(each)), None)


def judge(changes: Sequence[ObservedChange], chaos: Chaos) -> None:
    """Every taint that the controller set, and every one of a person's that went."""
    by_hand = {(entry.path.rpartition("/")[2], entry.at) for entry in chaos.cluster.audit.find(who="test")}
    last: dict[str, Any] = {}
    for change in changes:
        now, name = change.object, change.name
        before, taint = _taint(last.get(name)), _taint(now)
        if taint != before and taint is not None and "timeAdded" in taint:
            assert condition(now, "Ready").get("status") != "True", "a node that is ready is never tainted"
            assert chaos.was_dead(name, change.at), "nobody is tainted who is not confirmed dead"
            out = [each for each in NAMES if each != name and _taint(last.get(each)) is not None]
            assert len(out) + 1 <= 2, "the share is never exceeded"
        if taint != before and before is not None and "timeAdded" not in before:
            assert (name, change.at) in by_hand, "a person's taint is never touched"
        last[name] = now


@pytest.mark.parametrize("seed", SEEDS)
@virtual_time
async def test_chaos(seed: int) -> None:
    fence = Fence()
    async with cluster_with(Making(SETTINGS, fence), nodes=len(NAMES)) as cluster:
        for name in NAMES:
            await cluster.client.create(PODS, pod(f"on-{name}", name), "default")
        await cluster.settled()
        chaos = Chaos(cluster, fence, random.Random(seed))
        async with cluster.timeline(NODES) as seen:
            for _ in range(STEPS):
                await chaos.step()
            while chaos.down:
                await chaos.boot()
            await cluster.advance(minutes=3)
            judge(seen.changes, chaos)
        for name in NAMES:
            assert "timeAdded" not in (_taint(await node(cluster, name)) or {}), "all are well: ours is off"
            assert await annotation(cluster, name) is None

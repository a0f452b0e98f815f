"""An agent among failures: a server and a runtime that fail at random, and agents that are killed; then it is calm, and
everything is as it should be. A seed that fails can be played again."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
from collections import Counter
from typing import Any

import pytest

from podlife.client import PODS
from podlife.errors import NotFoundError, UnreachableError
from podlife.kubelet.runtime import RuntimeUnavailableError
from podlife.kubelet.runtimes.sim import Behaviour, SimRuntime
from podlife.testing import virtual_time
from tests.component.kubelet.node_world import NodeWorld, node_world, pod
from tests.kit.embedded import refusal
from tests.kit.objects import container

VERBS = (
    "run_sandbox",
    "stop_sandbox",
    "remove_sandbox",
    "create_container",
    "start_container",
    "stop_container",
    "remove_container",
    "list_sandboxes",
    "list_containers",
)
# PODLIFE_CHAOS_SEEDS asks for more of them.
_SEEDS = int(os.environ.get("PODLIFE_CHAOS_SEEDS", "6"))
PODS_WANTED = ("a", "b", "c", "d")


class Trouble:
    """Fails some calls, before they are made or after: then what was asked for has happened all the same."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.share = 0.2

    def disturb(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in VERBS:
            monkeypatch.setattr(SimRuntime, name, self._bad(getattr(SimRuntime, name)))

    def _bad(self, verb: Any) -> Any:
        async def fail_at_times(*arguments: Any, **options: Any) -> Any:
            fate = self.chance.random()
            if fate < self.share / 2:
                raise RuntimeUnavailableError("the runtime does not answer")
            answer = await verb(*arguments, **options)
            if fate < self.share:
                raise RuntimeUnavailableError("the runtime did not answer in time")
            return answer

        return fail_at_times

    async def on_the_way(self, request: Any, handler: Any) -> Any:
        fate = self.chance.random()
        if fate < self.share / 3:
            raise UnreachableError("nobody is there")
        answer = await handler(request)
        if fate < self.share * 2 / 3:
            raise UnreachableError("the answer was lost")
        return refusal(503, "ServiceUnavailable") if fate < self.share else answer


async def live(world: NodeWorld, trouble: Trouble) -> None:
    """Agents come and go, and so do pods."""
    for name in PODS_WANTED:
        await world.create(
            pod(name, containers=[container(), container("job")], initContainers=[container("first")])
        )
    for _ in range(4):
        await asyncio.sleep(trouble.chance.uniform(0, 8))
        await world.kill()
        await world.begin(trouble.on_the_way)
        if trouble.chance.random() < 0.5:
            # Or it was deleted before.
            with contextlib.suppress(NotFoundError):
                await world.delete(trouble.chance.choice(PODS_WANTED[:2]))


@pytest.mark.parametrize("seed", range(_SEEDS))
@virtual_time
async def test_after_any_trouble_what_is_wanted_runs_once_and_what_is_not_is_gone(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    trouble = Trouble(seed)
    trouble.disturb(monkeypatch)
    async with node_world(is_begun=False) as world:
        world.behaviours = {
            "first": Behaviour(start_seconds=0.5, run_seconds=1),
            "main": Behaviour(start_seconds=0.5, stop_seconds=2),
            "job": Behaviour(run_seconds=25, exit_code=1),
        }
        await world.begin(trouble.on_the_way)
        await live(world, trouble)
        trouble.share = 0.0
        await check_calm(world)


async def check_calm(world: NodeWorld) -> None:
    await asyncio.sleep(700)
    wanted = {}
    for each in (await world.client.list_all(PODS, "default")).items:
        assert "deletionTimestamp" not in each["metadata"], each["status"]
        assert each["status"]["phase"] == "Running", each["status"]
        wanted[each["metadata"]["uid"]] = each
    alive = [each for each in world.machine.containers.values() if each.exit_code is None]
    counted = Counter((each.sandbox.config.pod_uid, each.config.name) for each in alive)
    assert set(counted.values()) <= {1}, counted
    assert {uid for uid, _ in counted} == set(wanted)
    assert {uid for uid in wanted if (uid, "main") not in counted} == set()
    ready = Counter(each.config.pod_uid for each in world.machine.sandboxes.values() if each.state == "Ready")
    assert set(ready) == set(wanted)
    assert set(ready.values()) == {1}
    assert {each.config.pod_uid for each in world.machine.sandboxes.values()} == set(wanted)

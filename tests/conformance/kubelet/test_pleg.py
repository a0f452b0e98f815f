"""Looking at a runtime: what changed between two looks, what is read and when, what is kept, and who is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import cast

import pytest

from podlife.aio import cancel_and_wait
from podlife.kubelet.monotonic import MonotonicSeconds
from podlife.kubelet.observed_pod import ObservedPod
from podlife.kubelet.pleg.events import PodLifecycleEvent, PodLifecycleEventType, compute_events, states_of
from podlife.kubelet.pleg.generic import GenericPLEG
from podlife.kubelet.pleg.pod_cache import PodCache
from podlife.kubelet.runtime import (
    ContainerConfig,
    ContainerStatus,
    Runtime,
    RuntimeEvent,
    RuntimeUnavailableError,
    SandboxConfig,
    SandboxState,
    SandboxStatus,
)
from podlife.kubelet.runtimes.sim import Behaviour, SimRuntime, SimWorld
from podlife.testing import LoopClock, virtual_time
from tests.component.kubelet.node_world import NodeWorld, on_a_node, pod
from tests.conformance.kubelet.kit import START, instance

STARTED, DIED = PodLifecycleEventType.STARTED, PodLifecycleEventType.DIED
REMOVED, CHANGED = PodLifecycleEventType.REMOVED, PodLifecycleEventType.CHANGED


def box(state: SandboxState, id_: str = "s", uid: str = "u") -> SandboxStatus:
    return SandboxStatus(id_, SandboxConfig(uid, "ns", "p"), state, START)


def pleg_at(now: float) -> GenericPLEG:
    """One that is asked for what it has seen, and looks at nothing by itself."""
    return GenericPLEG(cast(Runtime, None), PodCache(), seconds=lambda: now, on_events=lambda *_: None)


def listed(state: str | None) -> list[ContainerStatus]:
    return [] if state is None else [instance("a", state)]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param("created", "running", [STARTED], id="PL-01 running"),
        pytest.param("running", "exited", [DIED], id="PL-01 exited"),
        pytest.param("created", "exited", [DIED], id="PL-01 exited without being seen to run"),
        pytest.param("exited", None, [REMOVED], id="PL-01 gone after exited"),
        pytest.param("running", None, [DIED, REMOVED], id="PL-01 gone after running"),
        pytest.param("unknown", None, [DIED, REMOVED], id="PL-01 gone after unknown"),
        pytest.param("running", "unknown", [CHANGED], id="PL-01 unknown"),
        pytest.param("created", "unknown", [], id="PL-01 created is unknown"),
        pytest.param("running", "running", [], id="PL-01 the same"),
        pytest.param(None, "running", [STARTED], id="PL-02 running"),
        pytest.param(None, "exited", [DIED], id="PL-02 exited"),
    ],
)
def test_from_one_state_to_another(
    old: str | None, new: str | None, expected: list[PodLifecycleEventType]
) -> None:
    found = compute_events(states_of([], listed(old)), states_of([], listed(new)))
    assert list(found) == [PodLifecycleEvent(kind, "u", "a-0") for kind in expected]


def test_the_first_look_tells_nothing_of_what_is_not_known() -> None:
    """PL-02"""
    first = states_of([], [instance("a", "unknown"), instance("b", "created")])
    assert [each.kind for each in compute_events({}, first)] == [CHANGED, CHANGED]
    assert not CHANGED.is_sync_due


def test_sandboxes_are_like_containers() -> None:
    """PL-03"""
    ready, ended = states_of([box(SandboxState.READY)], []), states_of([box(SandboxState.NOT_READY)], [])
    assert [each.kind for each in compute_events({}, ready)] == [STARTED]
    assert [each.kind for each in compute_events(ready, ended)] == [DIED]
    assert [each.kind for each in compute_events(ended, {})] == [REMOVED]


@pytest.mark.parametrize(("seconds", "expected"), [(0, True), (180, True), (180.5, False)])
def test_a_runtime_that_was_not_listed_for_three_minutes_is_not_well(seconds: float, expected: bool) -> None:
    """PL-09"""
    pleg = pleg_at(1000.0 + seconds)
    assert not pleg.is_healthy
    pleg.relisted_at = 1000.0
    assert pleg.is_healthy is expected


def test_running_pods_are_counted_once_each_and_containers_by_state() -> None:
    """PL-10"""
    pleg = pleg_at(0.0)
    boxes = [box(SandboxState.READY, "1"), box(SandboxState.READY, "2")]
    containers = [instance("a", "running"), instance("b", "running"), instance("c", "exited", 1)]
    pleg.cache.put("u", ObservedPod.of(boxes, containers), 1.0)
    pleg.cache.put("v", ObservedPod.of([box(SandboxState.NOT_READY, "3", "v")], []), 1.0)
    assert pleg.counts() == (1, {"running": 2, "exited": 1})


def test_what_is_removed_needs_no_sync() -> None:
    """PL-13"""
    assert {kind for kind in PodLifecycleEventType if kind.is_sync_due} == {STARTED, DIED}


class Watched(SimRuntime):
    """A runtime that can fail, be silent, and notes what it was asked for: a UID, or everything."""

    def __init__(self, world: SimWorld) -> None:
        super().__init__(world)
        self.asked: list[str] = []
        self.failing: set[str] = set()
        self.is_silent = False

    async def list_sandboxes(self, *, pod_uid: str | None = None) -> list[SandboxStatus]:
        self.asked.append(pod_uid or "*")
        if (pod_uid or "*") in self.failing:
            raise RuntimeUnavailableError("not now")
        return await super().list_sandboxes(pod_uid=pod_uid)

    @asynccontextmanager
    async def _no_events(self) -> AsyncIterator[AsyncIterator[RuntimeEvent]]:
        raise RuntimeUnavailableError("this runtime tells nothing")
        yield

    def events(self) -> AbstractAsyncContextManager[AsyncIterator[RuntimeEvent]]:
        return self._no_events() if self.is_silent else super().events()


class World:
    def __init__(self, *, is_silent: bool = False) -> None:
        self.clock = LoopClock()
        self.runtime = Watched(SimWorld(self.clock))
        self.runtime.is_silent = is_silent
        self.cache = PodCache()
        self.seconds = MonotonicSeconds()
        self.told: list[tuple[str, list[str]]] = []
        self.changes = GenericPLEG(self.runtime, self.cache, seconds=self.seconds, on_events=self._take)

    def _take(self, uid: str, changes: tuple[PodLifecycleEvent, ...]) -> None:
        # Whoever is told finds the cache up to date.
        self.cache.get(uid)
        self.told.append((uid, [each.kind.value for each in changes]))

    async def run_pod(self, uid: str = "u") -> str:
        sandbox_id = await self.runtime.run_sandbox(SandboxConfig(uid, "default", uid))
        container_id = await self.runtime.create_container(sandbox_id, ContainerConfig("main", "image"))
        await self.runtime.start_container(container_id)
        return sandbox_id

    @asynccontextmanager
    async def looking(self) -> AsyncIterator[None]:
        running = asyncio.get_running_loop().create_task(self.changes.run())
        try:
            await self.changes.wait_for_relist()
            yield
        finally:
            await cancel_and_wait(running)

    def states(self, uid: str = "u") -> list[str]:
        return [each.state.value for each in self.cache.get(uid).containers]


def container_of(world: World, uid: str = "u") -> ContainerStatus:
    return world.cache.get(uid).containers[0]


@virtual_time
async def test_a_pod_that_is_gone_from_the_runtime_died_was_removed_and_leaves_an_empty_status() -> None:
    """PL-04"""
    world = World()
    sandbox_id = await world.run_pod()
    async with world.looking():
        assert world.states() == ["Running"]
        world.told.clear()
        world.runtime._world.remove_sandbox(world.runtime._world.sandboxes[sandbox_id])
        world.changes.request_relist()
        await asyncio.sleep(0.1)
        assert sorted(world.told[0][1]) == [
            "ContainerDied",
            "ContainerDied",
            "ContainerRemoved",
            "ContainerRemoved",
        ]
        assert world.cache.get("u").containers == ()
        assert list(world.cache) == []


@virtual_time
async def test_a_pod_that_cannot_be_read_is_told_of_when_it_can_be() -> None:
    """PL-05"""
    world = World()
    await world.run_pod()
    async with world.looking():
        world.told.clear()
        world.runtime.failing.add("u")
        await world.runtime.stop_container(container_of(world).id, grace_seconds=1)
        await asyncio.sleep(0.5)
        assert world.told == []
        with pytest.raises(RuntimeUnavailableError, match="not now"):
            world.cache.get("u")
        assert [each.is_running for each in world.cache.last_seen("u").containers] == [True]
        world.runtime.failing.clear()
        await asyncio.sleep(1.1)
        assert world.told == [("u", ["ContainerDied"])]
        assert world.states() == ["Exited"]


@virtual_time
async def test_a_look_that_was_asked_for_is_told_of_though_nothing_changed_unless_it_failed() -> None:
    """PL-06"""
    world = World()
    await world.run_pod()
    async with world.looking():
        world.told.clear()
        world.runtime.failing.add("u")
        world.changes.reinspect("u")
        await asyncio.sleep(0.5)
        assert world.told == []
        world.runtime.failing.clear()
        await asyncio.sleep(2)
        assert world.told == [("u", [])]
        world.changes.reinspect("gone")
        await asyncio.sleep(1)
        assert world.told == [("u", [])]


@virtual_time
async def test_however_much_changes_at_once_none_of_it_is_lost() -> None:
    """PL-07: upstream drops what does not fit its channel of a thousand."""
    world = World()
    async with world.looking():
        for number in range(1500):
            await world.run_pod(f"u{number}")
        await asyncio.sleep(1)
        assert {uid for uid, _ in world.told} == {f"u{number}" for number in range(1500)}


@virtual_time
async def test_a_runtime_that_cannot_be_listed_is_not_well_after_three_minutes() -> None:
    """PL-09"""
    world = World(is_silent=True)
    assert not world.changes.is_healthy
    async with world.looking():
        assert world.changes.is_healthy
        world.runtime.failing.add("*")
        await asyncio.sleep(170)
        assert world.changes.is_healthy
        await asyncio.sleep(20)
        assert not world.changes.is_healthy
        world.runtime.failing.clear()
        await asyncio.sleep(2)
        assert world.changes.is_healthy


@on_a_node
async def test_a_node_whose_runtime_cannot_be_listed_is_not_ready(world: NodeWorld) -> None:
    """PL-09"""
    await world.running(pod())
    assert list(world.agent._problems()) == []
    world.agent.core.pleg.relisted_at = None
    assert "PLEG is not healthy" in next(iter(world.agent._problems()))


@virtual_time
async def test_one_pod_is_read_alone_and_a_look_at_everything_answers_all_who_asked_before() -> None:
    """PL-11"""
    world = World()
    await world.run_pod()
    async with world.looking():
        await asyncio.sleep(1)
        world.runtime.asked.clear()
        found = await world.cache.read_newer_than("u", world.seconds())
        assert found.containers
        assert world.runtime.asked == ["u"]
        world.runtime.asked.clear()
        world.changes.request_read("u")
        world.changes.request_relist()
        await asyncio.sleep(0.1)
        assert world.runtime.asked == ["*"]


@virtual_time
async def test_who_waits_for_something_newer_is_answered_when_everything_was_looked_at() -> None:
    """PL-12"""
    world = World(is_silent=True)
    async with world.looking():
        now = world.seconds()
        waiting = asyncio.get_running_loop().create_task(world.cache.read_newer_than("nobody", now))
        found = await asyncio.wait_for(waiting, 5)
        assert found.containers == ()
        assert world.cache.is_newer_than("anybody", now) or world.runtime.asked[-1] == "nobody"


@virtual_time
async def test_where_events_flow_everything_is_looked_at_every_five_minutes_otherwise_every_second() -> None:
    """PL-12"""
    for is_silent, expected in ((False, (2, 6)), (True, (900, 1100))):
        world = World(is_silent=is_silent)
        async with world.looking():
            await asyncio.sleep(1000)
            assert expected[0] <= world.runtime.asked.count("*") <= expected[1]


@on_a_node
async def test_containers_that_ended_are_removed_but_the_last_of_each_name(world: NodeWorld) -> None:
    """PL-13"""
    world.behaviours["main"] = Behaviour(run_seconds=700, exit_code=1)
    await world.running(pod())
    await asyncio.sleep(4 * 720)
    assert len(world.started) >= 4
    ended = [each for each in world.machine.containers.values() if each.exit_code is not None]
    assert len(ended) == 1

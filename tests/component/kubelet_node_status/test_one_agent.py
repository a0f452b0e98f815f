"""One agent at a time serves a node: restarts are accepted at once, a second agent under a live name is refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from podlife.aio import cancel_and_wait
from podlife.api.codec import Object, format_micro_time
from podlife.client import LEASES, NODES, PODS, Client
from podlife.errors import ConfigError
from podlife.kubelet.hollow import HollowNodes, HollowSettings
from podlife.kubelet.kubelet import Kubelet
from podlife.kubelet.node_status import FixedMachine, MachineFacts, NameInUseError, NodeSettings
from podlife.kubelet.node_status.lease import NAMESPACE, LeaseHold, hold_of, lease_seconds
from podlife.kubelet.node_status.node_object import NodeRecord
from podlife.kubelet.runtime import ContainerState
from podlife.kubelet.runtimes.sim import SimRuntime, SimWorld
from podlife.kubelet.settings import KubeletSettings
from podlife.testing import LoopClock, virtual_time
from tests.component.kubelet.node_world import pod
from tests.component.kubelet_node_status.kit import FACTS, World, world
from tests.kit.embedded import connect, start
from tests.kit.wait import until

NOW = datetime(2030, 1, 1, tzinfo=UTC)


class Machine:
    """A machine with a data folder of its own, and the agents that are started on it."""

    def __init__(self, client: Client, folder: Path) -> None:
        self._client = client
        self._folder = folder
        self._clock = LoopClock()
        self.world = SimWorld(self._clock, ips=("10.0.0.7",))

    def agent(self, **settings: Any) -> Kubelet:
        node = NodeSettings("n1", addresses=("192.0.2.1",), **settings)
        told = KubeletSettings(node, data=self._folder)
        return Kubelet(self._client, SimRuntime(self.world), told, self._clock, machine=FixedMachine(FACTS))

    @property
    def running(self) -> int:
        return sum(each.state is ContainerState.RUNNING for each in self.world.containers.values())

    @asynccontextmanager
    async def begun(self, **settings: Any) -> AsyncIterator[asyncio.Task[None]]:
        agent = self.agent(**settings)
        task = asyncio.get_running_loop().create_task(agent.run())
        registered = asyncio.get_running_loop().create_task(agent.reporter.registered.wait())
        try:
            await asyncio.wait((task, registered), return_when=asyncio.FIRST_COMPLETED)
            yield task
        finally:
            await cancel_and_wait(task, registered)


@asynccontextmanager
async def two_machines(folder: Path) -> AsyncIterator[tuple[Client, Machine, Machine]]:
    async with connect(await start()) as client:
        yield client, Machine(client, folder / "1"), Machine(client, folder / "2")


def why_ended(task: asyncio.Task[None]) -> NameInUseError:
    failure = task.exception()
    assert isinstance(failure, NameInUseError), failure
    return failure


async def run_pod(client: Client, machine: Machine) -> None:
    await client.create(PODS, pod(), "default")
    await until(lambda: machine.running, seconds=60)


@virtual_time
async def test_a_second_agent_under_a_live_name_is_refused_and_runs_nothing(tmp_path: Path) -> None:
    async with two_machines(tmp_path) as (client, first, second), first.begun() as serving:
        await run_pod(client, first)
        async with second.begun() as refused:
            said = str(why_ended(refused))
            assert said.startswith("node 'n1' is already served by another agent, its lease was renewed ")
            assert "--take-over" in said
        await asyncio.sleep(60)
        assert (first.running, second.running) == (1, 0)
        assert not serving.done()


@virtual_time
async def test_the_same_agent_is_accepted_at_once_when_it_is_started_again(tmp_path: Path) -> None:
    async with connect(await start()) as client:
        machine = Machine(client, tmp_path)
        async with machine.begun():
            await run_pod(client, machine)
        began = asyncio.get_running_loop().time()
        async with machine.begun() as serving:
            assert not serving.done()
            assert asyncio.get_running_loop().time() - began < 10


@virtual_time
async def test_another_agent_takes_the_name_once_the_lease_of_the_first_has_expired(tmp_path: Path) -> None:
    async with two_machines(tmp_path) as (client, first, second):
        async with first.begun():
            pass
        async with second.begun() as refused:
            why_ended(refused)
        await asyncio.sleep(45)
        async with second.begun() as serving:
            assert not serving.done()
            await run_pod(client, second)


@virtual_time
async def test_a_node_that_was_deleted_leaves_its_name_to_another_agent(tmp_path: Path) -> None:
    """Its lease may still be there: whoever collects it takes a while."""
    async with two_machines(tmp_path) as (client, first, second):
        async with first.begun():
            # By then the lease belongs to the node.
            await asyncio.sleep(20)
        await client.delete(NODES, "n1")
        async with second.begun() as serving:
            assert not serving.done()


@virtual_time
async def test_a_live_agent_whose_clock_is_behind_is_still_recognised(tmp_path: Path) -> None:
    """By its renewal time the lease is over; that it changes shows that it is not."""
    async with two_machines(tmp_path) as (_, first, second):
        first._clock = LoopClock(off_seconds=-90)
        async with first.begun(), second.begun() as refused:
            why_ended(refused)


@virtual_time
async def test_an_agent_that_is_told_to_take_over_does_and_the_first_one_ends(tmp_path: Path) -> None:
    async with two_machines(tmp_path) as (client, first, second), first.begun() as replaced:
        await run_pod(client, first)
        async with second.begun(takes_over=True) as serving:
            await asyncio.wait((replaced,), timeout=60)
            why_ended(replaced)
            # It ends no pod: whoever takes a name over sees to what the first one left.
            assert first.running == 1
            assert not serving.done()


@virtual_time
async def test_two_agents_that_start_together_on_a_new_name_leave_one(tmp_path: Path) -> None:
    async with connect(await start()) as client:
        both = [Machine(client, tmp_path / str(number)) for number in range(2)]
        tasks = [asyncio.get_running_loop().create_task(each.agent().run()) for each in both]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED, timeout=60)
        await asyncio.sleep(60)
        ended = [each for each in tasks if each.done()]
        assert len(ended) == 1
        why_ended(ended[0])
        await cancel_and_wait(*tasks)


@virtual_time
async def test_a_second_fleet_of_the_same_name_is_refused_and_a_restarted_one_is_not(tmp_path: Path) -> None:
    def fleet(client: Client, folder: str) -> HollowNodes:
        return HollowNodes(client, HollowSettings(3, data=tmp_path / folder), LoopClock())

    async with connect(await start()) as client:
        loop = asyncio.get_running_loop()
        first = loop.create_task(fleet(client, "1").run())
        await asyncio.sleep(5)
        second = loop.create_task(fleet(client, "2").run())
        await asyncio.wait((second,), timeout=60)
        # Several may be refused together.
        with pytest.raises(ExceptionGroup) as refused:
            await second
        assert refused.group_contains(NameInUseError, match="node 'sim-")
        assert not first.done()
        await cancel_and_wait(first)
        again = fleet(client, "1")
        restarted = loop.create_task(again.run())
        await until(lambda: again.ready >= 3, seconds=5)
        await cancel_and_wait(restarted)


# What others have stored


@pytest.mark.parametrize("off", [timedelta(), timedelta(days=1), timedelta(seconds=-60)])
@virtual_time
async def test_one_write_that_names_another_agent_does_not_end_this_one(
    tmp_path: Path, off: timedelta
) -> None:
    async with connect(await start()) as client:
        machine = Machine(client, tmp_path)
        async with machine.begun() as serving:
            await run_pod(client, machine)
            spec = {"renewTime": format_micro_time(LoopClock().now() + off), "leaseDurationSeconds": 3600}
            stolen = {"metadata": {"annotations": {"podlife.dev/agent": "another"}}, "spec": spec}
            await client.patch(LEASES, "n1", stolen, NAMESPACE)
            # The node monitor does not believe in a node whose lease is not renewed for that long.
            await asyncio.sleep(35)
            assert not serving.done()
            lease: Object = await client.get(LEASES, "n1", NAMESPACE)
            assert lease["metadata"]["annotations"]["podlife.dev/agent"] != "another"
            assert lease_seconds(lease) == 40
            assert (await client.get(NODES, "n1"))["status"]["conditions"][-1]["status"] == "True"


ODD = [
    {"renewTime": "9999-12-31T23:59:59.999999Z"},
    {"renewTime": "0001-01-01T00:00:00.000000Z"},
    {"renewTime": format_micro_time(NOW), "leaseDurationSeconds": 2**31 - 1},
    {"leaseDurationSeconds": 5},
    {},
]


@pytest.mark.parametrize("spec", ODD)
@virtual_time
async def test_an_odd_lease_of_nobody_holds_a_node_back_for_an_hour_at_most(spec: Object) -> None:
    async with world() as here:
        lease = {"metadata": {"name": "n1"}, "spec": {"holderIdentity": "someone", **spec}}
        await here.client.create(LEASES, lease, NAMESPACE)
        await asyncio.sleep(3601)
        task = asyncio.get_running_loop().create_task(here.reporter().run())
        async with asyncio.timeout(3700):
            while not await here.has_node():
                assert not task.done()
                await asyncio.sleep(1)
        await cancel_and_wait(task)


@pytest.mark.parametrize("spec", ODD)
@virtual_time
async def test_an_odd_value_in_its_own_lease_is_put_right_at_the_next_renewal(spec: Object) -> None:
    async with world() as here, here.running():
        await here.client.patch(LEASES, "n1", {"spec": {"renewTime": None, **spec}}, NAMESPACE)
        await asyncio.sleep(12)
        await assert_fresh(here)


async def assert_fresh(here: World) -> None:
    lease = await here.lease()
    assert hold_of(lease, "another", LoopClock().now()) is LeaseHold.HELD
    assert lease_seconds(lease) == 40


@virtual_time
async def test_an_unexpected_failure_does_not_end_the_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    async with world() as here, here.running() as reporter:
        with monkeypatch.context() as patched:
            patched.setattr(reporter.lease, "_renewed", lambda *_: 1 / 0)
            await asyncio.sleep(30)
        await asyncio.sleep(12)
        await assert_fresh(here)


@virtual_time
async def test_a_watch_of_the_node_that_brings_nonsense_is_begun_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with world() as here, here.running() as reporter:
        with monkeypatch.context() as patched:
            patched.setattr(NodeRecord, "put", lambda *_: dict[str, str]()["uid"])
            await here.client.patch(NODES, "n1", {"metadata": {"labels": {"a": "1"}}})
            await asyncio.sleep(60)
        await here.client.patch(NODES, "n1", {"metadata": {"labels": {"a": "2"}}})
        await asyncio.sleep(60)
        assert reporter.node()["metadata"]["labels"]["a"] == "2"
        await assert_fresh(here)


@virtual_time
async def test_a_machine_that_no_node_can_be_on_ends_the_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    def facts() -> MachineFacts:
        raise ConfigError("no memory")

    async with world() as here:
        monkeypatch.setattr(here.machine, "facts", facts)
        with pytest.raises(ConfigError, match="no memory"):
            await here.reporter().run()


@pytest.mark.parametrize(
    ("age", "expected"),
    [
        (0, LeaseHold.HELD),
        (40, LeaseHold.HELD),
        (-40, LeaseHold.HELD),
        (41, LeaseHold.UNCLEAR),
        (-41, LeaseHold.UNCLEAR),
        (640, LeaseHold.UNCLEAR),
        (641, LeaseHold.FREE),
        (-10_000_000, LeaseHold.UNCLEAR),
    ],
)
def test_who_holds_a_lease_is_read_from_its_age(age: int, expected: LeaseHold) -> None:
    spec = {"leaseDurationSeconds": 40, "renewTime": format_micro_time(NOW - timedelta(seconds=age))}
    lease: Object = {"metadata": {"name": "n1", "annotations": {"podlife.dev/agent": "a"}}, "spec": spec}
    assert hold_of(lease, "b", NOW) is expected
    assert hold_of(lease, "a", NOW) is LeaseHold.FREE

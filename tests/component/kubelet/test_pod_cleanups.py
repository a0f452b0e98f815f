"""Housekeeping on a whole agent: failed kills, places of pods that still stop, a runtime that cannot be listed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from podlife.client import PODS
from podlife.kubelet.runtime import RuntimeUnavailableError, SandboxConfig
from podlife.kubelet.runtimes.sim import Behaviour, SimRuntime
from podlife.testing import virtual_time
from tests.component.kubelet.node_world import NodeWorld, node_world, on_a_node, pod
from tests.kit.objects import container, stored
from tests.kit.wait import until

Object = dict[str, Any]


def alive(world: NodeWorld) -> list[str]:
    """Names of the pods of which a container runs."""
    return sorted(
        each.sandbox.config.name
        for each in world.machine.containers.values()
        if each.started_at is not None and each.exit_code is None
    )


class Broken:
    """Verbs of the runtime that fail as long as they are in it; `calls` counts how often each was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.verbs: set[str] = set()
        self.calls: dict[str, int] = {}
        for verb in ("stop_container", "stop_sandbox", "remove_sandbox", "list_sandboxes"):
            monkeypatch.setattr(SimRuntime, verb, self._breakable(verb, getattr(SimRuntime, verb)))

    def _breakable(self, verb: str, work: Any) -> Any:
        async def call(*arguments: Any, **options: Any) -> Any:
            self.calls[verb] = self.calls.get(verb, 0) + 1
            if verb in self.verbs:
                raise RuntimeUnavailableError("the runtime does not answer")
            return await work(*arguments, **options)

        return call


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Broken:
    return Broken(monkeypatch)


# Kills that failed


@pytest.mark.parametrize("is_known", [True, False], ids=["known", "only in the runtime"])
@on_a_node
async def test_a_failed_kill_of_a_pod_that_left_the_configuration_is_tried_again_every_two_seconds(
    world: NodeWorld, broken: Broken, is_known: bool
) -> None:
    await world.running(pod())
    broken.verbs = {"stop_container", "stop_sandbox"}
    if not is_known:
        await world.kill()
    await world.delete(grace_seconds=0)
    if not is_known:
        await world.begin()
    await asyncio.sleep(60)
    assert alive(world) == ["web"]
    broken.verbs = set()
    await until(lambda: not alive(world), seconds=5)
    await until(lambda: not world.machine.sandboxes, seconds=5)


@on_a_node
async def test_what_could_not_be_removed_is_tried_again_every_two_seconds_and_then_never_more(
    world: NodeWorld, broken: Broken
) -> None:
    await world.running(pod())
    broken.verbs = {"remove_sandbox"}
    await world.delete()
    await world.until_gone()
    await asyncio.sleep(60)
    assert broken.calls["remove_sandbox"] > 20
    broken.verbs = set()
    await until(lambda: not world.machine.sandboxes, seconds=5)
    broken.calls.clear()
    await asyncio.sleep(250)
    assert not broken.calls.get("remove_sandbox")


@on_a_node
async def test_a_removal_that_hangs_delays_no_kill(
    world: NodeWorld, broken: Broken, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("hangs", "web"):
        await world.running(pod(name))
    remove = SimRuntime.remove_sandbox

    async def hang(self: SimRuntime, sandbox_id: str) -> None:
        if self._world.sandboxes[sandbox_id].config.name == "hangs":
            await asyncio.sleep(100_000)
        await remove(self, sandbox_id)

    monkeypatch.setattr(SimRuntime, "remove_sandbox", hang)
    await world.delete("hangs")
    await world.until_gone("hangs")
    await asyncio.sleep(5)
    broken.verbs = {"stop_container"}
    await world.delete(grace_seconds=0)
    await asyncio.sleep(20)
    broken.verbs = set()
    await until(lambda: not alive(world), seconds=5)


@on_a_node
async def test_the_newest_sandbox_of_a_wanted_pod_is_kept_even_if_it_is_stopped_and_empty(
    world: NodeWorld,
) -> None:
    world.machine.image_errors["registry.example/app:1"] = "no such image"
    await world.create(pod(activeDeadlineSeconds=20))
    await world.until_phase("Failed")
    assert [each.state for each in world.machine.sandboxes.values()] == ["NotReady"]
    await asyncio.sleep(700)
    assert len(world.machine.sandboxes) == 1
    await world.delete()
    await world.until_gone()
    await until(lambda: not world.machine.sandboxes, seconds=10)


# Places


@virtual_time
async def test_a_failed_pod_that_still_stops_holds_its_place_after_the_agent_was_started_again() -> None:
    async with node_world(is_begun=False) as world:
        world.behaviours["slow"] = Behaviour(stop_seconds=None)
        await world.begin(max_pods=1)
        await world.running(pod("first", containers=[container("slow")], terminationGracePeriodSeconds=100))
        await world.kill()
        failed = {"status": {"phase": "Failed"}}
        await world.client.patch(PODS, "first", failed, "default", subresource="status")
        await world.begin(max_pods=1)
        await asyncio.sleep(5)
        assert alive(world) == ["first"]
        await world.create(pod("second"))
        refused = await world.until_phase("Failed", "second")
        assert refused["status"]["reason"] == "OutOfpods"
        await until(lambda: not alive(world), seconds=120)
        await asyncio.sleep(5)
        await world.running(pod("third"))


def static_pod(name: str, **fields: Any) -> Object:
    annotations = {"kubernetes.io/config.source": "file", "kubernetes.io/config.hash": name}
    metadata = {"creationTimestamp": "2030-01-01T00:00:00Z", "annotations": annotations}
    slow = [container("slow", **fields)]
    made = pod(f"{name}-n1", containers=slow, metadata=metadata, terminationGracePeriodSeconds=20)
    return {"apiVersion": "v1", "kind": "Pod", **stored(made, uid=f"static-{name}")}


PORT = {"ports": [{"containerPort": 80, "hostPort": 8080}]}


@on_a_node
async def test_a_static_pod_put_back_while_it_ends_runs_again_and_has_its_port_for_itself(
    world: NodeWorld,
) -> None:
    world.behaviours["slow"] = Behaviour(stop_seconds=10)
    source = world.agent.core.sync_loop.static_pods
    source.put(static_pod("a", **PORT))
    await until(lambda: alive(world) == ["a-n1"], seconds=5)
    source.remove_uid("static-a")
    await asyncio.sleep(3)
    source.put(static_pod("a", **PORT))
    await until(lambda: not alive(world), seconds=20)
    await until(lambda: alive(world) == ["a-n1"], seconds=20)
    await world.until_phase("Running", "a-n1")
    await world.create(pod("b", containers=[container(**PORT)]))
    refused = await world.until_phase("Failed", "b")
    assert refused["status"]["reason"] == "NodePorts"
    assert alive(world) == ["a-n1"]


@on_a_node
async def test_a_static_pod_put_back_is_refused_when_its_port_is_taken(world: NodeWorld) -> None:
    world.behaviours["slow"] = Behaviour(stop_seconds=10)
    source = world.agent.core.sync_loop.static_pods
    source.put(static_pod("a", **PORT))
    await until(lambda: alive(world) == ["a-n1"], seconds=5)
    source.remove_uid("static-a")
    await until(lambda: not alive(world), seconds=20)
    # Both come before the next look at what is wanted.
    source.put(static_pod("b", **PORT))
    source.put(static_pod("a", **PORT))
    await asyncio.sleep(30)
    assert len(alive(world)) == 1


# A pod that was refused


@on_a_node
async def test_a_refused_pod_shows_no_container_after_the_agent_was_started_again_nor_when_it_is_deleted(
    world: NodeWorld,
) -> None:
    wanted = {"resources": {"requests": {"cpu": "64"}}}
    made = pod(containers=[container(**wanted)])
    made["metadata"]["finalizers"] = ["test.example/hold"]
    await world.create(made)
    await world.until_phase("Failed")
    await world.kill()
    await world.begin()
    await asyncio.sleep(90)
    assert "containerStatuses" not in (await world.get())["status"]
    await world.delete()
    gone = await world.until(lambda each: each["metadata"].get("deletionGracePeriodSeconds") == 0)
    assert "containerStatuses" not in gone["status"]
    assert gone["status"]["reason"] == "OutOfcpu"


@on_a_node
async def test_a_pod_that_ran_and_is_refused_after_the_agent_was_started_again_is_ended(
    world: NodeWorld,
) -> None:
    for name in ("one", "two"):
        await world.running(pod(name))
        await asyncio.sleep(2)
    await world.kill()
    await world.begin(max_pods=1)
    failed = await world.until_phase("Failed", "two")
    assert failed["status"]["reason"] == "OutOfpods"
    assert alive(world) == ["one"]


# The runtime


@on_a_node
async def test_nothing_is_cleaned_up_while_the_runtime_cannot_be_listed(
    world: NodeWorld, broken: Broken
) -> None:
    await world.running(pod())
    stranger = SandboxConfig("stranger", "default", "stranger")
    sandbox_id = await SimRuntime(world.machine).run_sandbox(stranger)
    await until(lambda: "stranger" in set(world.agent.core.cache), seconds=1)
    broken.verbs = {"list_sandboxes"}
    await asyncio.sleep(30)
    assert world.machine.sandboxes[sandbox_id].state == "Ready"
    assert world.agent.core.workers.state("stranger") is None
    broken.verbs = set()
    await until(lambda: sandbox_id not in world.machine.sandboxes, seconds=10)
    assert alive(world) == ["web"]


@on_a_node
async def test_an_idle_agent_lists_nothing_between_its_looks(world: NodeWorld, broken: Broken) -> None:
    await world.running(pod())
    await asyncio.sleep(10)
    broken.calls.clear()
    await asyncio.sleep(280)
    assert broken.calls.get("list_sandboxes", 0) <= 1 + 280 // 60

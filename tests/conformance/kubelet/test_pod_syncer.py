"""The steps of a pod on a whole agent over simulated containers: what is started, told, ended and left, and when."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from podlife.client import PODS
from podlife.kubelet.config import read_manifest
from podlife.kubelet.interfaces import VolumeError
from podlife.kubelet.podworkers import KillOptions, PodUpdate, UpdateType
from podlife.kubelet.runtime import ContainerConfig, ContainerRuntimeError, ExecResult, SandboxConfig
from podlife.kubelet.runtimes.sim import Behaviour, SimRuntime
from podlife.testing import virtual_time
from tests.component.kubelet.node_world import NodeWorld, failing, node_world, on_a_node, pod
from tests.kit.objects import container
from tests.kit.wait import until

Object = dict[str, Any]
HELD = {"finalizers": ["test.example/hold"]}


def running(world: NodeWorld) -> list[str]:
    return [each.config.name for each in world.machine.containers.values() if each.exit_code is None]


def held(obj: Object) -> Object:
    """One that the API server keeps when the node has finished with it."""
    return {**obj, "metadata": {**obj["metadata"], **HELD}}


async def told(world: NodeWorld, reason: str) -> list[str]:
    return [message for each, message, _ in await world.events() if each == reason]


@virtual_time
async def test_a_pod_that_has_ended_is_told_as_it_is_and_nothing_of_it_is_started() -> None:
    """ST-01"""
    async with node_world(is_begun=False) as world:
        await world.create(pod())
        await world.client.patch(
            PODS, "web", {"status": {"phase": "Succeeded"}}, "default", subresource="status"
        )
        await world.create(pod("other"))
        await world.begin()
        await world.until_phase("Running", "other")
        await asyncio.sleep(120)
        assert len(world.machine.containers) == 1
        assert (await world.get())["status"]["phase"] == "Succeeded"


@on_a_node
async def test_nothing_is_started_before_volumes_are_there_and_why_is_told(
    world: NodeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ST-03"""
    volumes = world.agent.volumes
    with monkeypatch.context() as patched:
        patched.setattr(volumes, "mount", failing(VolumeError('MountVolume.SetUp failed for volume "v"')))
        await world.create(pod())
        await asyncio.sleep(5)
        assert await told(world, "FailedMount") == ['MountVolume.SetUp failed for volume "v"']
        assert (await world.get())["status"]["phase"] == "Pending"
        assert not world.machine.containers
    await world.until_phase("Running")


@on_a_node
async def test_a_static_pod_has_its_mirror_before_it_has_its_volumes(
    world: NodeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ST-03"""
    agent = world.agent
    await agent.reporter.registered.wait()
    monkeypatch.setattr(agent.volumes, "mount", failing(VolumeError("no")))
    text = b"{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: c, image: i}]}}"
    agent.core.sync_loop.static_pods.put_all([read_manifest(text, "/m/web.yaml", "n1").pod])
    await asyncio.sleep(5)
    assert (await world.get("web-n1"))["status"]["phase"] == "Pending"
    assert not world.machine.containers


@on_a_node
async def test_a_pod_that_ends_is_told_of_before_and_not_probed_to_death(world: NodeWorld) -> None:
    """ST-10: a liveness probe that would fail from now on restarts the pod that lives, not the one that ends."""
    probe = {
        "exec": {"command": ["no"]},
        "periodSeconds": 1,
        "failureThreshold": 1,
        "initialDelaySeconds": 20,
    }
    for name, seconds in (("ends", 50), ("lives", 0)):
        world.behaviours[name] = Behaviour(stop_seconds=seconds, exec=lambda _: ExecResult(1, b"", b""))
        probed = container(name, livenessProbe=probe)
        await world.running(pod(name, containers=[probed], terminationGracePeriodSeconds=60))
    await asyncio.sleep(18)
    await world.delete("ends")
    await asyncio.sleep(30)
    assert (await world.get("ends"))["status"]["phase"] == "Running"
    assert 18 <= await world.until_gone("ends") <= 25
    assert ("lives", 1) in world.started
    assert ("ends", 1) not in world.started


@on_a_node
async def test_each_container_has_the_grace_of_its_pod_unless_another_was_given(world: NodeWorld) -> None:
    """ST-10"""
    world.behaviours["main"] = Behaviour(stop_seconds=None)
    for name in ("own", "given"):
        await world.running(pod(name, terminationGracePeriodSeconds=40))
    await world.delete("own")
    await world.delete("given", grace_seconds=10)
    assert 9 <= await world.until_gone("given") <= 13
    assert 28 <= await world.until_gone("own") <= 33


@on_a_node
async def test_a_kill_that_fails_is_told_and_tried_again(
    world: NodeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ST-11"""
    await world.running(pod())
    with monkeypatch.context() as patched:
        patched.setattr(SimRuntime, "stop_container", failing(ContainerRuntimeError("it will not")))
        await world.delete()
        await asyncio.sleep(5)
        (message, *_) = await told(world, "FailedKillPod")
        assert message.startswith("error killing pod: ")
        assert "it will not" in message
        assert (await world.get())["status"]["phase"] == "Running"
        assert running(world) == ["main"]
    await world.until_gone()
    assert not running(world)


@on_a_node
async def test_a_pod_is_not_done_while_something_of_it_runs_whatever_the_runtime_said(
    world: NodeWorld, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """ST-12"""
    await world.running(pod())

    async def lie(self: SimRuntime, *_: object, **__: object) -> None:
        return

    with monkeypatch.context() as patched:
        patched.setattr(SimRuntime, "stop_container", lie)
        patched.setattr(SimRuntime, "stop_sandbox", lie)
        await world.delete()
        await asyncio.sleep(60)
        assert (await world.get())["status"]["phase"] == "Running"
        assert "detected running containers after a successful KillPod, CRI violation: " in caplog.text
    await world.until_gone()
    assert not running(world)


@on_a_node
async def test_a_pod_that_vanished_from_the_runtime_while_it_ended_is_done(world: NodeWorld) -> None:
    """ST-12"""
    world.behaviours["main"] = Behaviour(stop_seconds=None)
    await world.running(pod(terminationGracePeriodSeconds=600))
    await world.delete()
    await asyncio.sleep(5)
    # Somebody else cleans up.
    (sandbox,) = world.machine.sandboxes
    await SimRuntime(world.machine).remove_sandbox(sandbox)
    assert await world.until_gone() < 30


@on_a_node
async def test_the_last_status_has_every_exit_code_and_the_address_that_the_pod_had(world: NodeWorld) -> None:
    """ST-13"""
    world.behaviours["a"] = Behaviour(stop_exit_code=7)
    world.behaviours["b"] = Behaviour(stop_exit_code=0)
    await world.create(held(pod(containers=[container("a"), container("b")])))
    address = (await world.until_phase("Running"))["status"]["podIP"]
    await world.delete()
    status = (await world.until_phase("Failed"))["status"]
    codes = {each["name"]: each["state"]["terminated"]["exitCode"] for each in status["containerStatuses"]}
    assert codes == {"a": 7, "b": 0}
    assert status["podIP"] == address


@on_a_node
async def test_a_pod_all_of_whose_containers_end_well_when_asked_to_has_succeeded(world: NodeWorld) -> None:
    """ST-13"""
    world.behaviours["main"] = Behaviour(stop_exit_code=0)
    await world.running(held(pod()))
    await world.delete()
    await world.until_phase("Succeeded")


@on_a_node
async def test_a_kill_under_way_hears_of_less_grace(world: NodeWorld) -> None:
    """ST-14: a kubelet's does not, until it returns; ours is cut short, and the pod is killed once all the same."""
    world.behaviours["main"] = Behaviour(stop_seconds=None)
    await world.running(pod(terminationGracePeriodSeconds=600))
    await world.delete()
    await asyncio.sleep(30)
    assert running(world) == ["main"]
    await world.delete(grace_seconds=1)
    assert await world.until_gone() < 10
    assert not running(world)
    assert world.started == [("main", 0)]


@virtual_time
async def test_what_runs_of_a_pod_that_nobody_knows_is_ended_in_the_least_time_and_told_to_nobody() -> None:
    """ST-15"""
    async with node_world(is_begun=False) as world:
        runtime = SimRuntime(world.machine)
        world.behaviours["lost"] = Behaviour(stop_seconds=None)
        sandbox = await runtime.run_sandbox(SandboxConfig("lost-uid", "default", "lost"))
        await runtime.start_container(await runtime.create_container(sandbox, ContainerConfig("lost")))
        await world.create(pod())
        await world.begin()
        await world.until_phase("Running")
        began = asyncio.get_running_loop().time()
        await until(lambda: running(world) == ["main"])
        assert asyncio.get_running_loop().time() - began < 10
        found = await world.client.list_all(PODS)
        assert [each["metadata"]["name"] for each in found.items] == ["web"]


@on_a_node
async def test_a_pod_leaves_the_api_server_only_when_its_volumes_are_gone(
    world: NodeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ST-16"""
    volumes = world.agent.volumes
    await world.running(pod())
    with monkeypatch.context() as patched:
        patched.setattr(volumes, "unmount", failing(VolumeError("still in use")))
        await world.delete()
        await until(lambda: not running(world))
        await asyncio.sleep(60)
        status = (await world.get())["status"]
        assert status["phase"] == "Failed"
        assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 143
    await world.until_gone()


@on_a_node
async def test_what_is_to_be_told_of_an_eviction_is_told(world: NodeWorld) -> None:
    """ST-17"""
    await world.create(pod())
    uid = (await world.until_phase("Running"))["metadata"]["uid"]
    agent = world.agent

    def evicted(status: Object) -> None:
        status.update(phase="Failed", reason="Evicted", message="The node was low on resource: memory.")

    kill = KillOptions(evict=True, status_override=evicted, grace_seconds=1)
    agent.core.workers.update_pod(PodUpdate(UpdateType.KILL, agent.pod_manager.pod(uid), kill=kill))
    status = (await world.until_phase("Failed"))["status"]
    assert (status["reason"], status["message"]) == ("Evicted", "The node was low on resource: memory.")
    assert not running(world)

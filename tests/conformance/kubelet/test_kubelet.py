"""Rules carried out by a whole agent over simulated containers: kills, hooks, starts, refusals, and their events."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from podlife.client import PODS, PatchType
from podlife.kubelet import constants
from podlife.kubelet.interfaces import VolumeLimitError
from podlife.kubelet.runtime import ContainerConfig, ContainerRuntimeError, ExecResult, SandboxConfig
from podlife.kubelet.runtimes.sim import Behaviour, SimRuntime
from podlife.testing import virtual_time
from tests.component.kubelet.node_world import NodeWorld, failing, node_world, on_a_node, pod
from tests.kit.objects import container

Object = dict[str, Any]
FOREVER = Behaviour(stop_seconds=None)


class Commands:
    """What was run inside containers; the answer is that of the word that the command begins with."""

    def __init__(self, **answers: int) -> None:
        self.run: list[tuple[float, str]] = []
        self._answers = answers

    def __call__(self, command: Sequence[str]) -> ExecResult:
        self.run.append((asyncio.get_running_loop().time(), " ".join(command)))
        return ExecResult(self._answers.get(command[0], 0), b"", b"")


def hook(kind: str, *command: str) -> Object:
    return {"lifecycle": {kind: {"exec": {"command": list(command)}}}}


async def reasons(world: NodeWorld) -> list[tuple[str, str]]:
    await asyncio.sleep(1)
    return [(reason, message) for reason, message, _ in await world.events()]


def main_state(each: Object) -> Object:
    statuses = each["status"].get("containerStatuses") or [{"state": {}}]
    return dict(statuses[0]["state"])


def restarts(each: Object) -> int:
    statuses = each["status"].get("containerStatuses") or [{"restartCount": 0}]
    return int(statuses[0]["restartCount"])


def waiting_for(reason: str) -> Any:
    return lambda each: main_state(each).get("waiting", {}).get("reason") == reason


# Ending


@on_a_node
async def test_all_containers_of_a_pod_are_ended_together_and_then_its_sandbox(world: NodeWorld) -> None:
    """KC-13"""
    world.behaviours = {"slow": Behaviour(stop_seconds=6), "quick": Behaviour(stop_seconds=5)}
    await world.running(pod(containers=[container("slow"), container("quick")]))
    await world.delete()
    assert 6 <= await world.until_gone() < 8
    containers = world.machine.containers.values()
    ends = {each.config.name: each.finished_at for each in containers if each.finished_at is not None}
    assert (ends["slow"] - ends["quick"]).total_seconds() == pytest.approx(1)


@on_a_node
async def test_what_could_not_be_ended_makes_the_whole_kill_fail_and_it_is_tried_again(
    world: NodeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KC-13"""
    stop = SimRuntime.stop_container
    tries: list[str] = []

    async def stop_badly(self: SimRuntime, container_id: str, *, grace_seconds: float) -> None:
        if self._world.containers[container_id].config.name == "bad" and len(tries) < 1:
            tries.append(container_id)
            raise ContainerRuntimeError("no")
        await stop(self, container_id, grace_seconds=grace_seconds)

    await world.running(pod(containers=[container("bad"), container("good")]))
    monkeypatch.setattr(SimRuntime, "stop_container", stop_badly)
    await world.delete()
    assert await world.until_gone() < 25
    assert tries
    assert ("FailedKillPod", "error killing pod: no") in await reasons(world)


@on_a_node
async def test_a_pre_stop_hook_is_run_within_the_grace_after_it_was_told_that_the_container_ends(
    world: NodeWorld,
) -> None:
    """KC-07 KC-08 KC-14"""
    commands = Commands()
    world.behaviours["main"] = Behaviour(exec=commands)
    await world.running(pod(containers=[container(**hook("preStop", "bye"))]))
    await world.delete()
    await world.until_gone()
    assert [command for _, command in commands.run] == ["bye"]
    killing = [each for each in await world.events() if each[0] == "Killing"]
    assert killing == [("Killing", "Stopping container main", "spec.containers{main}")]


@pytest.mark.parametrize(
    ("seconds", "given", "gone_after"),
    [
        pytest.param(10, None, 12, id="KC-09 KC-12 all of the grace slept in the hook; two seconds are left"),
        pytest.param(5000, 4, 6, id="KC-09 a hook that never ends is waited for as long as there is grace"),
    ],
)
@on_a_node
async def test_a_pre_stop_hook_takes_its_time_from_the_grace_and_leaves_two_seconds(
    world: NodeWorld, seconds: int, given: int | None, gone_after: float
) -> None:
    world.behaviours["main"] = FOREVER
    handler = {"lifecycle": {"preStop": {"sleep": {"seconds": seconds}}}}
    await world.running(pod(containers=[container(**handler)], terminationGracePeriodSeconds=seconds))
    await world.delete(grace_seconds=given)
    assert gone_after <= await world.until_gone() < gone_after + 1


@on_a_node
async def test_a_pre_stop_hook_that_fails_is_told_without_details_and_the_container_ends(
    world: NodeWorld,
) -> None:
    """KC-10"""
    world.behaviours["main"] = Behaviour(exec=Commands(bye=1))
    await world.running(pod(containers=[container(**hook("preStop", "bye"))]))
    await world.delete()
    assert await world.until_gone() < 3
    assert ("FailedPreStopHook", "PreStopHook failed") in await reasons(world)


@on_a_node
async def test_a_sidecar_ends_after_the_containers_that_it_serves(world: NodeWorld) -> None:
    """KC-11"""
    world.behaviours = {"main": Behaviour(stop_seconds=3), "proxy": Behaviour()}
    sidecar = container("proxy", restartPolicy="Always")
    made = pod(initContainers=[sidecar])
    made["metadata"]["finalizers"] = ["test.example/hold"]
    await world.running(made)
    await world.delete()
    ended = await world.until(lambda each: each["status"].get("phase") in ("Failed", "Succeeded"))
    proxy = ended["status"]["initContainerStatuses"][0]["state"]["terminated"]["finishedAt"]
    assert proxy == ended["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"]


@on_a_node
async def test_without_its_pod_a_container_ends_as_its_own_labels_say(world: NodeWorld) -> None:
    """KC-02: the pod was deleted at once while there was no agent; its hook is run all the same."""
    commands = Commands()
    world.behaviours["main"] = Behaviour(exec=commands)
    await world.running(pod(containers=[container(**hook("preStop", "bye"))]))
    await world.kill()
    await world.delete(grace_seconds=0)
    await world.begin()
    async with asyncio.timeout(30):
        while world.machine.sandboxes:
            await asyncio.sleep(0.1)
    assert [command for _, command in commands.run] == ["bye"]
    assert not world.machine.containers


@on_a_node
async def test_a_container_whose_post_start_hook_fails_is_killed_and_shows_why(world: NodeWorld) -> None:
    """KC-17"""
    world.behaviours["main"] = Behaviour(exec=Commands(hello=3))
    await world.create(pod(containers=[container(**hook("postStart", "hello"))], restartPolicy="Never"))
    await world.until_phase("Failed")
    told = await reasons(world)
    assert ("FailedPostStartHook", "PostStartHook failed") in told
    assert ("Killing", "FailedPostStartHook") in told


# Refusing


@on_a_node
async def test_a_pod_that_the_node_cannot_take_has_failed_and_is_never_started(world: NodeWorld) -> None:
    """ST-18"""
    wanted = {"resources": {"requests": {"cpu": "64"}}}
    await world.create(pod(containers=[container(**wanted)]))
    failed = await world.until_phase("Failed")
    assert failed["status"]["reason"] == "OutOfcpu"
    assert failed["status"]["message"].startswith("Pod was rejected: Node didn't have enough resource: cpu")
    told = await reasons(world)
    assert [reason for reason, _ in told] == ["OutOfcpu"]
    await world.client.patch(
        PODS, "web", {"metadata": {"labels": {"a": "b"}}}, "default", type=PatchType.MERGE
    )
    await asyncio.sleep(120)
    assert not world.started
    await world.delete()
    assert await world.until_gone() < 5


@virtual_time
async def test_those_who_came_first_have_the_place_also_after_the_agent_was_started_again() -> None:
    """ST-19"""
    async with node_world(is_begun=False) as world:
        for name in ("zoe", "max", "ann"):
            await world.create(pod(name))
            await asyncio.sleep(2)
        await world.begin(max_pods=2)
        await world.until_phase("Running", "zoe")
        await world.until_phase("Running", "max")
        failed = await world.until_phase("Failed", "ann")
        assert failed["status"]["reason"] == "OutOfpods"


@on_a_node
async def test_a_pod_with_more_volumes_than_the_node_can_hold_is_refused(
    world: NodeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ST-04"""
    monkeypatch.setattr(
        world.agent.volumes, "mount", failing(VolumeLimitError("no more volumes of this sort"))
    )
    await world.create(pod())
    failed = await world.until_phase("Failed")
    assert failed["status"]["reason"] == "VolumeAttachmentLimitExceeded"
    assert failed["status"]["message"] == "Pod was rejected: no more volumes of this sort"
    assert not world.started


@on_a_node
async def test_a_pod_waits_for_the_network_of_its_node_unless_it_uses_the_node_s_own(
    world: NodeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ST-02"""
    monkeypatch.setattr(SimRuntime, "network_problem", "no plugin is there", raising=False)
    await world.create(pod())
    await world.running(pod("host", hostNetwork=True))
    assert ("NetworkNotReady", "network is not ready: no plugin is there") in await reasons(world)
    assert (await world.get())["status"]["phase"] == "Pending"
    monkeypatch.setattr(SimRuntime, "network_problem", "")
    await world.until_phase("Running", seconds=5)


# Starting again


@on_a_node
async def test_a_container_that_keeps_ending_waits_longer_each_time_and_shows_it(world: NodeWorld) -> None:
    """RB-04"""
    world.behaviours["main"] = Behaviour(run_seconds=1, exit_code=1)
    await world.create(pod())
    shown = await world.until(waiting_for("CrashLoopBackOff"))
    message = main_state(shown)["waiting"]["message"]
    assert message.startswith("back-off 10s restarting failed container=main pod=web_default(")
    told = await reasons(world)
    assert any(
        reason == "BackOff" and said.startswith("Back-off restarting failed container main in pod web_")
        for reason, said in told
    )
    await asyncio.sleep(120)
    starts = [each.started_at for each in world.machine.containers.values() if each.started_at]
    assert [attempt for _, attempt in world.started][:4] == [0, 1, 2, 3]
    assert len(world.started) < 8
    assert len(starts) <= 2


@on_a_node
async def test_a_container_that_was_well_for_long_is_started_again_at_once(world: NodeWorld) -> None:
    """RB-08: what is known of its waits is forgotten."""
    world.behaviours["main"] = Behaviour(run_seconds=2000, exit_code=1)
    await world.running(pod())
    await asyncio.sleep(2100)
    assert [attempt for _, attempt in world.started] == [0, 1]
    await asyncio.sleep(2000)
    assert [attempt for _, attempt in world.started] == [0, 1, 2]


@on_a_node
async def test_restarts_go_on_being_counted_after_the_agent_was_started_again(world: NodeWorld) -> None:
    """RB-09"""
    world.behaviours["main"] = Behaviour(run_seconds=30, exit_code=1)
    await world.create(pod())
    await world.until(lambda each: restarts(each) == 1)
    await world.kill()
    await asyncio.sleep(60)
    await world.begin()
    shown = await world.until(lambda each: restarts(each) == 2)
    assert shown["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 1
    assert world.started == [("main", 0), ("main", 1), ("main", 2)]


@virtual_time
async def test_the_times_of_a_kubelet_are_those_that_pods_see() -> None:
    """KL-01: a look again after a minute, an error after ten seconds, two seconds to end at the least."""
    looks: list[float] = []

    def script(sandbox: SandboxConfig, config: ContainerConfig) -> Behaviour:
        looks.append(asyncio.get_running_loop().time())
        return Behaviour(refusal="not like this")

    async with node_world() as world:
        world.machine.script = script
        await world.create(pod())
        await world.until(waiting_for("CreateContainerError"))
        await asyncio.sleep(35)
        pauses = [later - earlier for earlier, later in pairwise(looks)]
        long_ones = [each for each in pauses if each > 1]
        assert long_ones
        assert all(10 <= each <= 16 + constants.SYNC_TICK_SECONDS for each in long_ones)
    assert (constants.CRASH_LOOP_INITIAL_SECONDS, constants.CRASH_LOOP_MAX_SECONDS) == (10, 300)
    assert constants.MINIMUM_STOP_SECONDS == 2

"""The life of a pod on a simulated node, as its user sees it through the API server."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from podlife.api.codec import parse_time
from podlife.client import CONFIG_MAPS, PODS, PatchType
from podlife.errors import UnreachableError
from podlife.kubelet.runtimes.sim import Behaviour
from podlife.testing import virtual_time
from tests.component.kubelet.node_world import NodeWorld, node_world, on_a_node, pod
from tests.kit.objects import container

Object = dict[str, Any]


def state(each: Object, name: str = "main") -> Object:
    statuses = [
        *(each["status"].get("initContainerStatuses") or ()),
        *(each["status"].get("containerStatuses") or ()),
    ]
    return next((one["state"] for one in statuses if one["name"] == name), {})


def waits(reason: str) -> Any:
    return lambda each: state(each).get("waiting", {}).get("reason") == reason


def message(each: Object) -> str:
    return str(state(each)["waiting"].get("message", ""))


async def reasons(world: NodeWorld) -> list[str]:
    await asyncio.sleep(1)
    return [reason for reason, _, _ in await world.events()]


# From its beginning to its end


@on_a_node
async def test_a_pod_runs_and_is_deleted_for_good(world: NodeWorld) -> None:
    running = await world.running(pod())
    status = running["status"]
    assert status["podIP"] == "10.0.0.7"
    assert status["hostIP"] == "192.0.2.1"
    assert status["containerStatuses"][0]["ready"] is True
    assert await reasons(world) == ["Pulled", "Created", "Started"]
    await world.delete()
    assert await world.until_gone() < 5
    assert not [each for each in world.machine.containers.values() if each.exit_code is None]


@on_a_node
async def test_nothing_is_left_of_a_pod_that_is_gone(world: NodeWorld) -> None:
    await world.running(pod())
    await world.delete()
    await world.until_gone()
    await asyncio.sleep(10)
    agent = world.agent
    assert not world.machine.sandboxes
    assert (len(agent.pod_manager), len(agent.core.workers), list(agent.core.cache)) == (0, 0, [])
    assert agent.core.kuberuntime.reasons._failures == {}
    assert agent.core.kuberuntime._killer._hooks_started == {}
    assert agent.core.sync_loop.allocation.admitter.pods == frozenset()


@on_a_node
async def test_a_pod_that_ends_well_by_itself_has_succeeded_and_keeps_its_container(world: NodeWorld) -> None:
    world.behaviours["main"] = Behaviour(run_seconds=5, termination_message="done")
    await world.create(pod(restartPolicy="OnFailure"))
    done = await world.until_phase("Succeeded")
    assert state(done)["terminated"]["message"] == "done"
    await asyncio.sleep(600)
    assert len(world.machine.containers) == 1
    await world.delete()
    assert await world.until_gone() < 3


@on_a_node
async def test_a_pod_that_was_active_for_longer_than_it_may_has_failed(world: NodeWorld) -> None:
    running = await world.running(pod(activeDeadlineSeconds=30))
    began = parse_time(running["status"]["startTime"])
    failed = await world.until_phase("Failed")
    assert failed["status"]["reason"] == "DeadlineExceeded"
    assert 30 <= (world.clock.now() - began).total_seconds() < 35
    assert not [each for each in world.machine.containers.values() if each.exit_code is None]
    assert "DeadlineExceeded" in await reasons(world)


@on_a_node
async def test_a_deadline_that_is_shortened_while_the_pod_runs_counts_at_once(world: NodeWorld) -> None:
    await world.running(pod(activeDeadlineSeconds=1000))
    shorter = {"spec": {"activeDeadlineSeconds": 20}}
    await world.client.patch(PODS, "web", shorter, "default")
    await world.until_phase("Failed", seconds=25)


@on_a_node
async def test_a_deadline_counts_from_the_first_start_also_for_an_agent_that_came_later(
    world: NodeWorld,
) -> None:
    await world.running(pod(activeDeadlineSeconds=60))
    await world.kill()
    await asyncio.sleep(50)
    await world.begin()
    await world.until_phase("Failed", seconds=15)


@on_a_node
async def test_a_container_with_another_image_is_replaced(world: NodeWorld) -> None:
    await world.running(pod())
    patch = {"spec": {"containers": [{"name": "main", "image": "registry.example/app:2"}]}}
    await world.client.patch(PODS, "web", patch, "default", type=PatchType.STRATEGIC)
    shown = await world.until(lambda each: each["status"]["containerStatuses"][0]["restartCount"] == 1)
    assert shown["status"]["containerStatuses"][0]["image"] == "registry.example/app:2"
    told = [said for reason, said, _ in await world.events() if reason == "Killing"]
    assert told == ["Container main definition changed, will be restarted"]


# Why a container waits


@on_a_node
async def test_an_image_that_cannot_be_had_is_asked_for_less_and_less_often(world: NodeWorld) -> None:
    world.machine.image_errors["registry.example/app:1"] = "no such image"
    await world.create(pod())
    first = await world.until(waits("ErrImagePull"))
    assert message(first) == "no such image"
    later = await world.until(waits("ImagePullBackOff"))
    said = 'Back-off pulling image "registry.example/app:1": ErrImagePull: no such image'
    assert message(later) == said
    await asyncio.sleep(120)
    pulls = [each for each in await world.events() if each[0] == "Pulling"]
    assert len(pulls) < 6
    world.machine.image_errors.clear()
    await world.until_phase("Running", seconds=400)


@pytest.mark.parametrize(
    ("fields", "reason", "said"),
    [
        (
            {"imagePullPolicy": "Never", "image": "gone:1"},
            "ErrImageNeverPull",
            'Container image "gone:1" is not present with pull policy of Never',
        ),
        ({"image": "No Such/Name"}, "InvalidImageName", ".* couldn't parse image name .*"),
        (
            {"securityContext": {"runAsNonRoot": True, "runAsUser": 0}},
            "CreateContainerConfigError",
            r"container's runAsUser breaks non-root policy \(pod: .*",
        ),
    ],
)
@on_a_node
async def test_a_container_that_cannot_be_made_says_why(
    world: NodeWorld, fields: Object, reason: str, said: str
) -> None:
    world.machine.image_errors["gone:1"] = "no such image"
    await world.create(pod(containers=[container(**fields)]))
    assert re.fullmatch(said, message(await world.until(waits(reason))))


@on_a_node
async def test_a_container_waits_for_the_config_map_that_it_asks_for(world: NodeWorld) -> None:
    source = [{"configMapRef": {"name": "settings"}}]
    await world.create(pod(containers=[container(envFrom=source)]))
    shown = await world.until(waits("CreateContainerConfigError"))
    assert message(shown) == 'configmap "settings" not found'
    settings = {"metadata": {"name": "settings"}, "data": {"GREETING": "hello"}}
    await world.client.create(CONFIG_MAPS, settings, "default")
    await world.until_phase("Running")
    made = next(iter(world.machine.containers.values()))
    assert dict(made.config.env)["GREETING"] == "hello"


@on_a_node
async def test_what_the_runtime_refuses_to_make_or_to_start_is_told_in_its_own_words(
    world: NodeWorld,
) -> None:
    world.behaviours["main"] = Behaviour(refusal="a command is needed")
    await world.create(pod())
    assert message(await world.until(waits("CreateContainerError"))) == "a command is needed"
    world.behaviours["other"] = Behaviour(start_error="no such file")
    await world.create(pod("other", containers=[container("other")], restartPolicy="Never"))
    failed = await world.until_phase("Failed", "other")
    assert state(failed, "other")["terminated"]["reason"] == "StartError"


# An agent that is started again


@on_a_node
async def test_a_pod_goes_on_under_an_agent_that_was_started_again_and_nothing_is_started_twice(
    world: NodeWorld,
) -> None:
    before = await world.running(pod(containers=[container(), container("other")]))
    await world.kill()
    await world.begin()
    await asyncio.sleep(130)
    after = await world.get()
    assert len(world.started) == 2
    assert after["status"]["containerStatuses"] == before["status"]["containerStatuses"]


@virtual_time
async def test_an_agent_killed_at_any_moment_of_a_pod_s_life_goes_on_with_it() -> None:
    for moment in range(1, 60, 2):
        async with node_world() as world:
            world.behaviours = {
                "first": Behaviour(start_seconds=1, run_seconds=1),
                "main": Behaviour(start_seconds=1, stop_seconds=3, stop_exit_code=4),
            }
            made = pod(initContainers=[container("first")])
            made["metadata"]["finalizers"] = ["test.example/hold"]
            await world.create(made)

            async def delete_it(world: NodeWorld = world) -> None:
                await asyncio.sleep(5)
                await world.delete()

            deleting = asyncio.get_running_loop().create_task(delete_it())
            await asyncio.sleep(moment * 0.2)
            await world.kill()
            await world.begin()
            await deleting
            ended = await world.until(lambda each: each["metadata"].get("deletionGracePeriodSeconds") == 0)
            assert state(ended)["terminated"]["exitCode"] == 4, moment
            assert sorted(world.started) == [("first", 0), ("main", 0)], moment


@on_a_node
async def test_nothing_is_ended_before_the_server_has_told_of_all_pods(world: NodeWorld) -> None:
    await world.running(pod())
    await world.kill()

    async def refuse(request: Any, handler: Any) -> Any:
        raise UnreachableError("nobody is there")

    await world.begin(refuse)
    await asyncio.sleep(600)
    assert [each.exit_code for each in world.machine.containers.values()] == [None]


@on_a_node
async def test_the_numbers_of_a_node_are_those_of_its_pods(world: NodeWorld) -> None:
    await world.running(pod())
    registry = CollectorRegistry()
    registry.register(world.agent)
    shown = generate_latest(registry).decode()
    for line in (
        "kubelet_running_pods 1.0",
        'kubelet_running_containers{container_state="running"} 1.0',
        'kubelet_desired_pods{static=""} 1.0',
        'kubelet_active_pods{static=""} 1.0',
        'kubelet_working_pods{config="desired",lifecycle="sync",static=""} 1.0',
        'kubelet_working_pods{config="runtime_only",lifecycle="terminating",static="unknown"} 0.0',
        'kubelet_restarted_pods_total{static="true"} 0.0',
        "kubelet_orphaned_runtime_pods_total 0.0",
        "kubelet_containers_per_pod_count_count 1.0",
    ):
        assert line in shown.splitlines(), shown


@virtual_time
async def test_an_agent_whose_pods_do_nothing_does_nothing_but_renew_its_lease() -> None:
    async with node_world(is_begun=False) as world:
        asked: list[str] = []

        async def note(request: Any, handler: Any) -> Any:
            asked.append(f"{request.method} {request.path}")
            return await handler(request)

        await world.begin(note)
        for number in range(20):
            await world.create(pod(f"p{number}"))
        await world.until_phase("Running", "p19")
        await asyncio.sleep(60)
        asked.clear()
        await asyncio.sleep(600)
        others = [each for each in asked if "/leases/" not in each and "/nodes/" not in each]
        watches = [each for each in others if each in ("GET /api/v1/pods", "GET /api/v1/nodes")]
        assert len(others) == len(watches), others
        assert len(watches) <= 12
        assert len(asked) - len(others) <= 70

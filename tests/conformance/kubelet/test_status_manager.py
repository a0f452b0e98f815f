"""What the API server is told of a pod, and when."""

from __future__ import annotations

import asyncio
import logging

import pytest

from podlife.aio import cancel_and_wait, spawn
from podlife.errors import ApiError
from podlife.testing import virtual_time
from tests.conformance.kubelet.api_world import Object, World
from tests.conformance.kubelet.kit import (
    RESTART_ALL,
    container,
    deleting,
    pod,
    shown,
    sidecar,
    static,
    terminated,
)

RUNNING = {"phase": "Running", "containerStatuses": [shown("a", "R")]}
SUCCEEDED = {"phase": "Succeeded", "containerStatuses": [shown("a", "T0")]}
BEGIN = "2030-01-01T00:00:00Z"


@pytest.fixture
def world() -> World:
    return World()


def conditions(**values: str) -> list[Object]:
    return [{"type": type_, "status": value} for type_, value in values.items()]


def began(at: str) -> Object:
    return {"containerStatuses": [{"name": "a", "state": {"running": {"startedAt": at}}}]}


def mirror(of: Object, uid: str = "m") -> Object:
    metadata = {**of["metadata"], "uid": uid, "annotations": {"kubernetes.io/config.mirror": "u"}}
    return {**of, "metadata": metadata, "status": {}}


@virtual_time
async def test_the_first_status_is_sent_once_with_a_start_time(world: World) -> None:
    """SM-01"""
    each = world.add(pod())
    world.clock.advance(seconds=1.25)
    assert world.manager.set_status(each, RUNNING)
    await world.manager.sync_changed()
    assert world.diary_since() == ["GET", "PATCH"]
    assert world.shown(each)["status"]["startTime"] == "2030-01-01T00:00:01Z"


@pytest.mark.parametrize("known_to", ["the pod", "an earlier status"])
def test_a_start_time_is_kept_for_ever(world: World, known_to: str) -> None:
    """SM-01"""
    each = world.add(pod(status={"startTime": BEGIN} if known_to == "the pod" else {}))
    if known_to != "the pod":
        world.manager.set_status(each, {**RUNNING, "startTime": BEGIN})
    world.clock.advance(seconds=60)
    world.manager.set_status(each, {**SUCCEEDED, "startTime": "2031-01-01T00:00:00Z"})
    assert (world.manager.status("u") or {})["startTime"] == BEGIN


@pytest.mark.parametrize(
    ("each", "is_sent"), [(pod(), [True, False, True]), (deleting(pod()), [True, True, True])]
)
def test_only_what_changed_is_sent_unless_the_pod_is_terminating(
    world: World, each: Object, is_sent: list[bool]
) -> None:
    """SM-02"""
    world.add(each)
    assert [world.manager.set_status(each, status) for status in (RUNNING, RUNNING, SUCCEEDED)] == is_sent


@pytest.mark.parametrize(
    "type_",
    [
        "ContainersReady",
        "Ready",
        "Initialized",
        "PodReadyToStartContainers",
        "PodScheduled",
        "DisruptionTarget",
        "AllContainersRestarting",
    ],
)
def test_the_time_of_a_condition_is_that_of_its_change(world: World, type_: str) -> None:
    """SM-03"""
    each = world.add(pod())
    times: list[str] = []
    for value in ("False", "False", "True"):
        reason = f"at {len(times)}"
        status = {**RUNNING, "conditions": [{"type": type_, "status": value, "reason": reason}]}
        world.manager.set_status(each, status)
        times.append((world.manager.status("u") or {})["conditions"][0]["lastTransitionTime"])
        world.clock.advance(minutes=1)
    assert times == [BEGIN, BEGIN, "2030-01-01T00:02:00Z"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(
            {"containerStatuses": [shown("a", "R"), shown("b", "R")]},
            {"containerStatuses": [shown("b", "R"), shown("a", "R")]},
            id="SM-04 order",
        ),
        pytest.param(
            {"conditions": conditions(Ready="True")},
            {"conditions": conditions(Ready="True", Foreign="True")},
            id="SM-04 foreign conditions",
        ),
        pytest.param({}, {"resourceClaimStatuses": [{"name": "claim"}]}, id="SM-04 claims"),
        pytest.param(began(BEGIN), began("2030-01-01T00:00:00.25Z"), id="SM-04 parts of a second"),
    ],
)
def test_what_is_no_change(world: World, first: Object, second: Object) -> None:
    each = world.add(pod(container("a"), container("b")))
    assert world.manager.set_status(each, first)
    assert not world.manager.set_status(each, second)


def test_termination_messages_fit_the_bound_of_the_pod(world: World) -> None:
    """SM-05"""
    each = world.add(pod(container("a"), container("b"), init=[container("i")]))
    long = {"exitCode": 1, "message": "ä" * 10000}
    status = {
        key: [{"name": name, "state": {"terminated": long}, "lastState": {"terminated": long}}]
        for key, name in (("containerStatuses", "a"), ("initContainerStatuses", "i"))
    }
    world.manager.set_status(each, status)
    kept = world.manager.status("u") or {}
    for key in status:
        for which in ("state", "lastState"):
            assert len(kept[key][0][which]["terminated"]["message"].encode()) == 12288 // 3


RULED = container("b", restartPolicy="Never", restartPolicyRules=[RESTART_ALL])


@pytest.mark.parametrize(
    ("each", "code", "is_allowed"),
    [
        pytest.param(pod(policy="Always"), 0, True, id="SM-06 Always"),
        pytest.param(pod(policy="OnFailure"), 1, True, id="SM-06 OnFailure failed"),
        pytest.param(pod(policy="OnFailure"), 0, False, id="SM-06 OnFailure succeeded"),
        pytest.param(pod(policy="Never"), 1, False, id="SM-06 Never"),
        pytest.param(
            pod(container(restartPolicy="Always"), policy="Never"), 1, True, id="SM-06 container policy"
        ),
        pytest.param(pod(container(), RULED, policy="Never"), 1, True, id="SM-06 restart-all rule"),
    ],
)
def test_an_ended_container_comes_back_only_if_it_may(
    world: World, each: Object, code: int, is_allowed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    world.add(each)
    ended = {"phase": "Running", "containerStatuses": [{"name": "a", "state": terminated(code)}]}
    world.manager.set_status(each, ended)
    with caplog.at_level(logging.ERROR):
        assert world.manager.set_status(each, RUNNING) is is_allowed
    kept = (world.manager.status("u") or {})["containerStatuses"][0]["state"]
    assert ("running" in kept) is is_allowed
    assert ("illegal transition" in caplog.text) is not is_allowed


@pytest.mark.parametrize(("init", "is_allowed"), [(container("i"), False), (sidecar("i"), True)])
def test_an_init_container_does_not_come_back_but_a_sidecar_does(
    world: World, init: Object, is_allowed: bool
) -> None:
    """SM-06"""
    each = world.add(pod(init=[init], policy="Never"))
    world.manager.set_status(each, {"initContainerStatuses": [shown("i", "Tf")]})
    assert world.manager.set_status(each, {"initContainerStatuses": [shown("i", "R")]}) is is_allowed


def test_each_end_of_a_container_is_counted_once(world: World) -> None:
    """SM-07"""
    each = world.add(pod(init=[container("i")]))
    status = {
        "containerStatuses": [{"name": "a", "state": terminated(3, reason="Error")}],
        "initContainerStatuses": [shown("i", "T0")],
    }
    world.manager.set_status(each, status)
    world.manager.set_status(each, {**status, "phase": "Running"})
    assert world.ended == [("init_container", 0, ""), ("container", 3, "Error")]


@virtual_time
async def test_a_pod_that_is_gone_is_not_written(world: World) -> None:
    """SM-10"""
    world.known["u"] = each = pod()
    world.manager.set_status(each, RUNNING)
    await world.manager.sync_changed()
    assert world.diary_since() == ["GET"]


@virtual_time
async def test_a_pod_that_was_made_again_is_not_written_and_the_old_status_dropped(world: World) -> None:
    """SM-10"""
    old = world.add(pod())
    world.manager.set_status(old, RUNNING)
    world.server["ns", "p"] = pod(metadata={"uid": "new"})
    await world.manager.sync_changed()
    assert world.diary_since() == ["GET"]
    assert world.manager.status("u") is None


@virtual_time
async def test_an_error_is_tried_again_by_the_next_look_at_all(world: World) -> None:
    """SM-11"""
    each = world.add(pod())
    world.failures["GET"] = ApiError("broken", code=500)
    world.manager.set_status(each, RUNNING)
    failures: list[BaseException] = []
    running = spawn(world.manager.run(), name="statuses", on_failure=failures.append)
    await asyncio.sleep(1)
    assert world.diary_since() == ["GET"]
    world.failures.clear()
    await asyncio.sleep(8.5)
    assert world.diary_since() == []
    await asyncio.sleep(1)
    assert world.diary_since() == ["GET", "PATCH"]
    await cancel_and_wait(running)
    assert failures == []


@virtual_time
async def test_several_updates_become_one_patch_with_the_newest(world: World) -> None:
    """SM-12"""
    each = world.add(pod())
    for phase in ("Pending", "Running"):
        world.manager.set_status(each, {"phase": phase})
    await world.manager.sync_changed()
    await world.manager.sync_changed()
    assert world.diary_since() == ["GET", "PATCH"]
    assert world.shown(each)["status"]["phase"] == "Running"


@virtual_time
async def test_what_the_server_has_already_is_not_patched(world: World) -> None:
    """SM-12"""
    each = world.add(pod(status={"phase": "Running", "startTime": BEGIN}))
    world.manager.set_status(each, {"phase": "Running"})
    await world.manager.sync_changed()
    assert world.diary_since() == ["GET"]


@virtual_time
async def test_a_static_pod_is_written_through_its_mirror(world: World) -> None:
    """SM-13"""
    each = static(pod())
    world.known["u"] = each
    world.manager.set_status(each, RUNNING)
    await world.manager.sync_all()
    assert world.diary_since() == []
    world.add(mirror(each))
    await world.manager.sync_changed()
    assert world.diary_since() == ["GET", "PATCH"]
    assert world.shown(each)["status"]["phase"] == "Running"


@virtual_time
async def test_a_mirror_pod_that_was_replaced_is_only_looked_at(world: World) -> None:
    """SM-13"""
    each = static(pod())
    world.known["u"] = each
    world.add(mirror(each))
    world.manager.set_status(each, RUNNING)
    world.server["ns", "p"] = mirror(each, "other")
    await world.manager.sync_changed()
    assert world.diary_since() == ["GET"]


@virtual_time
async def test_a_status_that_somebody_changed_is_written_again(world: World) -> None:
    """SM-14"""
    each = world.add(pod())
    world.manager.set_status(each, RUNNING)
    await world.manager.sync_changed()
    world.see(each)
    world.diary_since()
    await world.manager.sync_all()
    assert world.diary_since() == []
    world.shown(each)["status"]["containerStatuses"][0]["state"] = {"waiting": {}}
    world.see(each)
    await world.manager.sync_all()
    assert world.diary_since() == ["GET", "PATCH"]
    assert world.shown(each)["status"]["containerStatuses"][0]["state"] == {"running": {}}


@virtual_time
async def test_a_patch_carries_the_uid_and_leaves_conditions_of_others_alone(world: World) -> None:
    """SM-15"""
    foreign = {"type": "example.com/gate", "status": "True"}
    each = world.add(pod(status={"conditions": [foreign]}))
    local = [{**foreign, "status": "False"}, *conditions(Ready="False")]
    world.manager.set_status(each, {"conditions": local})
    await world.manager.sync_changed()
    [patch] = world.patches
    assert patch["metadata"] == {"uid": "u"}
    assert [each["type"] for each in patch["status"]["conditions"]] == ["Ready"]
    assert foreign in world.shown(each)["status"]["conditions"]


async def ended(world: World, each: Object) -> list[str]:
    """Its containers have ended, its last step is done; all is sent."""
    world.manager.set_status(each, SUCCEEDED)
    world.manager.terminate(each)
    await world.manager.sync_changed()
    return world.diary_since()


@virtual_time
async def test_a_finished_pod_is_deleted_by_its_uid_after_its_phase_is_written(world: World) -> None:
    """SM-30"""
    each = world.add(deleting(pod(status={"phase": "Running"})))
    assert await ended(world, each) == ["GET", "PATCH", "DELETE"]
    assert world.deletes == [("p", "u")]
    assert world.manager.status("u") is None


@virtual_time
async def test_a_finished_pod_that_nobody_deleted_stays(world: World) -> None:
    """SM-30"""
    assert await ended(world, world.add(pod())) == ["GET", "PATCH"]


@virtual_time
async def test_a_phase_that_is_withheld_keeps_the_pod(world: World) -> None:
    """SM-30: it is the phase of the API server that counts."""
    world.running.add("u")
    each = world.add(deleting(pod(status={"phase": "Running"})))
    assert "DELETE" not in await ended(world, each)
    assert world.shown(each)["status"]["phase"] == "Running"
    world.running.clear()
    await world.manager.sync_all()
    assert world.diary_since() == ["GET", "PATCH", "DELETE"]


@virtual_time
async def test_a_terminal_status_alone_deletes_nothing(world: World) -> None:
    """SM-31"""
    each = world.add(deleting(pod(status={"phase": "Running"})))
    world.manager.set_status(each, SUCCEEDED)
    await world.manager.sync_changed()
    assert world.diary_since() == ["GET", "PATCH"]
    assert world.shown(each)["status"]["phase"] == "Succeeded"


@virtual_time
async def test_mirror_pods_are_never_deleted_here(world: World) -> None:
    """SM-33"""
    each = static(pod())
    world.known["u"] = each
    world.add(deleting(mirror(each)))
    assert await ended(world, each) == ["GET", "PATCH"]


@pytest.mark.parametrize("code", [404, 409, 500])
@virtual_time
async def test_a_delete_that_failed_is_tried_again(world: World, code: int) -> None:
    """SM-34"""
    each = world.add(deleting(pod(status={"phase": "Running"})))
    world.failures["DELETE"] = ApiError("not now", code=code)
    assert await ended(world, each) == ["GET", "PATCH", "DELETE"]
    world.failures.clear()
    world.see(each)
    await world.manager.sync_all()
    assert world.diary_since() == ["GET", "DELETE"]
    assert world.server == {}


@virtual_time
async def test_finished_stays_finished(world: World) -> None:
    """SM-35"""
    each = world.add(deleting(pod(status={"phase": "Running"})))
    world.manager.set_status(each, SUCCEEDED)
    world.manager.terminate(each)
    world.manager.set_status(each, SUCCEEDED)
    await world.manager.sync_changed()
    assert world.diary_since() == ["GET", "PATCH", "DELETE"]


def two_of(states: str = "R") -> Object:
    return {
        "phase": "Running",
        "containerStatuses": [
            shown(name, states, containerID=f"sim://{name}", ready=False) for name in ("a", "b")
        ],
        "conditions": conditions(Ready="False", ContainersReady="False"),
    }


def test_readiness_of_what_is_not_known_is_ignored(world: World) -> None:
    """SM-50"""
    each = world.add(pod(container("a"), container("b")))
    assert not world.manager.set_readiness("u", "sim://a", True)
    world.manager.set_status(each, two_of())
    assert not world.manager.set_readiness("u", "sim://unknown", True)
    assert not world.manager.set_readiness("other", "sim://a", True)
    assert not world.manager.set_readiness("u", "sim://a", False)


def test_a_pod_is_ready_when_all_its_containers_are(world: World) -> None:
    """SM-50"""
    each = world.add(pod(container("a"), container("b")))
    world.manager.set_status(each, two_of())
    values = []
    for name in ("a", "b"):
        assert world.manager.set_readiness("u", f"sim://{name}", True)
        kept = (world.manager.status("u") or {})["conditions"]
        values.append({each["type"]: each["status"] for each in kept})
    assert values == [
        {"Ready": "False", "ContainersReady": "False"},
        {"Ready": "True", "ContainersReady": "True"},
    ]


def test_not_started_is_more_than_nothing_known(world: World) -> None:
    """SM-51"""
    each = world.add(pod(container("a"), container("b")))
    world.manager.set_status(each, two_of())
    assert world.manager.set_started("u", "sim://a", False)
    assert not world.manager.set_started("u", "sim://a", False)
    assert world.manager.set_started("u", "sim://a", True)


@virtual_time
async def test_the_last_status_of_a_pod_that_the_agent_has_forgotten_is_still_sent(world: World) -> None:
    """SM-10"""
    each = world.add(pod())
    world.manager.set_status(each, RUNNING)
    world.known.clear()
    await world.manager.sync_changed()
    assert world.diary_since() == ["GET", "PATCH"]
    world.manager.forget_all_but([])
    assert world.manager.status("u") is None


def test_a_change_of_readiness_leaves_other_conditions_and_asks_the_gates(world: World) -> None:
    """SM-50"""
    each = world.add(pod(container("a"), readinessGates=[{"conditionType": "g"}]))
    one = shown("a", "R", containerID="sim://a", ready=False)
    status = {"containerStatuses": [one], "conditions": conditions(PodScheduled="True", g="True")}
    world.manager.set_status(each, status)
    assert world.manager.set_readiness("u", "sim://a", True)
    kept = {each["type"]: each["status"] for each in (world.manager.status("u") or {})["conditions"]}
    assert kept == {"PodScheduled": "True", "g": "True", "Ready": "True", "ContainersReady": "True"}

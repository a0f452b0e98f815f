"""One pass of housekeeping around the workers (the HC- rules): upstream's HandlePodCleanups."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from podlife.kubelet.admission import AdmissionFailure, rejected_status
from podlife.kubelet.podworkers import KillOptions, Stage
from podlife.kubelet.runtime import RuntimeUnavailableError
from tests.conformance.podworkers.cleanup_world import CleanupWorld, mirror_pod, node_pod, static_pod
from tests.conformance.podworkers.world import running

TERMINATING_RUNTIME = ("terminating runtime", None)
TERMINATED = ("terminated", None)
REFUSED = rejected_status(AdmissionFailure("OutOfpods", "no room"))


@pytest.fixture
def world() -> CleanupWorld:
    return CleanupWorld()


def working(world: CleanupWorld, lifecycle: str, config: str, static: str = "") -> float:
    return world.metric("kubelet_working_pods", lifecycle=lifecycle, config=config, static=static)


def desired_and_active(world: CleanupWorld, static: str = "") -> tuple[float, float]:
    names = ("kubelet_desired_pods", "kubelet_active_pods")
    desired, active = (world.metric(name, static=static) for name in names)
    return desired, active


def restarted(world: CleanupWorld, static: str = "") -> float:
    return world.metric("kubelet_restarted_pods_total", static=static)


# Pods that only the runtime knows


@running
async def test_a_pod_that_only_the_runtime_knows_is_ended_within_a_second_and_counted(
    world: CleanupWorld,
) -> None:
    """HC-01"""
    world.run_in_runtime("r")
    gate = world.steps.gates["terminating runtime", "r"] = asyncio.Event()
    await world.clean_up()
    assert world.state("r").grace_seconds == 1
    assert working(world, "terminating", "runtime_only", "unknown") == 1
    assert world.metric("kubelet_orphaned_runtime_pods_total") == 1
    world.stop_in_runtime("r")
    gate.set()
    await world.settle()
    assert world.workers.state("r") is None
    assert world.steps.of("r") == [TERMINATING_RUNTIME]
    await world.clean_up()
    assert world.metric("kubelet_orphaned_runtime_pods_total") == 1


@running
async def test_an_unknown_pod_whose_kill_fails_is_killed_again_with_each_pass_until_it_is_gone(
    world: CleanupWorld,
) -> None:
    """HC-03"""
    world.run_in_runtime("r")
    world.fail("terminating runtime", "r")
    for attempt in (1, 2, 3):
        await world.clean_up()
        assert world.steps.of("r") == [TERMINATING_RUNTIME] * attempt
        assert world.active("r").running is not None
        assert world.active("r").kill == KillOptions(grace_seconds=1)
    world.recover()
    await world.clean_up()
    assert world.workers.state("r") is None
    assert world.steps.of("r") == [TERMINATING_RUNTIME] * 4


# Pods that left the configuration


@running
async def test_a_pod_removed_while_its_kill_fails_is_killed_again_with_the_same_grace(
    world: CleanupWorld,
) -> None:
    """HC-02"""
    pod = node_pod()
    await world.started(pod)
    world.fail("terminating", "u")
    world.kill(pod, 2)
    await world.settle()
    world.known.remove("u")
    world.run_in_runtime("u")
    await world.clean_up()
    assert world.steps.of("u") == [("terminating", 2)] * 2
    assert world.active().running is None
    world.recover()
    await world.clean_up()
    assert world.steps.of("u") == [("terminating", 2)] * 3 + [TERMINATED]
    assert world.state().is_finished
    assert world.state().is_deleted


@running
async def test_a_terminating_pod_that_is_still_wanted_is_left_alone(world: CleanupWorld) -> None:
    """HC-07"""
    pod = node_pod()
    await world.started(pod)
    world.fail("terminating", "u")
    world.kill(pod, 2)
    await world.settle()
    before = world.state()
    await world.clean_up()
    assert world.state() is before
    assert world.steps.of("u") == [("terminating", 2)]


@running
async def test_a_pod_removed_while_it_runs_is_ended_with_its_own_grace(world: CleanupWorld) -> None:
    """HC-12"""
    await world.started(node_pod())
    world.run_in_runtime("u")
    world.known.remove("u")
    await world.clean_up()
    assert world.steps.of("u") == [("terminating", None), TERMINATED]
    assert world.state().is_deleted


@running
async def test_a_removed_pod_that_the_runtime_lost_is_ended_too_and_keeps_its_mirror(
    world: CleanupWorld,
) -> None:
    """HC-13"""
    mirror = mirror_pod()
    world.known.put(mirror)
    pod = static_pod("u")
    await world.started(pod)
    world.fail("terminating", "u")
    world.known.remove("u")
    await world.clean_up()
    assert world.steps.of("u") == [("terminating", None)]
    active = world.active()
    assert (active.pod, active.mirror) == (pod, mirror)
    world.recover()
    await world.clean_up()
    assert world.steps.of("u") == [("terminating", None)] * 2 + [TERMINATED]


# Pods that are wanted and unknown to the workers


@running
async def test_a_wanted_pod_that_the_workers_do_not_know_is_created_and_counted(world: CleanupWorld) -> None:
    """HC-04"""
    world.known.put(node_pod())
    await world.clean_up()
    assert world.steps.of("u") == [("sync", "create")]
    assert (restarted(world), restarted(world, "true")) == (1, 0)
    assert desired_and_active(world) == (1, 1)
    assert working(world, "sync", "desired") == 1


@running
@pytest.mark.parametrize(
    ("phase", "is_refused"),
    [pytest.param("Failed", False, id="HC-05 failed"), pytest.param("", True, id="HC-06 refused")],
)
async def test_a_wanted_pod_that_is_over_is_not_created(
    world: CleanupWorld, phase: str, is_refused: bool
) -> None:
    pod = node_pod(phase=phase)
    world.known.put(pod)
    if is_refused:
        world.manager.set_status(pod, REFUSED)
    await world.clean_up()
    assert world.workers.state("u") is None
    assert world.steps.calls == []
    assert desired_and_active(world) == (1, 0)


@running
async def test_a_pod_recreated_under_its_uid_starts_in_the_pass_that_forgets_the_old_one(
    world: CleanupWorld,
) -> None:
    """HC-14"""
    old, new = node_pod(version="1"), node_pod(version="2")
    assert world.loop.add(old)
    await world.settle()
    world.kill(old, 1)
    await world.settle()
    world.known.remove("u")
    world.loop.add(new)
    await world.settle()
    await world.clean_up()
    assert world.steps.of("u") == [("sync", "create"), ("terminating", 1), TERMINATED, ("sync", "create")]
    assert world.active().pod is new
    assert restarted(world) == 1


@running
async def test_a_static_pod_put_back_while_its_kill_fails_starts_again_once_it_has_ended(
    world: CleanupWorld,
) -> None:
    """HC-11"""
    pod = static_pod("u", grace=None)
    await world.started(pod)
    world.fail("terminating", "u")
    world.kill(pod)
    await world.settle()
    world.loop.add(pod)
    await world.clean_up()
    state = world.state()
    assert state.stage is Stage.TERMINATING
    assert (state.is_restart_requested, state.grace_seconds, state.is_deleted) == (True, 1, False)
    assert restarted(world, "true") == 0
    world.recover()
    world.loop.sync("u")
    await world.settle()
    await world.clean_up()
    assert restarted(world, "true") == 1
    assert world.steps.of("u")[-2:] == [TERMINATED, ("sync", "create")]


@running
@pytest.mark.parametrize("is_told_by", ["the API server", "the agent itself"])
async def test_a_pod_that_was_refused_and_is_deleted_is_ended_so_that_it_can_go(
    world: CleanupWorld, is_told_by: str
) -> None:
    """HC-15"""
    pod = node_pod(is_deleted=True, phase="Failed" if is_told_by == "the API server" else "Pending")
    world.known.put(pod)
    world.manager.set_status(pod, REFUSED)
    await world.clean_up()
    assert world.steps.of("u")[-1] == TERMINATED
    assert world.state().is_finished


# Static pods that wait for their name


async def with_one_that_waits(world: CleanupWorld) -> None:
    await world.started(static_pod("holds"))
    world.loop.add(static_pod("waits"))
    await world.settle()
    assert world.workers.static_names.waiting("same_ns") == ("waits",)


@running
async def test_a_removed_static_pod_that_waits_and_yet_runs_is_ended_as_one_of_the_runtime(
    world: CleanupWorld,
) -> None:
    """HC-08"""
    await with_one_that_waits(world)
    world.known.remove("waits")
    world.run_in_runtime("waits")
    world.fail("terminating runtime", "waits")
    await world.clean_up()
    assert world.steps.of("waits") == [TERMINATING_RUNTIME]
    assert world.state("waits").config is None
    await world.clean_up()
    assert world.steps.of("waits") == [TERMINATING_RUNTIME] * 2
    world.recover()
    world.stop_in_runtime("waits")
    await world.clean_up()
    assert world.workers.state("waits") is None
    assert world.steps.of("holds") == []


@running
async def test_a_wanted_static_pod_that_waits_goes_on_waiting(world: CleanupWorld) -> None:
    """HC-09"""
    await with_one_that_waits(world)
    before = world.state("waits")
    assert before.pending is not None
    await world.clean_up()
    assert world.state("waits") is before
    assert world.steps.calls == []
    assert working(world, "sync", "desired", "true") == 2
    assert desired_and_active(world, "true") == (2, 2)


@running
async def test_a_removed_static_pod_that_waits_and_does_not_run_is_forgotten(world: CleanupWorld) -> None:
    """HC-10"""
    await with_one_that_waits(world)
    world.known.remove("waits")
    await world.clean_up()
    assert world.workers.state("waits") is None
    assert world.steps.calls == []


# Mirrors


@running
async def test_a_mirror_goes_when_its_static_pod_is_gone_and_has_stopped(world: CleanupWorld) -> None:
    """HC-16: by its UID, which upstream leaves out."""
    pod = static_pod("u")
    await world.started(pod)
    world.known.put(mirror_pod("m"))
    await world.clean_up()
    gate = world.steps.gates["terminating", "u"] = asyncio.Event()
    world.known.remove("u")
    await world.clean_up()
    await world.clean_up()
    assert world.mirrors.deleted == []
    gate.set()
    await world.settle()
    await world.clean_up()
    assert world.mirrors.deleted == [("same_ns", "m")]


# Active pods


def _known_terminated(world: CleanupWorld) -> None:
    world.kill(node_pod(phase="RunningPod"))


def _refused(world: CleanupWorld) -> None:
    world.manager.set_status(node_pod(phase="RunningPod"), REFUSED)


def _still_stopping(world: CleanupWorld) -> None:
    world.run_in_runtime("u")
    world.fail("terminating", "u")
    world.loop.add(node_pod(phase="Failed"))


def _nothing(world: CleanupWorld) -> None: ...


def _held(world: CleanupWorld) -> None:
    world.fail("terminating", "u")
    world.loop.add(node_pod(phase="RunningPod", is_deleted=True))


def _added(world: CleanupWorld) -> None:
    world.loop.add(node_pod(phase="RunningPod"))


@running
@pytest.mark.parametrize(
    ("phase", "is_deleted", "happens", "is_active"),
    [
        pytest.param("Failed", False, _nothing, False, id="HC-17: Failed"),
        pytest.param("Succeeded", False, _nothing, False, id="HC-17: Succeeded"),
        pytest.param("RunningPod", True, _held, True, id="HC-17: RunningPod and being deleted"),
        pytest.param("Pending", False, _nothing, True, id="HC-17: Pending"),
        pytest.param("RunningPod", False, _added, True, id="HC-17: RunningPod"),
        pytest.param("RunningPod", False, _refused, False, id="HC-17: RunningPod, Failed by the agent"),
        pytest.param("RunningPod", False, _known_terminated, False, id="HC-17: RunningPod, known terminated"),
        pytest.param("Failed", False, _still_stopping, True, id="HC-17: Failed, still stopping"),
    ],
)
async def test_a_pod_is_active_as_long_as_something_of_it_runs_or_may(
    world: CleanupWorld,
    phase: str,
    is_deleted: bool,
    happens: Callable[[CleanupWorld], None],
    is_active: bool,
) -> None:
    world.known.put(node_pod(phase=phase, is_deleted=is_deleted))
    happens(world)
    await world.settle()
    assert desired_and_active(world) == (1, is_active)


@running
async def test_a_failed_pod_that_still_stops_when_the_agent_begins_has_its_place(world: CleanupWorld) -> None:
    """HC-17"""
    world.run_in_runtime("u")
    gate = world.steps.gates["terminating", "u"] = asyncio.Event()
    assert world.loop.add(node_pod(phase="Failed"))
    assert world.loop.add(node_pod("ended", phase="Succeeded"))
    await world.settle()
    assert world.admitter.pods == {"u"}
    gate.set()


# What keeps a pass from being made


@running
async def test_a_pass_ends_with_the_error_of_the_runtime_s_list_after_the_workers_were_reviewed(
    world: CleanupWorld,
) -> None:
    """HC-18"""
    await world.started(node_pod("gone"))
    world.known.remove("gone")
    world.known.put(node_pod("missing"))
    world.known.put(mirror_pod())
    world.run_in_runtime("stranger")
    world.list_error = RuntimeUnavailableError("no answer")
    with pytest.raises(RuntimeUnavailableError, match="no answer"):
        await world.cleanups.clean_up()
    await world.settle()
    assert world.workers.state("missing") is None
    assert world.workers.state("stranger") is None
    assert world.mirrors.deleted == []
    assert world.steps.of("gone") == [("terminating", None), TERMINATED]
    world.list_error = None
    await world.clean_up()
    assert world.steps.of("missing") == [("sync", "create")]
    assert world.steps.of("stranger") == [TERMINATING_RUNTIME]
    assert world.mirrors.deleted == [("same_ns", "mirror")]


@running
async def test_a_pod_that_cannot_be_handled_keeps_no_other_from_being_seen_to(
    world: CleanupWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    take = world.workers.update_pod

    def fail(update: Any) -> None:
        if update.uid == "bad":
            raise ZeroDivisionError("a defect")
        take(update)

    monkeypatch.setattr(world.workers, "update_pod", fail)
    world.known.put(node_pod("bad"))
    world.known.put(node_pod("missing"))
    world.run_in_runtime("stranger")
    await world.clean_up()
    assert world.steps.of("missing") == [("sync", "create")]
    assert world.steps.of("stranger") == [TERMINATING_RUNTIME]


@running
async def test_a_pass_with_nothing_to_correct_lists_nothing(world: CleanupWorld) -> None:
    await world.started(node_pod())
    world.run_in_runtime("u")
    world.list_error = RuntimeUnavailableError("no answer")
    await world.clean_up()


@running
async def test_a_pod_removed_while_a_source_is_not_ready_is_not_killed(world: CleanupWorld) -> None:
    """HC-19"""
    async with world.taking():
        world.loop.static_pods.put_all([static_pod("u")])
        await world.settle()
        world.loop.static_pods.remove_uid("u")
        await world.settle()
        assert world.steps.of("u") == [("sync", "create")]
        assert None not in world.tidied.noted
        world.loop.api_pods.complete()
        await world.settle()
        assert None in world.tidied.noted
        await world.clean_up()
        assert world.steps.of("u")[1:] == [("terminating", None), TERMINATED]


@running
async def test_a_pod_removed_while_all_sources_are_ready_is_killed_at_once(world: CleanupWorld) -> None:
    """HC-19"""
    async with world.taking():
        world.loop.api_pods.complete()
        world.loop.static_pods.put_all([static_pod("u")])
        await world.settle()
        world.loop.static_pods.remove_uid("u")
        await world.settle()
        assert world.steps.of("u")[1:] == [("terminating", 30), TERMINATED]


@running
async def test_a_refused_pod_gets_no_worker_by_its_status_its_labels_or_its_mirror(
    world: CleanupWorld,
) -> None:
    """HC-06"""
    async with world.taking():
        world.allocatable["pods"] = "0"
        world.loop.api_pods.put_all([node_pod("api"), mirror_pod()])
        world.loop.static_pods.put_all([static_pod("static")])
        await world.settle()
        world.loop.api_pods.put(node_pod("api", phase="Failed", version="2"))
        world.loop.api_pods.put(mirror_pod())
        await world.settle()
        world.loop.sync("static")
        world.loop.api_pods.remove_uid("mirror")
        await world.settle()
        assert world.steps.calls == []
        assert len(world.workers) == 0
        world.loop.api_pods.put(node_pod("api", phase="Failed", is_deleted=True))
        await world.settle()
        assert world.steps.of("api") == [TERMINATED]

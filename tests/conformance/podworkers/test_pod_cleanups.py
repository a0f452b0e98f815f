"""One pass of housekeeping around the workers (the HC- rules): upstream's HandlePodCleanups."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from podlife.aio import cancel_and_wait
from podlife.kubelet.admission import AdmissionFailure, rejected_status
from podlife.kubelet.podworkers import Stage
from podlife.kubelet.runtime import RuntimeUnavailableError
from podlife.testing import virtual_time
from tests.conformance.podworkers.cleanup_world import CleanupWorld, mirror_pod, node_pod, static_pod

TERMINATING_RUNTIME = ("terminating runtime", None)
TERMINATED = ("terminated", None)


def working(here: CleanupWorld, lifecycle: str, config: str, static: str = "") -> float:
    return here.metric("kubelet_working_pods", lifecycle=lifecycle, config=config, static=static)


def desired_and_active(here: CleanupWorld, static: str = "") -> tuple[float, float]:
    names = ("kubelet_desired_pods", "kubelet_active_pods")
    desired, active = (here.metric(name, static=static) for name in names)
    return desired, active


def restarted(here: CleanupWorld, static: str = "") -> float:
    return here.metric("kubelet_restarted_pods_total", static=static)


# Pods that only the runtime knows


@virtual_time
async def test_a_pod_that_only_the_runtime_knows_is_ended_within_a_second_and_counted() -> None:
    """HC-01"""
    async with CleanupWorld() as here:
        here.run_in_runtime("r")
        gate = here.steps.gates["terminating runtime", "r"] = asyncio.Event()
        await here.clean_up()
        assert here.state("r").grace_seconds == 1
        assert working(here, "terminating", "runtime_only", "unknown") == 1
        assert here.metric("kubelet_orphaned_runtime_pods_total") == 1
        here.stop_in_runtime("r")
        gate.set()
        await here.settle()
        assert here.workers.state("r") is None
        assert here.steps.of("r") == [TERMINATING_RUNTIME]
        await here.clean_up()
        assert here.metric("kubelet_orphaned_runtime_pods_total") == 1


@virtual_time
async def test_an_unknown_pod_whose_kill_fails_is_killed_again_with_each_pass_until_it_is_gone() -> None:
    """HC-03"""
    async with CleanupWorld() as here:
        here.run_in_runtime("r")
        here.fail("terminating runtime", "r")
        for attempt in (1, 2, 3):
            await here.clean_up()
            assert here.steps.of("r") == [TERMINATING_RUNTIME] * attempt
            active = here.state("r").active
            assert active is not None
            assert active.running is not None
            assert active.kill is not None
            assert active.kill.grace_seconds == 1
        here.recover()
        await here.clean_up()
        assert here.workers.state("r") is None
        assert here.steps.of("r") == [TERMINATING_RUNTIME] * 4


# Pods that left the configuration


@virtual_time
async def test_a_pod_removed_while_its_kill_fails_is_killed_again_with_the_same_grace() -> None:
    """HC-02"""
    async with CleanupWorld() as here:
        pod = node_pod()
        await here.started(pod)
        here.fail("terminating", "u")
        here.kill(pod, 2)
        await here.settle()
        here.known.remove("u")
        here.run_in_runtime("u")
        await here.clean_up()
        assert here.steps.of("u") == [("terminating", 2)] * 2
        active = here.state().active
        assert active is not None
        assert active.running is None
        here.recover()
        await here.clean_up()
        assert here.steps.of("u") == [("terminating", 2)] * 3 + [TERMINATED]
        assert here.state().is_finished
        assert here.state().is_deleted


@virtual_time
async def test_a_terminating_pod_that_is_still_wanted_is_left_alone() -> None:
    """HC-07"""
    async with CleanupWorld() as here:
        pod = node_pod()
        await here.started(pod)
        here.fail("terminating", "u")
        here.kill(pod, 2)
        await here.settle()
        before = here.state()
        await here.clean_up()
        assert here.state() is before
        assert here.steps.of("u") == [("terminating", 2)]


@virtual_time
async def test_a_pod_removed_while_it_runs_is_ended_with_its_own_grace() -> None:
    """HC-12"""
    async with CleanupWorld() as here:
        await here.started(node_pod())
        here.run_in_runtime("u")
        here.known.remove("u")
        await here.clean_up()
        assert here.steps.of("u") == [("terminating", None), TERMINATED]
        assert here.state().is_deleted


@virtual_time
async def test_a_removed_pod_that_the_runtime_lost_is_ended_too_and_keeps_its_mirror() -> None:
    """HC-13"""
    async with CleanupWorld() as here:
        mirror = mirror_pod()
        here.known.put(mirror)
        pod = static_pod("u")
        await here.started(pod)
        here.fail("terminating", "u")
        here.known.remove("u")
        await here.clean_up()
        assert here.steps.of("u") == [("terminating", None)]
        active = here.state().active
        assert active is not None
        assert (active.pod, active.mirror) == (pod, mirror)
        here.recover()
        await here.clean_up()
        assert here.steps.of("u") == [("terminating", None)] * 2 + [TERMINATED]


# Pods that are wanted and unknown to the workers


@virtual_time
async def test_a_wanted_pod_that_the_workers_do_not_know_is_created_and_counted() -> None:
    """HC-04"""
    async with CleanupWorld() as here:
        here.known.put(node_pod())
        await here.clean_up()
        assert here.steps.of("u") == [("sync", "create")]
        assert (restarted(here), restarted(here, "true")) == (1, 0)
        assert desired_and_active(here) == (1, 1)
        assert working(here, "sync", "desired") == 1


@virtual_time
async def test_a_wanted_pod_that_has_failed_is_not_created() -> None:
    """HC-05"""
    async with CleanupWorld() as here:
        here.known.put(node_pod(phase="Failed"))
        await here.clean_up()
        assert here.workers.state("u") is None
        assert here.steps.calls == []
        assert desired_and_active(here) == (1, 0)


@virtual_time
async def test_a_wanted_pod_that_was_refused_is_not_created() -> None:
    """HC-06"""
    async with CleanupWorld() as here:
        pod = node_pod()
        here.known.put(pod)
        here.manager.set_status(pod, rejected_status(AdmissionFailure("OutOfpods", "no room")))
        await here.clean_up()
        assert here.workers.state("u") is None
        assert here.steps.calls == []
        assert desired_and_active(here) == (1, 0)


@virtual_time
async def test_a_pod_recreated_under_its_uid_starts_in_the_pass_that_forgets_the_old_one() -> None:
    """HC-14"""
    async with CleanupWorld() as here:
        old, new = node_pod(version="1"), node_pod(version="2")
        assert here.loop.add(old)
        await here.settle()
        here.kill(old, 1)
        await here.settle()
        here.known.remove("u")
        here.loop.add(new)
        await here.settle()
        await here.clean_up()
        assert here.steps.of("u") == [("sync", "create"), ("terminating", 1), TERMINATED, ("sync", "create")]
        active = here.state().active
        assert active is not None
        assert active.pod is new
        assert restarted(here) == 1


@virtual_time
async def test_a_static_pod_put_back_while_its_kill_fails_starts_again_once_it_has_ended() -> None:
    """HC-11"""
    async with CleanupWorld() as here:
        pod = static_pod("u", grace=None)
        await here.started(pod)
        here.fail("terminating", "u")
        here.kill(pod)
        await here.settle()
        here.loop.add(pod)
        await here.clean_up()
        state = here.state()
        assert state.stage is Stage.TERMINATING
        assert (state.is_restart_requested, state.grace_seconds, state.is_deleted) == (True, 1, False)
        assert restarted(here, "true") == 0
        here.recover()
        here.loop.sync("u")
        await here.settle()
        await here.clean_up()
        assert restarted(here, "true") == 1
        assert here.steps.of("u")[-2:] == [TERMINATED, ("sync", "create")]


@virtual_time
@pytest.mark.parametrize("is_told_by", ["the API server", "the agent itself"])
async def test_a_pod_that_was_refused_and_is_deleted_is_ended_so_that_it_can_go(is_told_by: str) -> None:
    """HC-15"""
    async with CleanupWorld() as here:
        pod = node_pod(is_deleted=True, phase="Failed" if is_told_by == "the API server" else "Pending")
        here.known.put(pod)
        here.manager.set_status(pod, rejected_status(AdmissionFailure("OutOfpods", "no room")))
        await here.clean_up()
        assert here.steps.of("u")[-1] == TERMINATED
        assert here.state().is_finished


# Static pods that wait for their name


async def with_one_that_waits(here: CleanupWorld) -> None:
    await here.started(static_pod("holds"))
    here.loop.add(static_pod("waits"))
    await here.settle()
    assert here.workers.static_names.waiting("same_ns") == ("waits",)


@virtual_time
async def test_a_removed_static_pod_that_waits_and_yet_runs_is_ended_as_one_of_the_runtime() -> None:
    """HC-08"""
    async with CleanupWorld() as here:
        await with_one_that_waits(here)
        here.known.remove("waits")
        here.run_in_runtime("waits")
        here.fail("terminating runtime", "waits")
        await here.clean_up()
        assert here.steps.of("waits") == [TERMINATING_RUNTIME]
        assert here.state("waits").config is None
        await here.clean_up()
        assert here.steps.of("waits") == [TERMINATING_RUNTIME] * 2
        here.recover()
        here.stop_in_runtime("waits")
        await here.clean_up()
        assert here.workers.state("waits") is None
        assert here.steps.of("holds") == []


@virtual_time
async def test_a_wanted_static_pod_that_waits_goes_on_waiting() -> None:
    """HC-09"""
    async with CleanupWorld() as here:
        await with_one_that_waits(here)
        before = here.state("waits")
        assert before.pending is not None
        await here.clean_up()
        assert here.state("waits") is before
        assert here.steps.calls == []
        assert working(here, "sync", "desired", "true") == 2
        assert desired_and_active(here, "true") == (2, 2)


@virtual_time
async def test_a_removed_static_pod_that_waits_and_does_not_run_is_forgotten() -> None:
    """HC-10"""
    async with CleanupWorld() as here:
        await with_one_that_waits(here)
        here.known.remove("waits")
        await here.clean_up()
        assert here.workers.state("waits") is None
        assert here.steps.calls == []


# Mirrors


@virtual_time
async def test_a_mirror_goes_when_its_static_pod_is_gone_and_has_stopped() -> None:
    """HC-16: by its UID, which upstream leaves out."""
    async with CleanupWorld() as here:
        pod = static_pod("u")
        await here.started(pod)
        here.known.put(mirror_pod("m"))
        await here.clean_up()
        gate = here.steps.gates["terminating", "u"] = asyncio.Event()
        here.known.remove("u")
        await here.clean_up()
        await here.clean_up()
        assert here.mirrors.deleted == []
        gate.set()
        await here.settle()
        await here.clean_up()
        assert here.mirrors.deleted == [("same_ns", "m")]


# Active pods


def _known_terminated(here: CleanupWorld) -> None:
    here.kill(node_pod(phase="RunningPod"))


def _refused(here: CleanupWorld) -> None:
    refused = rejected_status(AdmissionFailure("OutOfpods", "no room"))
    here.manager.set_status(node_pod(phase="RunningPod"), refused)


def _still_stopping(here: CleanupWorld) -> None:
    here.run_in_runtime("u")
    here.fail("terminating", "u")
    here.loop.add(node_pod(phase="Failed"))


def _nothing(here: CleanupWorld) -> None: ...


def _held(here: CleanupWorld) -> None:
    here.fail("terminating", "u")
    here.loop.add(node_pod(phase="RunningPod", is_deleted=True))


def _added(here: CleanupWorld) -> None:
    here.loop.add(node_pod(phase="RunningPod"))


@virtual_time
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
    phase: str, is_deleted: bool, happens: Callable[[CleanupWorld], None], is_active: bool
) -> None:
    async with CleanupWorld() as here:
        here.known.put(node_pod(phase=phase, is_deleted=is_deleted))
        happens(here)
        await here.settle()
        assert desired_and_active(here) == (1, is_active)


@virtual_time
async def test_a_failed_pod_that_still_stops_when_the_agent_begins_has_its_place() -> None:
    """HC-17"""
    async with CleanupWorld() as here:
        here.run_in_runtime("u")
        gate = here.steps.gates["terminating", "u"] = asyncio.Event()
        assert here.loop.add(node_pod(phase="Failed"))
        assert here.loop.add(node_pod("ended", phase="Succeeded"))
        await here.settle()
        assert here.admitter.pods == {"u"}
        gate.set()


# What keeps a pass from being made


@virtual_time
async def test_a_pass_ends_with_the_error_of_the_runtime_s_list_after_the_workers_were_reviewed() -> None:
    """HC-18"""
    async with CleanupWorld() as here:
        await here.started(node_pod("gone"))
        here.known.remove("gone")
        here.known.put(node_pod("missing"))
        here.known.put(mirror_pod())
        here.run_in_runtime("stranger")
        here.list_error = RuntimeUnavailableError("no answer")
        with pytest.raises(RuntimeUnavailableError, match="no answer"):
            await here.cleanups.clean_up()
        await here.settle()
        assert here.workers.state("missing") is None
        assert here.workers.state("stranger") is None
        assert here.mirrors.deleted == []
        assert here.steps.of("gone") == [("terminating", None), TERMINATED]
        here.list_error = None
        await here.clean_up()
        assert here.steps.of("missing") == [("sync", "create")]
        assert here.steps.of("stranger") == [TERMINATING_RUNTIME]
        assert here.mirrors.deleted == [("same_ns", "mirror")]


@virtual_time
async def test_a_pod_that_cannot_be_handled_keeps_no_other_from_being_seen_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with CleanupWorld() as here:
        take = here.workers.update_pod

        def fail(update: Any) -> None:
            if update.uid == "bad":
                raise ZeroDivisionError("a defect")
            take(update)

        monkeypatch.setattr(here.workers, "update_pod", fail)
        here.known.put(node_pod("bad"))
        here.known.put(node_pod("missing"))
        here.run_in_runtime("stranger")
        await here.clean_up()
        assert here.steps.of("missing") == [("sync", "create")]
        assert here.steps.of("stranger") == [TERMINATING_RUNTIME]


@virtual_time
async def test_a_pass_with_nothing_to_correct_lists_nothing() -> None:
    async with CleanupWorld() as here:
        await here.started(node_pod())
        here.run_in_runtime("u")
        here.list_error = RuntimeUnavailableError("no answer")
        await here.clean_up()


@virtual_time
async def test_a_pod_removed_while_a_source_is_not_ready_is_not_killed() -> None:
    """HC-19"""
    async with CleanupWorld() as here:
        taking = asyncio.get_running_loop().create_task(here.loop.run())
        try:
            here.loop.static_pods.put_all([static_pod("u")])
            await here.settle()
            here.loop.static_pods.remove_uid("u")
            await here.settle()
            assert here.steps.of("u") == [("sync", "create")]
            assert None not in here.tidied.noted
            here.loop.api_pods.complete()
            await here.settle()
            assert None in here.tidied.noted
            await here.clean_up()
            assert here.steps.of("u")[1:] == [("terminating", None), TERMINATED]
        finally:
            await cancel_and_wait(taking)


@virtual_time
async def test_a_pod_removed_while_all_sources_are_ready_is_killed_at_once() -> None:
    """HC-19"""
    async with CleanupWorld() as here:
        taking = asyncio.get_running_loop().create_task(here.loop.run())
        try:
            here.loop.api_pods.complete()
            here.loop.static_pods.put_all([static_pod("u")])
            await here.settle()
            here.loop.static_pods.remove_uid("u")
            await here.settle()
            assert here.steps.of("u")[1:] == [("terminating", 30), TERMINATED]
        finally:
            await cancel_and_wait(taking)


@virtual_time
async def test_a_refused_pod_gets_no_worker_by_its_status_its_labels_or_its_mirror() -> None:
    """HC-06"""
    async with CleanupWorld() as here:
        taking = asyncio.get_running_loop().create_task(here.loop.run())
        try:
            here.allocatable["pods"] = "0"
            here.loop.api_pods.put_all([node_pod("api"), mirror_pod()])
            here.loop.static_pods.put_all([static_pod("static")])
            await here.settle()
            here.loop.api_pods.put(node_pod("api", phase="Failed", version="2"))
            here.loop.api_pods.put(mirror_pod())
            await here.settle()
            here.loop.sync("static")
            here.loop.api_pods.remove_uid("mirror")
            await here.settle()
            assert here.steps.calls == []
            assert len(here.workers) == 0
            here.loop.api_pods.put(node_pod("api", phase="Failed", is_deleted=True))
            await here.settle()
            assert here.steps.of("api") == [TERMINATED]
        finally:
            await cancel_and_wait(taking)

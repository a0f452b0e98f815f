"""Killing one container, and the order in which those of a pod go."""

from __future__ import annotations

import asyncio

import pytest

from podlife.kubelet import constants
from podlife.kubelet.kuberuntime.kill_container import (
    KillReason,
    PodKillError,
    StopBudget,
    TerminationOrder,
    container_to_stop,
    stop_budget,
    stop_predecessors,
)
from podlife.kubelet.kuberuntime.labels import annotations_of, labels_of, restore
from podlife.kubelet.podworkers.delays import Delays
from podlife.testing import virtual_time
from tests.conformance.kubelet.kit import Object, container, deleting, pod, sidecar

OTHER, STARTUP, LIVENESS = KillReason.OTHER, KillReason.STARTUP_PROBE, KillReason.LIVENESS_PROBE


def probed(startup: int | None = None, liveness: int | None = None) -> Object:
    graces = {"startupProbe": startup, "livenessProbe": liveness}
    return container(
        **{
            key: {"terminationGracePeriodSeconds": value}
            for key, value in graces.items()
            if value is not None
        }
    )


def test_a_name_that_the_pod_does_not_have_is_an_error() -> None:
    """KC-01"""
    with pytest.raises(PodKillError, match="failed to get containerSpec 'other'"):
        container_to_stop(pod(container("a")), "other", "id")


def test_containers_of_every_sort_are_found() -> None:
    """KC-01"""
    of_every_sort = pod(container("a"), init=[container("i")], ephemeralContainers=[container("e")])
    assert [container_to_stop(of_every_sort, name, "")["name"] for name in "aie"] == ["a", "i", "e"]


def test_what_ends_a_container_is_restored_from_its_labels() -> None:
    """KC-02"""
    hook = {"exec": {"command": ["bye"]}}
    ports = [{"containerPort": 80}]
    of_pod = deleting(pod(terminationGracePeriodSeconds=60), 7)
    of_container = container(lifecycle={"preStop": hook}, ports=ports)
    annotations = annotations_of(of_pod, of_container, spec_hash="h", restart_count=3)
    restored, found = restore(labels_of(of_pod, of_container), annotations)
    assert restored["metadata"] == {
        "name": "p",
        "namespace": "ns",
        "uid": "u",
        "deletionGracePeriodSeconds": 7,
    }
    assert restored["spec"] == {"containers": [found], "terminationGracePeriodSeconds": 60}
    assert found == {"name": "a", "lifecycle": {"preStop": hook}, "ports": ports}


def test_labels_that_somebody_broke_are_left_away() -> None:
    """KC-02"""
    annotations = {
        "io.kubernetes.pod.terminationGracePeriod": "soon",
        "io.kubernetes.container.preStopHandler": "[",
    }
    restored, found = restore({}, annotations)
    assert "lifecycle" not in found
    assert stop_budget(restored, found) == StopBudget(2)


def grace(seconds: int | None, *, deletion: int | None = None) -> Object:
    """A pod that asks for this grace, deleted with the other if there is one."""
    of_pod = pod() if seconds is None else pod(terminationGracePeriodSeconds=seconds)
    return of_pod if deletion is None else deleting(of_pod, deletion)


@pytest.mark.parametrize(
    ("of_pod", "of_container", "reason", "expected"),
    [
        pytest.param(grace(60, deletion=5), container(), OTHER, 5, id="KC-03 deletion"),
        pytest.param(grace(60), container(), OTHER, 60, id="KC-03 spec"),
        pytest.param(grace(None), container(), OTHER, 2, id="KC-03 nothing"),
        pytest.param(grace(60, deletion=0), container(), OTHER, 0, id="KC-03 deletion at once"),
        pytest.param(grace(60), probed(10, 30), OTHER, 60, id="KC-05 unknown"),
        pytest.param(grace(60), probed(10, 30), STARTUP, 10, id="KC-05 startup"),
        pytest.param(grace(60), probed(10, 30), LIVENESS, 30, id="KC-05 liveness"),
        pytest.param(grace(10), probed(60, 60), STARTUP, 60, id="KC-05 more at startup"),
        pytest.param(grace(10), probed(60, 60), LIVENESS, 60, id="KC-05 more by liveness"),
        pytest.param(grace(None), container(), LIVENESS, 2, id="KC-05 nothing set"),
        pytest.param(grace(None), probed(60, 60), LIVENESS, 2, id="KC-04 pod without grace"),
        pytest.param(grace(60), probed(liveness=30), STARTUP, 60, id="KC-04 only the probe that failed"),
        pytest.param(grace(60, deletion=20), probed(10, 30), LIVENESS, 20, id="KC-04 being deleted"),
    ],
)
def test_how_long_a_container_has(
    of_pod: Object, of_container: Object, reason: KillReason, expected: int
) -> None:
    assert stop_budget(of_pod, of_container, reason=reason).seconds == expected


@pytest.mark.parametrize("override", [0, 5, 100])
def test_an_override_counts_alone(override: int) -> None:
    """KC-06: also upwards."""
    assert stop_budget(grace(60, deletion=30), container(), override_seconds=override).seconds == override


INT32, INT64 = 2**31 - 1, 2**63 - 1


@pytest.mark.parametrize(
    ("metadata", "grace", "options"),
    [
        ({}, 300_000_000_000, {}),
        ({}, INT64, {}),
        ({"deletionGracePeriodSeconds": INT64}, 30, {}),
        ({}, 30, {"override_seconds": INT64}),
        ({}, 30, {"reason": LIVENESS}),
    ],
    ids=["spec", "spec, largest", "deletion", "override", "liveness probe"],
)
def test_the_longest_grace_is_one_that_every_runtime_can_wait_for(
    metadata: Object, grace: int, options: Object
) -> None:
    of_pod = pod(metadata=metadata, terminationGracePeriodSeconds=grace)
    assert stop_budget(of_pod, probed(liveness=INT64), **options).runtime_seconds == INT32


def test_without_grace_no_hook_runs() -> None:
    """KC-08"""
    assert not StopBudget(0).has_time_for_hook
    assert StopBudget(1).has_time_for_hook


@pytest.mark.parametrize(("used", "left"), [(0.9, 10), (1.0, 9), (3.99, 7), (10.0, 0), (10.4, 0)])
def test_whole_seconds_of_a_hook_are_subtracted(used: float, left: int) -> None:
    """KC-09"""
    assert StopBudget(10).without(used).seconds == left


@pytest.mark.parametrize(
    ("grace", "hook", "turn", "expected"),
    [(30, 0, 0, 30), (30, 10, 5.5, 15), (30, 30, 0, 2), (1, 0, 0, 2), (0, 0, 0, 2), (3, 2, 0, 2)],
)
def test_hook_and_turn_eat_from_one_budget_and_two_seconds_are_always_left(
    grace: int, hook: float, turn: float, expected: int
) -> None:
    """KC-11, KC-12"""
    assert StopBudget(grace).without(hook).without(turn).runtime_seconds == expected


def test_only_pods_with_sidecars_have_an_order() -> None:
    """KO-01"""
    assert stop_predecessors(pod(container("a"), init=[container("i")]), ["a", "i"]) == {}


def test_whom_a_sidecar_waits_for() -> None:
    """KO-02"""
    of_pod = pod(
        container("a"), container("b"), init=[sidecar("x"), container("i"), sidecar("y"), sidecar("z")]
    )
    assert stop_predecessors(of_pod, ["a", "b", "x", "i", "y", "z"]) == {
        "z": {"a", "b"},
        "y": {"a", "b", "z"},
        "x": {"a", "b", "y"},
    }
    assert stop_predecessors(of_pod, ["a", "x", "z"]) == {"z": {"a"}, "y": {"a", "z"}, "x": {"a"}}


async def killed(of_pod: Object, graces: dict[str, float], exits_after: float) -> dict[str, float]:
    """Kill all containers together; how long each waited for its turn."""
    turns = TerminationOrder(of_pod, list(graces))
    waited = {}

    async def kill(name: str, grace: float) -> None:
        waited[name] = await turns.wait(name, grace)
        await asyncio.sleep(exits_after)
        turns.ended(name)

    async with asyncio.TaskGroup() as group:
        for name, grace in graces.items():
            group.create_task(kill(name, grace))
    return waited


@virtual_time
async def test_a_sidecar_waits_for_the_main_container() -> None:
    """KO-03"""
    of_pod = pod(container("main"), init=[sidecar("x")])
    assert await killed(of_pod, {"main": 0, "x": 30}, 1.0) == {"main": 0, "x": 1.0}


@virtual_time
async def test_sidecars_go_in_reverse_order() -> None:
    """KO-04"""
    of_pod = pod(container("main"), init=[sidecar("sc1"), sidecar("sc2"), sidecar("sc3")])
    waited = await killed(of_pod, dict.fromkeys(("sc1", "sc2", "sc3", "main"), 30.0), 1.25)
    assert {name: int(seconds) for name, seconds in waited.items()} == {
        "sc1": 3,
        "sc2": 2,
        "sc3": 1,
        "main": 0,
    }


@virtual_time
async def test_nobody_waits_longer_than_there_is_grace() -> None:
    """KO-02, KC-11"""
    of_pod = pod(container("main"), init=[sidecar("x")])
    assert await killed(of_pod, {"main": 30, "x": 4}, 9.0) == {"main": 0, "x": 4.0}
    assert await killed(of_pod, {"main": 30, "x": 0}, 9.0) == {"main": 0, "x": 0.0}


def test_the_times_and_bounds_of_an_agent() -> None:
    """KL-01"""
    assert constants.RELIST_SECONDS == constants.SYNC_TICK_SECONDS == 1
    assert (constants.RELIST_UNHEALTHY_SECONDS, constants.RELIST_EVENTS) == (180, 1000)
    assert (Delays().resync_seconds, Delays().backoff_seconds) == (60, 10)
    assert (constants.RESYNC_SECONDS, constants.STATUS_SYNC_SECONDS) == (60, 10)
    assert (constants.HOUSEKEEPING_SECONDS, constants.HOUSEKEEPING_WARNING_SECONDS) == (2, 1)
    assert (constants.CRASH_LOOP_INITIAL_SECONDS, constants.CRASH_LOOP_MAX_SECONDS) == (10, 300)
    assert (constants.CRASH_LOOP_RESET_SECONDS, constants.CONTAINER_GC_SECONDS) == (600, 60)
    assert (constants.MINIMUM_STOP_SECONDS, constants.TERMINATION_MESSAGES_BYTES) == (2, 12288)

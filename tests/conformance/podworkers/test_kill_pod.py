"""Kill and wait; and what is measured on the way."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from podlife.kubelet.pod import RunningPod
from podlife.kubelet.podworkers import KillError, kill_pod_now
from podlife.kubelet.podworkers.kill_pod import wait_limit_seconds
from podlife.testing import virtual_time
from tests.conformance.podworkers.world import CREATE, KILL, SYNC, World, pod, running


@pytest.mark.parametrize(
    ("spec", "override", "expected"),
    [(30, None, 45), (None, None, 10), (30, 5, 10), (30, 7, 10), (30, 0, 10), (5, 21, 31), (0, None, 10)],
)
def test_the_wait_has_a_limit(spec: int | None, override: int | None, expected: int) -> None:
    """PW-180"""
    assert wait_limit_seconds(pod(grace=spec), override) == expected


@running
async def test_a_kill_returns_when_the_pod_has_stopped(world: World) -> None:
    """PW-181"""
    await world.started(pod())
    gate = world.hold("terminating")
    terminated = world.hold("terminated")
    asyncio.get_running_loop().call_later(40, gate.set)
    await kill_pod_now(world.workers, world.recorder, pod(), evict=True)
    assert asyncio.get_running_loop().time() == pytest.approx(40, abs=0.01)
    assert world.state().is_evicted
    assert not world.state().is_finished
    assert world.recorder.events == []
    await world.open(terminated)


@running
async def test_a_kill_that_takes_too_long_is_told_and_goes_on(world: World) -> None:
    """PW-182"""
    await world.started(pod())
    gate = world.hold("terminating")
    with pytest.raises(KillError, match=r"^timeout waiting to kill pod$"):
        await kill_pod_now(world.workers, world.recorder, pod())
    assert asyncio.get_running_loop().time() == pytest.approx(45, abs=0.01)
    message = "Container runtime did not kill the pod within specified grace period."
    assert world.recorder.events == [("running-pod", "Warning", "ExceededGracePeriod", message)]
    await world.open(gate)
    assert world.state().is_finished


@running
async def test_a_pod_that_is_not_known_is_killed_too(world: World) -> None:
    """PW-183"""

    def override(status: Any) -> None: ...

    await kill_pod_now(world.workers, world.recorder, pod(), grace_seconds=0, status_override=override)
    await world.settle()
    assert world.steps.of("u") == [("terminating", 1), ("terminated", None)]
    assert world.steps.seen[0][2] is override


@running
async def test_a_pod_that_has_ended_is_no_reason_to_wait(world: World) -> None:
    """PW-17"""
    await world.started(pod())
    await world.told(KILL, pod())
    before = asyncio.get_running_loop().time()
    await kill_pod_now(world.workers, world.recorder, pod())
    assert asyncio.get_running_loop().time() == before


@virtual_time
async def test_whoever_waits_when_the_workers_end_is_told_so(world: World) -> None:
    async with world:
        await world.started(pod())
        world.hold("terminating")
        waiting = asyncio.get_running_loop().create_task(kill_pod_now(world.workers, world.recorder, pod()))
        await world.settle()
    with pytest.raises(KillError, match="the pod workers ended before pod running-pod was seen to stop"):
        await waiting


@running
async def test_whoever_gives_up_waiting_disturbs_nobody(world: World) -> None:
    await world.started(pod())
    gate = world.hold("terminating")
    waiting = asyncio.get_running_loop().create_task(kill_pod_now(world.workers, world.recorder, pod()))
    await world.settle()
    waiting.cancel()
    await asyncio.wait([waiting])
    await world.open(gate)
    assert world.state().is_finished


@running
async def test_the_time_since_a_change_arrived_is_measured_by_operation(world: World) -> None:
    """PW-190"""
    await asyncio.sleep(10)
    now = asyncio.get_running_loop().time()
    await world.told(CREATE, pod(), asked_at=now - 3)
    await world.told(SYNC, pod())
    gate = world.hold("terminated")
    await world.told(KILL, pod(), asked_at=now - 4)
    world.tell(KILL, running=RunningPod("r"), asked_at=now - 5)
    await world.open(gate)
    await world.started(pod("ended"))
    world.tell(KILL, pod("ended", phase="Failed"))
    with world.failing("terminated", "ended"):
        await world.settle()
    await world.told(SYNC, pod("ended"), asked_at=now - 6)
    measured = {
        operation: (each.total, round(each.sum))
        for operation, each in world.workers.metrics.worker_seconds.items()
    }
    assert measured == {
        "create": (1, 3),
        "update": (0, 0),
        "sync": (0, 0),
        "kill": (2, 9),
        "terminated": (1, 6),
    }

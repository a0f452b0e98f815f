"""When a pod is looked at again."""

from __future__ import annotations

import asyncio
import random

import pytest

from podlife.kubelet.due_queue import DueQueue
from podlife.kubelet.monotonic import MonotonicSeconds
from podlife.kubelet.pod import NodePod
from podlife.kubelet.podworkers import BackoffError, Delays
from podlife.kubelet.podworkers.delays import delay_after
from podlife.testing import virtual_time
from tests.conformance.podworkers.world import CREATE, KILL, SYNC, UPDATE, World, pod, running

DELAYS = Delays(resync_seconds=20.0, backoff_seconds=10.0)
NOW = 1000.0
NETWORK = "container runtime network is not ready: cni"


def backoff(seconds: float) -> BackoffError:
    return BackoffError("back-off restarting failed container", NOW + seconds)


def group(*errors: Exception) -> ExceptionGroup[Exception]:
    return ExceptionGroup("sync failed", errors)


def raised_from(cause: Exception) -> Exception:
    error = RuntimeError("the pod could not be synced")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "base"),
    [
        pytest.param(None, 20.0, id="PW-91: success"),
        pytest.param(RuntimeError("no"), 10.0, id="PW-92: a plain error"),
        pytest.param(backoff(5), 5.0, id="PW-93: an error that backs off"),
        pytest.param(raised_from(backoff(5)), 5.0, id="PW-93: an error raised from one that backs off"),
        pytest.param(
            group(RuntimeError("no"), backoff(7)), 7.0, id="PW-94: a plain one and one that backs off"
        ),
        pytest.param(group(backoff(10), backoff(3)), 3.0, id="PW-95: the one that ends first"),
        pytest.param(backoff(-5), 0.0, id="PW-96: one that has ended"),
        pytest.param(backoff(100), 20.0, id="PW-97: no later than the resync"),
        pytest.param(RuntimeError(NETWORK), 1.0, id="PW-98: no network"),
        pytest.param(
            group(RuntimeError("no"), RuntimeError(NETWORK)), 1.0, id="PW-98: no network among others"
        ),
        pytest.param(group(backoff(0.5), RuntimeError(NETWORK)), 1.0, id="PW-98: no network beats a backoff"),
    ],
)
def test_a_delay_lies_between_its_base_and_half_as_much_again(error: Exception | None, base: float) -> None:
    for chance, factor in ((0.0, 1.0), (0.5, 1.25), (1.0, 1.5)):
        delay = delay_after(DELAYS, error, NOW, is_transition=False, random=chance)
        assert delay == pytest.approx(base * factor)


@running
async def test_a_pod_that_moved_on_is_due_at_once(world: World) -> None:
    """PW-90"""
    world.chance = 1.0
    await world.started(pod())
    gate = world.hold("terminated")
    await world.told(KILL, pod())
    assert world.delay() <= 0
    await world.open(gate)
    assert world.workers.retries.due_at("u") is None, "there is nothing left to do"


@running
async def test_a_worker_without_anything_pending_is_idle_and_one_with_it_goes_on(world: World) -> None:
    """PW-99"""
    gate = world.hold("sync")
    await world.told(CREATE, pod())
    assert world.workers.is_working("u")
    world.tell(UPDATE, pod(version="2"))
    await world.open(gate)
    assert world.steps.of("u") == [("sync", "create"), ("sync", "update")]
    assert not world.workers.is_working("u")


@running
async def test_an_idle_pod_has_no_task(world: World) -> None:
    before = len(asyncio.all_tasks())
    await world.started(*(pod(f"{number}") for number in range(50)))
    assert len(asyncio.all_tasks()) == before


def test_the_values_are_the_kubelets_own() -> None:
    """PW-100"""
    assert Delays() == Delays(resync_seconds=60.0, backoff_seconds=10.0, transient_seconds=1.0)


def test_a_pod_has_one_due_time_and_the_newest_counts_sooner_or_later() -> None:
    """PW-100"""
    queue = DueQueue()
    queue.put("later", 10.0)
    queue.put("later", 60.0)
    queue.put("sooner", 60.0)
    queue.put("sooner", 10.0)
    queue.put("gone", 5.0)
    queue.forget("gone")
    assert queue.take_due(10.0) == [], "a time that is now is not before now"
    assert queue.take_due(10.5) == ["sooner"]
    assert queue.take_due(10.5) == []
    assert queue.take_due(100.0) == ["later"]
    assert len(queue) == 0


def test_the_queue_agrees_with_one_that_looks_through_everything() -> None:
    """PW-100"""
    chances = random.Random(7)
    queue, naive = DueQueue(), dict[str, float]()
    for now in range(2000):
        uid, at = f"{chances.randrange(20)}", now + chances.random() * 30
        if chances.random() < 0.1:
            queue.forget(uid)
            naive.pop(uid, None)
        else:
            queue.put(uid, at)
            naive[uid] = at
        if now % 7 == 0:
            due = sorted((uid for uid, at in naive.items() if at < now), key=naive.__getitem__)
            assert queue.take_due(now) == due
            for each in due:
                del naive[each]
        assert len(queue) == len(naive)
        assert len(queue._heap) <= 2 * len(queue) + 65, "what was overwritten does not pile up"


@running
async def test_what_is_due_leads_to_a_sync_of_the_pods_that_are_still_wanted(world: World) -> None:
    """PW-101"""
    wanted: dict[str, NodePod] = {"kept": pod("kept"), "dropped": pod("dropped")}
    await world.started(*wanted.values())
    del wanted["dropped"]
    await asyncio.sleep(25)
    due = world.workers.retries.take_due(asyncio.get_running_loop().time())
    assert sorted(due) == ["dropped", "kept"]
    for uid in due:
        if uid in wanted:
            world.tell(SYNC, wanted[uid])
    await world.settle()
    assert world.steps.calls == [("sync", "kept", "sync")]
    world.workers.sync_known_pods(wanted)
    await world.settle()
    assert world.state("dropped").is_finished


# Waiting: once a second at most, and not at all while nothing is due


@virtual_time
async def test_what_is_due_comes_within_a_second() -> None:
    loop = asyncio.get_running_loop()
    table = DueQueue()
    table.put("later", loop.time() + 60)
    table.put("soon", loop.time() + 5)
    assert await table.wait() == ["soon"]
    assert 5 <= loop.time() < 6.1
    assert await table.wait() == ["later"]
    assert 60 <= loop.time() < 61.1


@virtual_time
async def test_something_earlier_that_comes_while_it_waits_is_not_missed() -> None:
    loop = asyncio.get_running_loop()
    table = DueQueue()
    table.put("late", loop.time() + 500)
    waiting = loop.create_task(table.wait())
    await asyncio.sleep(30)
    table.put("early", loop.time() + 10)
    assert await waiting == ["early"]
    assert 40 <= loop.time() < 41.1


@virtual_time
async def test_an_empty_one_waits_for_what_comes() -> None:
    loop = asyncio.get_running_loop()
    table = DueQueue()
    waiting = loop.create_task(table.wait())
    await asyncio.sleep(10_000)
    assert not waiting.done()
    table.put("first", loop.time())
    assert await waiting == ["first"]


@virtual_time
async def test_no_two_moments_are_the_same_though_time_stands_still() -> None:
    seconds = MonotonicSeconds()
    found = [seconds() for _ in range(1000)]
    assert found == sorted(set(found))
    await asyncio.sleep(1)
    assert seconds() == asyncio.get_running_loop().time()

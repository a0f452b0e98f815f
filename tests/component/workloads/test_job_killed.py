"""The controller of Jobs killed at every write, or left without an answer: every pod is counted once, none made twice.

On the embedded server under virtual time. What is looked at is the server: what the status counts, beside every pod
that has ever been there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import pytest

from podlife.aio import cancel_and_wait
from podlife.apiserver.endpoints import ApiHandler
from podlife.client import JOBS
from podlife.testing import virtual_time
from podlife.wire import Handler, Request, Response
from podlife.workloads.job import JobController
from tests.component.workloads.job_world import DONE, KEY, census, controlling, has_condition, job, world_of
from tests.kit.embedded import refusal, start
from tests.workloads.node import exits, named
from tests.workloads.objects import Object
from tests.workloads.runs import at_work
from tests.workloads.world import World


@dataclass
class Killer:
    """Lets so many writes of the controller through; of the one after, nobody hears an answer any more."""

    step: int
    # Whether that one still reaches the server.
    is_done: bool
    struck: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, request: Request, to_server: Handler) -> Response:
        # Events are nobody's state, and come when they come.
        if request.method == "GET" or request.path.endswith("/events"):
            return await to_server(request)
        self.step -= 1
        if self.step < 0:
            if self.step == -1 and self.is_done:
                await to_server(request)
            self.struck.set()
            await asyncio.Event().wait()
        return await to_server(request)


async def killed_at(
    server: ApiHandler, step: int, is_done: bool, until: Callable[[], bool], world: World
) -> bool:
    """Run a controller until it is killed at this step, or until all is done; says whether it was killed."""
    killer = Killer(step, is_done)
    async with controlling(server, killer):
        over = asyncio.get_running_loop().create_task(world.until("the Job has ended", until, seconds=600))
        struck = asyncio.get_running_loop().create_task(killer.struck.wait())
        await asyncio.wait([over, struck], return_when=asyncio.FIRST_COMPLETED)
        await cancel_and_wait(struck)
        await cancel_and_wait(over)
    return killer.struck.is_set()


Play = Callable[[World], Coroutine[Any, Any, None]]


@dataclass(frozen=True)
class Tale:
    """A Job, what becomes of its pods, how it ends, and what its status says then."""

    job: Object
    play: Play
    end: str
    status: Object
    # Pods that there ever are.
    pods: int


async def all_succeed(world: World) -> None:
    world.node.let(DONE)


async def one_fails(world: World) -> None:
    """When all are at work, and before any of them can succeed."""
    pods = await world.until_pods(3)
    world.node.let(exits(1), named(pods[0]["metadata"]["name"]))


async def first_index_succeeds(world: World) -> None:
    await world.until("all are at work", lambda: len(world.living()) == 3)
    world.node.let(
        DONE, lambda pod: pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] == "0"
    )


INDEXED = {"completionMode": "Indexed", "completions": 3, "parallelism": 3}
TALES = {
    "plain": Tale(job(completions=5, parallelism=2), all_succeed, "Complete", {"succeeded": 5}, 5),
    "indexed": Tale(
        job(completionMode="Indexed", completions=4, parallelism=2),
        all_succeed,
        "Complete",
        {"succeeded": 4, "completedIndexes": "0-3"},
        4,
    ),
    "failing": Tale(job(completions=3, parallelism=3, backoffLimit=0), one_fails, "Failed", {"failed": 3}, 3),
    "success policy": Tale(
        job(**INDEXED, backoffLimit=0, successPolicy={"rules": [{"succeededIndexes": "0"}]}),
        first_index_succeeds,
        "Complete",
        {"succeeded": 1, "completedIndexes": "0"},
        3,
    ),
}


@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("tale", TALES.values(), ids=TALES)
def test_killed_at_any_write_and_started_again_counts_every_pod_once(tale: Tale, is_done: bool) -> None:
    steps = 0
    while tell(tale, steps, is_done):
        steps += 1
    # A pass that goes through writes at least a status before, a status after, and every pod twice.
    assert steps >= 2 * tale.pods


def tell(tale: Tale, step: int, is_done: bool) -> bool:
    """Whether there was such a step."""
    was_killed = False

    @virtual_time
    async def run() -> None:
        nonlocal was_killed
        server = await start()
        async with world_of(server) as world, census(server) as pods:
            await world.create(JOBS, tale.job)
            async with at_work(lambda: tale.play(world)):
                ended = has_condition(world, tale.end)
                was_killed = await killed_at(server, step, is_done, ended, world)
                async with controlling(server) as controller:
                    await world.until("the Job has ended", ended, seconds=900)
                    await world.settle()
                    assert_nothing_is_kept(controller)
            status = world.status(JOBS, "work")
            assert {name: status.get(name) for name in tale.status} == tale.status, status
            assert status["uncountedTerminatedPods"] == {}
            assert len(pods.ends) == tale.pods, pods
            left = [pod for pod in world.pods() if pod["metadata"].get("finalizers")]
            assert not left

    run()
    return was_killed


def assert_nothing_is_kept(controller: JobController) -> None:
    """Of a Job that has ended nothing is expected, awaited or remembered."""
    assert controller._expectations.get(KEY) is None
    assert controller._writes.is_seen(KEY)
    assert not controller._caught_up
    assert not controller._sync._backoffs


@virtual_time
async def test_killed_again_and_again_while_pods_fail_and_succeed_counts_every_pod_once() -> None:
    server = await start()
    async with world_of(server) as world, census(server) as pods:
        order: dict[str, int] = {}
        world.node.let(DONE)
        # Every fourth pod fails, in the order in which they are seen.
        world.node.let(exits(1), lambda pod: order.setdefault(pod["metadata"]["uid"], len(order)) % 4 == 1)
        await world.create(JOBS, job(completions=12, parallelism=4, backoffLimit=1000))
        ended = has_condition(world, "Complete")
        kills = 0
        while not ended():
            assert kills < 300, world.describe()
            kills += await killed_at(server, 2 + kills % 4, kills % 2 == 0, ended, world)
        await world.settle()
        status = world.status(JOBS, "work")
        assert kills > 8
        assert status["succeeded"] == pods.count("Succeeded") == 12
        assert status["failed"] == pods.count("Failed") >= 3
        assert len(pods.ends) == 12 + status["failed"]


@virtual_time
async def test_writes_that_are_done_but_never_answered_are_counted_once() -> None:
    """The controller lives on, and does not know which of its writes the server has."""
    writes = 0

    async def lose_answers(request: Request, to_server: Handler) -> Response:
        nonlocal writes
        response = await to_server(request)
        if request.method == "GET" or request.path.endswith("/events"):
            return response
        writes += 1
        return refusal(500, "InternalError") if writes % 3 == 0 else response

    server = await start()
    async with world_of(server) as world, census(server) as pods:
        order: dict[str, int] = {}
        world.node.let(DONE)
        world.node.let(exits(1), lambda pod: order.setdefault(pod["metadata"]["uid"], len(order)) % 4 == 1)
        await world.create(JOBS, job(completions=9, parallelism=3, backoffLimit=1000))
        async with controlling(server, lose_answers):
            await world.until("the Job is Complete", has_condition(world, "Complete"), seconds=3600)
        status = world.status(JOBS, "work")
        assert status["succeeded"] == pods.count("Succeeded") == 9
        assert status["failed"] == pods.count("Failed") >= 2
        assert pods.most_at_once <= 3

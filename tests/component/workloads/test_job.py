"""Jobs when things go wrong: the controller killed at every step, caches that are behind, input that cannot work.

On the embedded server under virtual time, with a stand-in for the nodes. What is looked at is the server: what the
status counts, beside every pod that has ever been there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from podlife.aio import cancel_and_wait
from podlife.apiserver.handler import ApiHandler
from podlife.client import EVENTS, JOBS, NAMESPACES, PODS, Bookmark, Client, EventType
from podlife.controller import ControlPlane, OwnWrites
from podlife.errors import ConflictError
from podlife.podcontrol import SelectorMismatchError
from podlife.wire import Handler, Request, Response
from podlife.workloads.job import Job, JobController
from podlife.workloads.job.pods import TRACKING_FINALIZER
from podlife.workloads.job.record import Record
from podlife.workloads.job.sync import Sight
from podlife.workloads.ttl_after_finished import TtlAfterFinishedController
from tests.component.embedded import Disturbance, LoopClock, connect, refusal, start
from tests.virtual_time import virtual_time
from tests.workloads.node import exits, named
from tests.workloads.objects import Object, labelled_pod, template
from tests.workloads.runs import EmbeddedQuota, at_work, observing
from tests.workloads.world import World

DONE = exits(0)
KEY = ("default", "work")


def job(**spec: Any) -> Object:
    return {"metadata": {"name": "work"}, "spec": {"template": template("w", restartPolicy="Never"), **spec}}


@asynccontextmanager
async def controlling(server: ApiHandler, disturb: Disturbance | None = None) -> AsyncIterator[JobController]:
    """A controller with a client of its own, killed at the end of the block."""
    client = connect(server, disturb)
    plane = ControlPlane(client, clock=LoopClock())
    controller = JobController(plane)
    plane.add(controller)
    plane.add(TtlAfterFinishedController(plane))
    running = asyncio.get_running_loop().create_task(plane.run())
    try:
        yield controller
    finally:
        await cancel_and_wait(running)
        await client.close()


@asynccontextmanager
async def world_of(server: ApiHandler) -> AsyncIterator[World]:
    """What users and nodes do, in the namespace `default`."""
    client = connect(server)
    async with observing(client, EmbeddedQuota(), clock=LoopClock(), quiet_seconds=5) as cluster:
        world = World(cluster, "default")
        async with at_work(world.node.run):
            yield world
    await client.close()


@dataclass
class Census:
    """Every pod that was ever there, by UID, and the furthest that each has come."""

    ends: dict[str, str] = field(default_factory=dict)
    most_at_once: int = 0

    async def take(self, client: Client) -> None:
        there: set[str] = set()
        async with aclosing(client.follow(PODS, "default")) as events:
            async for event in events:
                if not isinstance(event, Bookmark):
                    self._note(event.type, event.object, there)

    def _note(self, type_: EventType, pod: Object, there: set[str]) -> None:
        uid, phase = pod["metadata"]["uid"], (pod.get("status") or {}).get("phase", "")
        if type_ is EventType.DELETED or phase in ("Succeeded", "Failed"):
            there.discard(uid)
        else:
            there.add(uid)
        self.most_at_once = max(self.most_at_once, len(there))
        if self.ends.get(uid) not in ("Succeeded", "Failed"):
            self.ends[uid] = phase

    def count(self, end: str) -> int:
        return sum(1 for each in self.ends.values() if each == end)


@asynccontextmanager
async def census(server: ApiHandler) -> AsyncIterator[Census]:
    client = connect(server)
    taken = Census()
    async with at_work(lambda: taken.take(client)):
        yield taken
    await client.close()


def conditions(status: Object) -> list[str]:
    return [each["type"] for each in status.get("conditions") or [] if each["status"] == "True"]


def has_condition(world: World, type_: str) -> Callable[[], bool]:
    return lambda: type_ in conditions(world.status(JOBS, "work"))


# Killed


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


Play = Callable[[World], Awaitable[None]]


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
    pods = await world.until("all are at work", lambda: len(world.living()) == 3 and world.living())
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


# Behind


async def late(body: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
    async with aclosing(body):
        async for piece in body:
            await asyncio.sleep(2)
            yield piece


async def cut(body: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
    async with aclosing(body):
        for _ in range(7):
            yield await anext(body)


@pytest.mark.parametrize("worse", [late, cut])
def test_slow_or_cut_watch_never_makes_it_create_or_count_twice(
    worse: Callable[[AsyncGenerator[bytes, None]], AsyncIterator[bytes]],
) -> None:
    async def disturb(request: Request, to_server: Handler) -> Response:
        response = await to_server(request)
        if "watch" in request.query:
            response.body = worse(response.body)  # type: ignore[arg-type]
        return response

    @virtual_time
    async def run() -> None:
        server = await start()
        async with world_of(server) as world, census(server) as pods:
            world.node.let(DONE)
            await world.create(JOBS, job(completions=9, parallelism=3))
            async with controlling(server, disturb) as controller:
                ended = has_condition(world, "Complete")
                for _ in range(2000):
                    # Woken again and again, long before the caches have what was done.
                    controller.queue.add(KEY)
                    await asyncio.sleep(0.3)
                    if ended():
                        break
            assert world.status(JOBS, "work")["succeeded"] == 9
            assert len(pods.ends) == 9
            assert pods.most_at_once <= 3

    run()


class Stalled:
    """A watch of pods that can be held up, and a first look at Jobs that is held up until it is let go."""

    def __init__(self) -> None:
        self.pods_go = asyncio.Event()
        self.pods_go.set()
        self.jobs_go = asyncio.Event()

    async def __call__(self, request: Request, to_server: Handler) -> Response:
        if request.method == "GET" and request.path.endswith("/jobs"):
            await self.jobs_go.wait()
        response = await to_server(request)
        if "watch" in request.query and request.path.endswith("/pods"):
            response.body = self._held_up(response.body)  # type: ignore[arg-type]
        return response

    async def _held_up(self, body: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
        async with aclosing(body):
            async for piece in body:
                await self.pods_go.wait()
                yield piece


@virtual_time
async def test_pod_that_another_controller_has_counted_is_not_counted_again() -> None:
    """One that takes over with pods in its cache as they were before."""
    server = await start()
    stalled = Stalled()
    async with world_of(server) as world, controlling(server, stalled) as second:
        async with controlling(server):
            await world.create(JOBS, job(completions=2, parallelism=1))
            (pod,) = await world.until_pods(1)
        # Nobody is at work: the second sees the pod succeed, and then nothing more of pods.
        world.node.let(DONE, named(pod["metadata"]["name"]))
        await asyncio.sleep(5)
        assert second._pods.cache.get("default", pod["metadata"]["name"]).status.phase == "Succeeded"  # type: ignore[union-attr]
        stalled.pods_go.clear()
        async with controlling(server):
            await world.until_status(JOBS, "work", succeeded=1, active=1)
        stalled.jobs_go.set()
        await asyncio.sleep(30)
        assert second._jobs.has_synced
        status = world.status(JOBS, "work")
        assert (status["succeeded"], status["uncountedTerminatedPods"]) == (1, {})
        assert len(world.pods()) == 2
        # It goes on when it has caught up.
        stalled.pods_go.set()
        world.node.let(DONE)
        await world.until("the Job is Complete", has_condition(world, "Complete"))
        assert world.status(JOBS, "work")["succeeded"] == 2


@virtual_time
async def test_job_created_again_under_its_name_adopts_nothing_of_the_first() -> None:
    """Seen by a controller that has not heard of the second yet: the owner is asked for before a pod is adopted."""
    held = asyncio.Event()
    is_holding = False

    async def hold_jobs(body: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
        async with aclosing(body):
            async for piece in body:
                if is_holding:
                    await held.wait()
                yield piece

    async def disturb(request: Request, to_server: Handler) -> Response:
        response = await to_server(request)
        if "watch" in request.query and request.path.endswith("/jobs"):
            response.body = hold_jobs(response.body)  # type: ignore[arg-type]
        return response

    server = await start()
    made = job(manualSelector=True, selector={"matchLabels": {"app": "w"}}, parallelism=1)
    async with world_of(server) as world, controlling(server, disturb):
        first = await world.create(JOBS, made)
        await world.until_status(JOBS, "work", active=1, ready=1)
        is_holding = True
        await world.delete(JOBS, "work", cascade="Background")
        second = await world.create(JOBS, {**made, "spec": {**made["spec"], "suspend": True}})
        await world.create(PODS, labelled_pod("orphan", "w"))
        await asyncio.sleep(20)
        assert "ownerReferences" not in world.get(PODS, "orphan")["metadata"]
        held.set()
        await world.settle()
        owners = {
            each["uid"] for pod in world.pods() for each in pod["metadata"].get("ownerReferences") or ()
        }
        # The orphan is the second's by its labels; what was the first's stays so, for the collector of owned objects.
        assert owners <= {first["metadata"]["uid"], second["metadata"]["uid"]}
        (left,) = [pod for pod in world.pods() if pod["metadata"]["name"] != "orphan"]
        assert left["metadata"]["ownerReferences"][0]["uid"] == first["metadata"]["uid"]


@virtual_time
async def test_pod_whose_job_the_cache_does_not_know_yet_keeps_its_finalizer() -> None:
    server = await start()
    async with world_of(server) as world:
        async with controlling(server):
            await world.create(JOBS, job(completions=1))
            (pod,) = await world.until_pods(1)
        world.node.hold()

        async def no_jobs(request: Request, to_server: Handler) -> Response:
            """The list of Jobs is from before there was one."""
            if request.method == "GET" and request.path == "/apis/batch/v1/jobs":
                earlier = await start()
                return await earlier(request)
            return await to_server(request)

        async with controlling(server, no_jobs):
            await world.delete(PODS, pod["metadata"]["name"])
            await asyncio.sleep(30)
            assert world.get(PODS, pod["metadata"]["name"])["metadata"]["finalizers"] == [TRACKING_FINALIZER]


# Many


@virtual_time
async def test_more_pods_than_one_status_may_name_are_all_counted() -> None:
    server = await start()
    async with world_of(server) as world, census(server) as pods:
        await world.create(JOBS, job(completions=1100, parallelism=1100))
        async with controlling(server):
            await world.until_pods(1100)
            world.node.let(DONE)
            await world.until("the Job is Complete", has_condition(world, "Complete"), seconds=300)
        assert world.status(JOBS, "work")["succeeded"] == 1100 == len(pods.ends)


# Refused


@virtual_time
async def test_quota_that_refuses_is_told_and_tried_again_ever_more_slowly() -> None:
    tries: list[float] = []
    is_full = True

    async def quota(request: Request, to_server: Handler) -> Response:
        if request.method == "POST" and request.path.endswith("/pods"):
            tries.append(asyncio.get_running_loop().time())
            if is_full:
                return refusal(403, "Forbidden")
        return await to_server(request)

    server = await start()
    async with world_of(server) as world, controlling(server, quota) as controller:
        await world.create(JOBS, job(completions=50, parallelism=50))
        await asyncio.sleep(60)
        # One pod of fifty each time, and the distance doubles from a second.
        assert 4 <= len(tries) <= 10
        assert controller._expectations.is_satisfied(KEY), "what was not created is not expected"
        assert {event["message"] for event in world.events("FailedCreate")} == {"Error creating: no: 403"}
        is_full = False
        await world.until_pods(50)


@virtual_time
async def test_terminating_namespace_is_told_to_nobody_and_tried_no_more() -> None:
    tries = 0

    async def count(request: Request, to_server: Handler) -> Response:
        nonlocal tries
        tries += request.method == "POST" and request.path.endswith("/pods")
        return await to_server(request)

    server = await start()
    client = connect(server)
    await client.create(NAMESPACES, {"metadata": {"name": "leaving", "finalizers": ["example.com/stay"]}})
    await client.create(JOBS, job(completions=5, parallelism=5, suspend=True), "leaving")
    async with controlling(server, count):
        await asyncio.sleep(5)
        await client.delete(NAMESPACES, "leaving")
        await client.patch(JOBS, "work", {"spec": {"suspend": False}}, "leaving")
        await asyncio.sleep(300)
    reasons = {event["reason"] for event in (await client.list(EVENTS, "leaving")).items}
    assert "FailedCreate" not in reasons
    assert tries <= 10
    await client.close()


@virtual_time
async def test_job_that_selects_other_pods_than_it_makes_makes_none() -> None:
    """No server lets such a Job in; one that is there all the same would make pods without end."""
    server = await start()
    async with world_of(server) as world, controlling(server) as controller:
        await world.create(JOBS, job(suspend=True))
        await world.until("it is seen", has_condition(world, "Suspended"))
        made = msgspec.convert(world.get(JOBS, "work"), Job)
        made.spec.suspend = False
        made.spec.selector = {"matchLabels": {"app": "other"}}
        with pytest.raises(SelectorMismatchError, match="does not match template labels"):
            await controller._sync.run(KEY, Sight(made, [], is_settled=True))
        assert world.pods() == []


@virtual_time
async def test_conflicts_are_met_with_patience() -> None:
    """A status that somebody overtook is decided anew, a second later and then ever more slowly."""
    writes = 0

    async def count(request: Request, to_server: Handler) -> Response:
        nonlocal writes
        writes += request.path.endswith("/status")
        return await to_server(request)

    server = await start()
    async with world_of(server) as world, controlling(server, count):
        world.node.let(DONE)
        await world.create(JOBS, job(completions=3, parallelism=3))
        async with world.storm(JOBS, "work"):
            await asyncio.sleep(30)
        await world.until("the Job is Complete", has_condition(world, "Complete"), seconds=120)
        assert world.status(JOBS, "work")["succeeded"] == 3
        assert writes < 40


@virtual_time
async def test_status_that_somebody_overtook_is_not_written() -> None:
    """Counts are right on the state they were counted from, and on no other."""
    server = await start()
    async with world_of(server) as world:
        seen = msgspec.convert(await world.create(JOBS, job()), Job)
        await world.patch(JOBS, "work", {"status": {"failed": 3}}, subresource="status")
        record = Record(world.client, OwnWrites({}), seen)
        with pytest.raises(ConflictError):
            await record.write({"succeeded": 1})
        await world.until("it is seen", lambda: world.status(JOBS, "work").get("failed") == 3)
        assert "succeeded" not in world.status(JOBS, "work")


# Left alone


@virtual_time
async def test_job_of_another_controller_is_not_touched_nor_are_its_pods() -> None:
    server = await start()
    async with world_of(server) as world, controlling(server):
        made = await world.create(JOBS, job(managedBy="example.com/other"))
        reference = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": "work",
            "uid": made["metadata"]["uid"],
            "controller": True,
        }
        theirs = labelled_pod("theirs", "w", ownerReferences=[reference], finalizers=[TRACKING_FINALIZER])
        await world.create(PODS, theirs)
        done = {
            "type": "FailureTarget",
            "status": "True",
            "lastProbeTime": "2030-01-01T00:00:00Z",
            "lastTransitionTime": "2030-01-01T00:00:00Z",
        }
        ended = {
            "startTime": "2030-01-01T00:00:00Z",
            "conditions": [done, {**done, "type": "Failed"}],
        }
        await world.patch(JOBS, "work", {"status": ended}, subresource="status")
        world.node.hold()
        await world.delete(PODS, "theirs")
        await asyncio.sleep(30)
        assert world.status(JOBS, "work") == ended
        assert world.get(PODS, "theirs")["metadata"]["finalizers"] == [TRACKING_FINALIZER]


# The time to live


@virtual_time
async def test_job_whose_time_to_live_was_raised_unseen_is_kept() -> None:
    is_holding = False
    held = asyncio.Event()

    async def hold(body: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
        async with aclosing(body):
            async for piece in body:
                if is_holding:
                    await held.wait()
                yield piece

    async def disturb(request: Request, to_server: Handler) -> Response:
        response = await to_server(request)
        if "watch" in request.query and request.path.endswith("/jobs"):
            response.body = hold(response.body)  # type: ignore[arg-type]
        return response

    server = await start()
    async with world_of(server) as world, controlling(server, disturb):
        world.node.let(DONE)
        await world.create(JOBS, job(ttlSecondsAfterFinished=20))
        await world.until("the Job is Complete", has_condition(world, "Complete"))
        await asyncio.sleep(5)
        is_holding = True
        await world.patch(JOBS, "work", {"spec": {"ttlSecondsAfterFinished": 100}})
        await asyncio.sleep(60)
        assert "deletionTimestamp" not in world.get(JOBS, "work")["metadata"]
        held.set()
        await asyncio.sleep(60)
        # Foreground: it waits for the collector of owned objects, who is not here.
        metadata = world.get(JOBS, "work")["metadata"]
        assert metadata["finalizers"] == ["foregroundDeletion"]
        assert "deletionTimestamp" in metadata

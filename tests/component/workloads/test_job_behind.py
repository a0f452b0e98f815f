"""A controller of Jobs whose caches are behind, by seconds or by what another controller did: nothing is done twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing

import pytest

from podlife.client import JOBS, PODS
from podlife.testing import virtual_time
from podlife.wire import Handler, Request, Response
from podlife.workloads.job.pods import TRACKING_FINALIZER
from tests.component.workloads.job_world import DONE, KEY, census, controlling, has_condition, job, world_of
from tests.kit.embedded import start
from tests.workloads.disturbances import held, late, watching
from tests.workloads.node import named
from tests.workloads.objects import labelled_pod


async def cut(body: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
    async with aclosing(body):
        for _ in range(7):
            yield await anext(body)


@pytest.mark.parametrize("worse", [late, cut])
def test_slow_or_cut_watch_never_makes_it_create_or_count_twice(
    worse: Callable[[AsyncGenerator[bytes, None]], AsyncIterator[bytes]],
) -> None:
    @virtual_time
    async def run() -> None:
        server = await start()
        async with world_of(server) as world, census(server) as pods:
            world.node.let(DONE)
            await world.create(JOBS, job(completions=9, parallelism=3))
            async with controlling(server, watching("", worse)) as controller:
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
        return await watching("/pods", lambda body: held(body, self.pods_go))(request, to_server)


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
        seen = second._pods.cache.get("default", pod["metadata"]["name"])
        assert seen is not None
        assert seen.status.phase == "Succeeded"
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
    flows = asyncio.Event()
    flows.set()
    disturb = watching("/jobs", lambda body: held(body, flows))
    server = await start()
    made = job(manualSelector=True, selector={"matchLabels": {"app": "w"}}, parallelism=1)
    async with world_of(server) as world, controlling(server, disturb):
        first = await world.create(JOBS, made)
        await world.until_status(JOBS, "work", active=1, ready=1)
        flows.clear()
        await world.delete(JOBS, "work", cascade="Background")
        second = await world.create(JOBS, {**made, "spec": {**made["spec"], "suspend": True}})
        await world.create(PODS, labelled_pod("orphan", "w"))
        await asyncio.sleep(20)
        assert "ownerReferences" not in world.get(PODS, "orphan")["metadata"]
        flows.set()
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

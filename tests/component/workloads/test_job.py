"""Jobs that are many, refused, in conflict, not ours, or due to go, on the embedded server under virtual time."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from podlife.client import EVENTS, JOBS, NAMESPACES, PODS
from podlife.controller import OwnWrites
from podlife.errors import ConflictError
from podlife.podcontrol import SelectorMismatchError
from podlife.testing import virtual_time
from podlife.wire import Handler, Request, Response
from podlife.workloads.job import Job
from podlife.workloads.job.pods import TRACKING_FINALIZER
from podlife.workloads.job.sync import JobStatusWriter
from tests.component.workloads.job_world import (
    DONE,
    ENDED,
    KEY,
    census,
    controlling,
    has_condition,
    job,
    world_of,
)
from tests.kit import objects
from tests.kit.embedded import connect, start
from tests.workloads.disturbances import held, watching
from tests.workloads.objects import labelled_pod


@virtual_time
async def test_more_pods_than_one_status_may_name_are_all_counted() -> None:
    server = await start()
    async with world_of(server) as world, census(server) as pods:
        await world.create(JOBS, job(completions=600, parallelism=600))
        async with controlling(server):
            await world.until_pods(600)
            world.node.let(DONE)
            await world.until("the Job is Complete", has_condition(world, "Complete"), seconds=300)
        assert world.status(JOBS, "work")["succeeded"] == 600 == len(pods.ends)


# Refused


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
            await controller._sync.run(KEY, made, [], is_settled=True)
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
        record = JobStatusWriter(world.client, OwnWrites({}), seen)
        with pytest.raises(ConflictError):
            await record.write({"succeeded": 1})
        await world.until("it is seen", lambda: world.status(JOBS, "work").get("failed") == 3)
        assert "succeeded" not in world.status(JOBS, "work")


# Left alone


@virtual_time
async def test_pods_of_a_job_that_somebody_else_has_ended_are_held_by_nothing() -> None:
    server = await start()
    async with world_of(server) as world, controlling(server):
        await world.create(JOBS, job(completions=2, parallelism=2))
        await world.until_status(JOBS, "work", active=2, ready=2)
        patch = {**ENDED, "active": 0, "ready": 0, "startTime": world.status(JOBS, "work")["startTime"]}
        await world.patch(JOBS, "work", {"status": patch}, subresource="status")
        await world.until(
            "nothing holds them", lambda: all(not pod["metadata"].get("finalizers") for pod in world.pods())
        )
        assert len(world.living()) == 2


@virtual_time
async def test_job_of_another_controller_is_not_touched_nor_are_its_pods() -> None:
    server = await start()
    async with world_of(server) as world, controlling(server):
        made = await world.create(JOBS, job(managedBy="example.com/other"))
        reference = objects.owner("Job", "work", api_version="batch/v1", uid=made["metadata"]["uid"])
        theirs = labelled_pod("theirs", "w", ownerReferences=[reference], finalizers=[TRACKING_FINALIZER])
        await world.create(PODS, theirs)
        await world.patch(JOBS, "work", {"status": ENDED}, subresource="status")
        world.node.hold()
        await world.delete(PODS, "theirs")
        await asyncio.sleep(30)
        assert world.status(JOBS, "work") == ENDED
        assert world.get(PODS, "theirs")["metadata"]["finalizers"] == [TRACKING_FINALIZER]


# The time to live


@virtual_time
async def test_job_whose_time_to_live_was_raised_unseen_is_kept() -> None:
    flows = asyncio.Event()
    flows.set()
    disturb = watching("/jobs", lambda body: held(body, flows))
    server = await start()
    async with world_of(server) as world, controlling(server, disturb):
        world.node.let(DONE)
        await world.create(JOBS, job(ttlSecondsAfterFinished=20))
        await world.until("the Job is Complete", has_condition(world, "Complete"))
        await asyncio.sleep(5)
        flows.clear()
        await world.patch(JOBS, "work", {"spec": {"ttlSecondsAfterFinished": 100}})
        await asyncio.sleep(60)
        assert "deletionTimestamp" not in world.get(JOBS, "work")["metadata"]
        flows.set()
        await asyncio.sleep(60)
        # Foreground: it waits for the collector of owned objects, who is not here.
        metadata = world.get(JOBS, "work")["metadata"]
        assert metadata["finalizers"] == ["foregroundDeletion"]
        assert "deletionTimestamp" in metadata

"""A machine whose clock is set, or that slept: what is due by the clock is seen to be, though no timer knows of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

from podlife.aio import cancel_and_wait
from podlife.apiserver.endpoints import ApiHandler
from podlife.client import JOBS, PODS, REPLICA_SETS
from podlife.controller import ControlPlane
from podlife.errors import NotFoundError
from podlife.testing import LoopClock, virtual_time
from podlife.workloads.job import JobController
from podlife.workloads.replicaset import ReplicaSetController
from podlife.workloads.ttl_after_finished import TtlAfterFinishedController
from tests.component.workloads.job_world import job
from tests.kit.embedded import connect, start
from tests.workloads.objects import template


class SetClock(LoopClock):
    """Behind by ten hours, until it is set."""

    behind = timedelta(hours=10)

    def now(self) -> datetime:
        return super().now() - self.behind


@asynccontextmanager
async def controlling(server: ApiHandler, clock: SetClock) -> AsyncIterator[None]:
    client = connect(server)
    plane = ControlPlane(client, clock=clock)
    for kind in (ReplicaSetController, JobController, TtlAfterFinishedController):
        plane.add(kind(plane))
    running = asyncio.get_running_loop().create_task(plane.run())
    try:
        yield
    finally:
        await cancel_and_wait(running)
        await client.close()


@virtual_time
async def test_what_is_due_by_a_clock_that_was_set_is_done_within_minutes() -> None:
    server, clock = await start(), SetClock()
    client = connect(server)
    async with controlling(server, clock):
        selector = {"matchLabels": {"app": "web"}}
        spec: dict[str, Any] = {"selector": selector, "template": template("web"), "minReadySeconds": 30}
        await client.create(REPLICA_SETS, {"metadata": {"name": "web"}, "spec": spec}, "default")
        await client.create(JOBS, job(suspend=True, ttlSecondsAfterFinished=60), "default")
        await asyncio.sleep(5)
        then = "2030-01-01T00:00:05Z"
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": then}
        (pod,) = (await client.list(PODS, "default")).items
        status: dict[str, Any] = {"status": {"phase": "Running", "conditions": [ready]}}
        await client.patch(PODS, pod["metadata"]["name"], status, "default", subresource="status")
        ended = [
            {"type": type_, "status": "True", "lastProbeTime": then, "lastTransitionTime": then}
            for type_ in ("FailureTarget", "Failed")
        ]
        status = {"status": {"startTime": then, "conditions": ended}}
        await client.patch(JOBS, "work", status, "default", subresource="status")
        await asyncio.sleep(60)
        clock.behind = timedelta(0)
        await asyncio.sleep(700)
        found = await client.get(REPLICA_SETS, "web", "default")
        assert found["status"].get("availableReplicas") == 1
        try:
            left = await client.get(JOBS, "work", "default")
        except NotFoundError:
            pass
        else:
            assert "deletionTimestamp" in left["metadata"]
    await client.close()

"""CronJobs under a clock that a test turns: hours of starts, clocks that jump, zones that disappear, lost responses."""

from __future__ import annotations

import asyncio
import zoneinfo
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest

from podlife.api.codec import Object
from podlife.client import CRON_JOBS, EVENTS, JOBS, Client, DeleteOptions
from podlife.controller import ControlPlane
from podlife.errors import UnreachableError
from podlife.testing import LoopClock, virtual_time
from podlife.wire import Handler, Request, Response
from podlife.workloads.cronjob import CronJobController
from tests.kit.embedded import connect, start
from tests.workloads.objects import template
from tests.workloads.runs import at_work

HOUR = 3600


class SetClock(LoopClock):
    off = timedelta(0)

    def now(self) -> datetime:
        return super().now() + self.off


class Stage:
    """The server's clock goes on as it does; the controller's may be set."""

    def __init__(self, client: Client, clock: SetClock) -> None:
        self.client = client
        self.clock = clock

    async def create(self, schedule: str, **spec: Any) -> Object:
        job = {"suspend": True, "template": template("work", restartPolicy="Never")}
        fields = {"schedule": schedule, "jobTemplate": {"spec": job}, **spec}
        made: Object = await self.client.create(
            CRON_JOBS, {"metadata": {"name": "work"}, "spec": fields}, "default"
        )
        return made

    async def jobs(self) -> list[int]:
        """The minutes in their names, since the beginning of 2030."""
        names = sorted(job["metadata"]["name"] for job in (await self.client.list(JOBS, "default")).items)
        return [int(name.rpartition("-")[2]) - 31_557_600 for name in names]

    async def finish(self, *, type_: str = "Complete") -> None:
        """All Jobs end, now by the server's clock."""
        now = LoopClock().now().isoformat(timespec="seconds").replace("+00:00", "Z")
        before = {"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}[type_]
        for job in (await self.client.list(JOBS, "default")).items:
            if job["status"].get("conditions"):
                continue
            conditions = [
                {"type": each, "status": "True", "lastProbeTime": now, "lastTransitionTime": now}
                for each in (before, type_)
            ]
            status = {"startTime": now, "conditions": conditions}
            status |= {"completionTime": now} if type_ == "Complete" else {}
            patch = {"status": status}
            await self.client.patch(JOBS, job["metadata"]["name"], patch, "default", subresource="status")

    async def status(self) -> Object:
        found: Object = await self.client.get(CRON_JOBS, "work", "default")
        return found["status"]

    async def events(self) -> dict[str, int]:
        listed = (await self.client.list(EVENTS, "default")).items
        return {event["reason"]: event.get("count") or 1 for event in listed}


@asynccontextmanager
async def staged(disturbance: Any = None) -> AsyncIterator[Stage]:
    server, clock = await start(), SetClock()
    line = connect(server, disturbance) if disturbance else connect(server)
    async with connect(server) as client, line as own:
        plane = ControlPlane(own, clock=clock)
        plane.add(CronJobController(plane))
        async with at_work(plane.run):
            yield Stage(client, clock)


@virtual_time
async def test_every_start_of_a_day_is_made_once_and_history_is_bounded() -> None:
    async with staged() as stage:
        await stage.create("0 * * * *")
        await asyncio.sleep(60)
        for _ in range(24):
            await asyncio.sleep(HOUR)
            await stage.finish()
        await asyncio.sleep(60)
        assert await stage.jobs() == [1320, 1380, 1440]
        counts = await stage.events()
        assert counts["SuccessfulCreate"] + counts["SuccessfulDelete"] > 0
        status = await stage.status()
        assert "active" not in status
        assert status["lastScheduleTime"] == "2030-01-02T00:00:00Z"
        assert status["lastSuccessfulTime"] > "2030-01-01T23:59:00Z"


@virtual_time
async def test_failures_have_a_history_of_their_own() -> None:
    async with staged() as stage:
        await stage.create("@hourly", failedJobsHistoryLimit=2)
        for type_ in ("Complete", "Failed", "Failed", "Failed"):
            await asyncio.sleep(HOUR + 1)
            await stage.finish(type_=type_)
        await asyncio.sleep(60)
        assert await stage.jobs() == [60, 180, 240]


@pytest.mark.parametrize(
    ("policy", "left"), [("Allow", [60, 120, 180]), ("Forbid", [60]), ("Replace", [180])]
)
@virtual_time
async def test_jobs_that_never_end(policy: str, left: list[int]) -> None:
    async with staged() as stage:
        await stage.create("0 * * * *", concurrencyPolicy=policy)
        await asyncio.sleep(3 * HOUR + 60)
        assert await stage.jobs() == left
        assert len((await stage.status())["active"]) == len(left)


@virtual_time
async def test_a_clock_that_jumps_ahead_starts_the_last_missed_one_within_minutes() -> None:
    async with staged() as stage:
        await stage.create("0 0 * * *")
        await asyncio.sleep(60)
        stage.clock.off = timedelta(days=200, hours=3)
        await asyncio.sleep(700)
        assert await stage.jobs() == [200 * 24 * 60]
        assert "TooManyMissedTimes" in await stage.events()


@virtual_time
async def test_a_clock_that_jumps_back_repeats_nothing() -> None:
    async with staged() as stage:
        await stage.create("0 * * * *")
        await asyncio.sleep(2 * HOUR + 60)
        assert await stage.jobs() == [60, 120]
        await stage.finish()
        stage.clock.off = -timedelta(hours=2)
        await asyncio.sleep(2 * HOUR - 120)
        assert await stage.jobs() == [60, 120]
        await asyncio.sleep(HOUR + 120)
        assert await stage.jobs() == [60, 120, 180]


@virtual_time
async def test_a_zone_that_disappeared_is_reported_and_starts_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with staged() as stage:
        await stage.create("0 * * * *", timeZone="Europe/Berlin")
        await asyncio.sleep(10)

        def gone(name: str) -> Any:
            raise zoneinfo.ZoneInfoNotFoundError(name)

        monkeypatch.setattr(zoneinfo, "ZoneInfo", gone)
        await asyncio.sleep(HOUR)
        assert await stage.jobs() == []
        listed = (await stage.client.list(EVENTS, "default")).items
        assert [event["message"] for event in listed] == [
            'invalid timeZone: "Europe/Berlin": unknown time zone Europe/Berlin'
        ]


@virtual_time
async def test_a_response_that_was_lost_starts_no_second_job() -> None:
    lost: list[str] = []

    async def lose(request: Request, to_server: Handler) -> Response:
        response = await to_server(request)
        if request.method == "POST" and request.path.endswith("/jobs") and not lost:
            lost.append(request.path)
            raise UnreachableError("the connection was lost")
        return response

    async with staged(lose) as stage:
        await stage.create("0 * * * *")
        await asyncio.sleep(HOUR + 60)
        assert lost
        assert await stage.jobs() == [60]
        assert len((await stage.status())["active"]) == 1


@virtual_time
async def test_a_job_of_another_owner_with_the_same_name_is_never_deleted() -> None:
    async with staged() as stage:
        await stage.create("0 * * * *", successfulJobsHistoryLimit=0)
        other = {
            "apiVersion": "example.com/v1",
            "kind": "Other",
            "name": "work",
            "uid": "1",
            "controller": True,
        }
        spec = {"suspend": True, "template": template("work", restartPolicy="Never")}
        foreign = {"metadata": {"name": "foreign", "ownerReferences": [other]}, "spec": spec}
        await stage.client.create(JOBS, foreign, "default")
        await stage.finish()
        await asyncio.sleep(60)
        assert [job["metadata"]["name"] for job in (await stage.client.list(JOBS, "default")).items] == [
            "foreign"
        ]


@virtual_time
async def test_a_suspended_one_that_goes_on_starts_what_it_missed_last() -> None:
    async with staged() as stage:
        await stage.create("0 * * * *", suspend=True)
        await asyncio.sleep(5.5 * HOUR)
        assert await stage.jobs() == []
        await stage.client.patch(CRON_JOBS, "work", {"spec": {"suspend": False}}, "default")
        await asyncio.sleep(1)
        assert await stage.jobs() == [300]


@virtual_time
async def test_one_that_was_created_again_starts_afresh() -> None:
    async with staged() as stage:
        made = await stage.create("0 * * * *")
        await asyncio.sleep(HOUR + 60)
        options = DeleteOptions(uid=made["metadata"]["uid"], propagation_policy="Orphan")
        await stage.client.delete(CRON_JOBS, "work", "default", options=options)
        patch = {"metadata": {"finalizers": None}}
        await stage.client.patch(CRON_JOBS, "work", patch, "default")
        await stage.create("0 * * * *")
        await asyncio.sleep(HOUR)
        assert await stage.jobs() == [60, 120]
        assert (await stage.status())["lastScheduleTime"] == "2030-01-01T02:00:00Z"


@pytest.mark.parametrize("last", ["0001-01-01T00:00:00Z", "1901-12-13T00:00:00Z", "9999-12-31T23:59:59Z"])
@virtual_time
async def test_any_last_start_that_a_user_writes_is_survived(last: str) -> None:
    async with staged() as stage:
        await stage.create("0 * * * *", suspend=True)
        status = {"status": {"lastScheduleTime": last}}
        await stage.client.patch(CRON_JOBS, "work", status, "default", subresource="status")
        await stage.client.patch(CRON_JOBS, "work", {"spec": {"suspend": False}}, "default")
        await asyncio.sleep(60)
        assert len(await stage.jobs()) == (0 if last.startswith("9") else 1)

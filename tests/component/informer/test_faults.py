"""What an informer gets over, what it says meanwhile, and what it does not get over."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Literal

import msgspec
import pytest

from podlife.api.codec import Object
from podlife.api.views import Metadata
from podlife.apiserver.storage import HistoryLimits
from podlife.errors import (
    ApiError,
    ForbiddenError,
    NotFoundError,
    UnauthorizedError,
)
from podlife.testing import virtual_time
from podlife.wire import Response
from tests.component.informer.world import Notes, following, refusal, run_informer, started, value
from tests.kit.wait import until

EXPIRED: Object = {"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": "old"}


def now() -> float:
    return asyncio.get_running_loop().time()


# Gaps


@pytest.mark.parametrize("is_streamed", [True, False])
@virtual_time
async def test_after_an_expired_watch_the_difference_is_told_and_nothing_else(is_streamed: bool) -> None:
    async with following("same", "changed", "gone", "replaced", streams_list=is_streamed) as (
        world,
        informer,
        notes,
    ):
        before = informer.cache.get("default", "same")
        world.line.stream.stall()
        await world.put("changed", "2")
        await world.delete("gone")
        await world.delete("replaced")
        await world.put("replaced", "new")
        await world.put("added")
        world.line.stream.inject_event("ERROR", EXPIRED)
        await until(lambda: informer.stats.lists == 2 and informer.is_live)
        told = notes.take()
        assert sorted(told) == ["+added", "+replaced new", "-gone", "-replaced", "~changed 2"]
        assert told.index("-replaced") < told.index("+replaced new")
        assert informer.cache.get("default", "same") is before
        assert len(informer.cache) == 4


@virtual_time
async def test_a_server_that_has_forgotten_the_revision_during_an_outage_is_listed_again() -> None:
    async with following("a", "b", limits=HistoryLimits(seconds=30)) as (world, informer, notes):
        world.line.go_down()
        await world.delete("a")
        await asyncio.sleep(300)
        await world.put("c")
        world.line.is_down = False
        await until(lambda: informer.is_live)
        assert sorted(notes.take()) == ["+c", "-a"]
        assert informer.stats.lists == 2


@virtual_time
async def test_an_outage_of_an_hour_loses_nothing_and_costs_no_list() -> None:
    async with following("a", "b", limits=HistoryLimits(seconds=100_000)) as (world, informer, notes):
        world.line.go_down()
        await asyncio.sleep(3600)
        assert (informer.has_synced, informer.is_live) == (True, False)
        assert str(informer.trouble) == "nobody there"
        await world.delete("a")
        await world.put("c")
        # It backs off: far fewer tries than a tight loop would make.
        assert len(world.line.requests) < 1000
        world.line.is_down = False
        await until(lambda: informer.is_live, seconds=15)
        await world.caught_up(informer)
        assert notes.take() == ["-a", "+c"]
        assert informer.stats.lists == 1
        assert informer.trouble is None


@virtual_time
async def test_a_server_that_begins_anew_under_the_same_address_is_noticed() -> None:
    async with following(*"abcdefgh") as (world, informer, notes):
        world.line.go_down()
        await world.begin_anew()
        await world.put("new")
        world.line.is_down = False
        await until(lambda: informer.cache.get("default", "new"), seconds=15)
        assert sorted(notes.take()) == ["+new", *(f"-{name}" for name in "abcdefgh")]
        await until(lambda: informer.is_live, seconds=15)


@virtual_time
async def test_a_server_that_comes_back_with_its_history_is_asked_once_and_not_listed() -> None:
    async with following("a") as (world, informer, _):
        world.line.stream.cut()
        await asyncio.sleep(30)
        assert [request.query.get("limit") for request in world.line.requests] == ["500", "", "", "1"]
        assert informer.stats.lists == 1


# Liveness


@virtual_time
async def test_it_is_live_from_the_first_sync_on() -> None:
    world, informer, _ = await started("a")
    assert not informer.is_live
    world.line.is_down = True
    async with run_informer(informer, seconds=0):
        await asyncio.sleep(60)
        assert (informer.has_synced, informer.is_live) == (False, False)
        world.line.is_down = False
        await until(lambda: informer.has_synced)
        assert informer.is_live


@virtual_time
async def test_a_quiet_server_stays_live_all_day() -> None:
    async with following("a") as (_, informer, _):
        for _ in range(24 * 60):
            await asyncio.sleep(60)
            assert informer.is_live
        assert informer.stats.interruptions == 0
        assert informer.stats.lists == 1


@virtual_time
async def test_a_silent_server_is_noticed_at_the_read_deadline_and_its_return_at_once() -> None:
    async with following("a", read_seconds=100) as (world, informer, notes):
        world.line.stream.stall()
        world.line.refuse(refusal(503, "ServiceUnavailable"), times=5)
        await world.put("b")
        await asyncio.sleep(99)
        assert informer.is_live
        await asyncio.sleep(1.01)
        assert (informer.has_synced, informer.is_live) == (True, False)
        await until(lambda: informer.is_live, seconds=60)
        await world.caught_up(informer)
        assert notes.take() == ["+b"]
        assert informer.stats.lists == 1


@virtual_time
async def test_a_relist_is_not_live_before_it_is_whole() -> None:
    world, informer, _ = await started("a", "b")
    live: list[bool] = []

    class Asking(Notes):
        def on_add(self, obj: Any) -> None:
            live.append(informer.is_live)

    async with run_informer(informer):
        world.line.stream.stall()
        await world.put("c")
        informer.add_handler(Asking())
        live.clear()
        world.line.stream.inject_event("ERROR", EXPIRED)
        await until(lambda: live)
        assert live == [False]
        await until(lambda: informer.is_live)


# Bad answers


@pytest.mark.parametrize(
    "answer",
    [
        refusal(429, "TooManyRequests"),
        refusal(500, "InternalError"),
        refusal(503, "ServiceUnavailable"),
        Response(200, b'{"metadata":{"resourceVersion":"5"},"items":[{"metadata":{"na'),
        Response(200, b"<html>hello</html>"),
    ],
)
@virtual_time
async def test_before_the_first_sync_trouble_is_waited_out(answer: Response) -> None:
    world, informer, notes = await started("a")
    world.line.refuse(answer, times=20, where="limit=500")
    async with run_informer(informer, seconds=600):
        assert notes.take() == ["+a"]
        assert now() > 1
        assert informer.is_live


@virtual_time
async def test_a_server_that_forgets_every_revision_at_once_is_not_listed_in_a_tight_loop() -> None:
    world, informer, notes = await started("a")
    world.line.refuse(refusal(410, "Expired"), times=1000, where="watch=1")
    async with run_informer(informer):
        await asyncio.sleep(100)
        assert 5 < informer.stats.lists < 30
        world.line.allow()
        await until(lambda: informer.is_live, seconds=15)
        assert notes.take() == ["+a"]


@virtual_time
async def test_pages_that_grow_old_are_followed_by_a_list_in_one_piece() -> None:
    world, informer, notes = await started("a", "b")
    item = {"metadata": {"name": "a", "namespace": "default", "uid": "another", "resourceVersion": "1"}}
    first = {"metadata": {"resourceVersion": "5", "continue": "t"}, "items": [item]}
    world.line.refuse(Response(200, json.dumps(first).encode()), where="limit=500")
    world.line.refuse(refusal(410, "Expired"), where="continue=t")
    async with run_informer(informer):
        assert sorted(notes.take()) == ["+a", "+a", "+b", "-a"]
        limits = [request.query.get("limit") for request in world.line.requests]
        assert limits[:3] == ["500", "500", "1000000000"]


# Refusals


REFUSALS = [
    pytest.param(refusal(401, "Unauthorized"), UnauthorizedError, id="401"),
    pytest.param(refusal(403, "Forbidden"), ForbiddenError, id="403"),
    pytest.param(refusal(404, "NotFound"), NotFoundError, id="404"),
]


@pytest.mark.parametrize(("answer", "error"), REFUSALS)
@virtual_time
async def test_a_refusal_later_is_believed_when_it_lasts(answer: Response, error: type[ApiError]) -> None:
    world, informer, _ = await started("a")
    async with run_informer(informer) as task:
        world.line.refuse(answer, times=1000)
        world.line.stream.cut()
        await asyncio.sleep(30)
        assert not task.done()
        assert not informer.is_live
        assert isinstance(informer.trouble, error)
        with pytest.raises(error):
            await task
        assert 60 <= now() < 75


@pytest.mark.parametrize(("answer", "error"), REFUSALS)
@virtual_time
async def test_a_refusal_of_a_server_that_has_just_started_is_got_over(
    answer: Response, error: type[ApiError]
) -> None:
    async with following("a") as (world, informer, notes):
        for _ in range(3):
            world.line.refuse(answer, times=5)
            world.line.stream.cut()
            await until(lambda: isinstance(informer.trouble, error))
            await until(lambda: informer.is_live, seconds=30)
            await asyncio.sleep(40)
        await world.put("b")
        await world.caught_up(informer)
        assert notes.take() == ["+b"]


@virtual_time
async def test_waiting_for_a_sync_that_does_not_come_ends_at_its_deadline() -> None:
    world, informer, _ = await started("a")
    world.line.is_down = True
    async with run_informer(informer, seconds=0):
        assert not await informer.wait_for_sync(seconds=30)
        assert now() == 30
        assert str(informer.trouble) == "nobody there"


# Objects that do not fit


class Strict(msgspec.Struct):
    """Fits as long as the value is a good one."""

    metadata: Metadata
    data: dict[str, Literal["", "good", "better"]]


@pytest.mark.parametrize("is_streamed", [True, False])
@virtual_time
async def test_an_object_that_cannot_be_read_is_neither_told_nor_taken_for_deleted(is_streamed: bool) -> None:
    world, informer, notes = await started("a", "b", view=Strict, streams_list=is_streamed)
    await world.put("bad", "bad")
    async with run_informer(informer):
        assert sorted(notes.take()) == ["+a", "+b"]
        assert informer.stats.misfits == 1
        await world.put("a", "bad")
        await world.put("b", "good")
        await until(lambda: informer.stats.misfits == 2)
        assert value(informer, "a") == ""
        # Listed again, it is still there.
        world.line.stream.inject_event("ERROR", EXPIRED)
        await until(lambda: informer.stats.lists == 2 and informer.is_live)
        assert notes.take() == ["~b good"]
        assert value(informer, "a") == ""
        await world.put("a", "better")
        await until(lambda: notes.all)
        assert notes.take() == ["~a better"]
        assert informer.stats.interruptions == 1


@virtual_time
async def test_an_object_that_cannot_be_read_and_goes_is_told_with_its_last_known_state() -> None:
    world, informer, notes = await started("a", "b", view=Strict)
    await world.put("a", "good")
    async with run_informer(informer):
        notes.take()
        await world.put("a", "bad")
        await world.delete("a")
        await world.put("unknown", "bad")
        await world.delete("unknown")
        await world.put("b", "better")
        await until(lambda: "~b better" in notes.all)
        assert notes.take() == ["-a good", "~b better"]
        assert informer.cache.get("default", "a") is None

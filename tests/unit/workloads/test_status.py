"""A status is written onto the object it was decided for, and only what has changed of it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from podlife.api.patch import merge_patch
from podlife.client import REPLICA_SETS, Client
from podlife.controller import OwnWrites
from podlife.errors import ConflictError
from podlife.testing import virtual_time
from podlife.wire import Handler, Request, Response
from podlife.workloads.replicaset.views import ReplicaSet
from podlife.workloads.status import (
    ConditionDict,
    StatusWriter,
    changed_fields,
    find_condition,
    has_condition,
    next_collision_count,
    with_condition,
    without_condition,
)
from tests.kit import objects
from tests.kit.embedded import connect, refusal, start
from tests.workloads.objects import replica_set

Object = dict[str, Any]
NOW = datetime(2030, 1, 1, tzinfo=UTC)
LATER = datetime(2030, 1, 2, tzinfo=UTC)
FIRST = ConditionDict("Progressing", "True", "Begun", "It has begun.").to_object(NOW)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({}, {}),
        ({"replicas": 1}, {"replicas": 2}),
        ({"replicas": 1, "readyReplicas": 1}, {"replicas": 1}),
        ({}, {"conditions": [{"type": "A"}]}),
        ({"conditions": [{"type": "A"}, {"type": "B"}]}, {"conditions": [{"type": "B"}]}),
        ({"uncounted": {"succeeded": ["a"]}}, {}),
        ({"value": 1}, {"value": {"now": "more"}}),
    ],
)
def test_the_patch_leads_from_one_status_to_the_other(old: Object, new: Object) -> None:
    patch = changed_fields(old, new)
    assert merge_patch(old, patch) == new
    assert bool(patch) == (old != new)


class Meddling:
    """Another writer is faster than each of so many status patches."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.seen: list[str] = []

    async def __call__(self, request: Request, to_server: Handler) -> Response:
        self.seen.append(request.method)
        if request.method == "PATCH" and self.times > 0:
            self.times -= 1
            return refusal(409, "Conflict")
        return await to_server(request)


async def made(client: Client) -> ReplicaSet:
    created = await client.create(REPLICA_SETS, replica_set("web", 1), "default")
    return msgspec.convert({**created, "status": {"replicas": 0}}, ReplicaSet)


async def replicas(client: Client) -> int:
    status: Object = (await client.get(REPLICA_SETS, "web", "default"))["status"]
    return status.get("replicas", 0)


class Situation:
    """A ReplicaSet of the server, and the writer of its status."""

    def __init__(self, way: Meddling, client: Client, web: ReplicaSet) -> None:
        self.way, self.client, self.web = way, client, web
        self._writer = StatusWriter(client, REPLICA_SETS, OwnWrites({}))

    async def write(self, count: int) -> Object | None:
        return await self._writer.write(self.web, {"replicas": count})


@contextlib.asynccontextmanager
async def situation(times: int = 0) -> AsyncIterator[Situation]:
    way = Meddling(times)
    client = connect(await start(), way)
    yield Situation(way, client, await made(client))
    await client.close()


@virtual_time
async def test_nothing_is_sent_where_nothing_has_changed() -> None:
    async with situation() as found:
        found.way.seen.clear()
        assert await found.write(0) is None
        assert found.way.seen == []


@virtual_time
async def test_a_write_that_was_overtaken_once_is_made_on_the_newest_state() -> None:
    async with situation() as found:
        note = {"metadata": {"annotations": {"note": "new"}}}
        await found.client.patch(REPLICA_SETS, "web", note, "default")
        found.way.times = 1
        written = await found.write(2)
        assert written is not None
        assert await replicas(found.client) == 2
        assert written["metadata"]["annotations"] == {"note": "new"}


@virtual_time
async def test_a_write_that_was_overtaken_twice_is_left_to_the_next_try() -> None:
    async with situation(2) as found:
        with pytest.raises(ConflictError):
            await found.write(2)
        assert await replicas(found.client) == 0


@virtual_time
async def test_a_status_is_never_written_onto_another_object_of_the_same_name() -> None:
    async with situation() as found:
        await found.client.delete(REPLICA_SETS, "web", "default")
        assert await found.write(2) is None
        await made(found.client)
        assert await found.write(2) is None
        assert await replicas(found.client) == 0


def test_the_collision_count_begins_again_where_an_int32_ends() -> None:
    assert [next_collision_count(count) for count in (None, 0, 5, 2**31 - 1)] == [1, 1, 6, 0]


def test_object_has_what_is_given_and_the_time() -> None:
    assert (
        objects.condition(
            "Progressing",
            "True",
            reason="Begun",
            message="It has begun.",
            lastTransitionTime="2030-01-01T00:00:00Z",
        )
        == FIRST
    )
    assert ConditionDict("Ready", "False").to_object(NOW, lastUpdateTime=LATER) == objects.condition(
        "Ready", "False", lastUpdateTime="2030-01-02T00:00:00Z", lastTransitionTime="2030-01-01T00:00:00Z"
    )


def test_a_condition_that_says_the_same_stays_as_it_was() -> None:
    again = ConditionDict("Progressing", "True", "Begun", "in other words").to_object(LATER)
    assert with_condition([FIRST], again) == [FIRST]


def test_another_reason_with_the_same_status_is_no_transition() -> None:
    other = ConditionDict("Progressing", "True", "GoingOn").to_object(LATER)
    [written] = with_condition([FIRST], other)
    assert (written["reason"], written["lastTransitionTime"]) == ("GoingOn", FIRST["lastTransitionTime"])


def test_another_status_is_a_transition_and_comes_last() -> None:
    ready = ConditionDict("Ready", "True").to_object(NOW)
    stopped = ConditionDict("Progressing", "False", "Stopped").to_object(LATER)
    known = [FIRST, ready]
    assert with_condition(known, stopped) == [ready, stopped]
    assert known == [FIRST, ready], "what was given can still be compared"


def test_a_condition_is_found_by_type_and_taken_away() -> None:
    assert find_condition([FIRST], "Progressing") is FIRST
    assert find_condition(None, "Progressing") is None
    assert has_condition([FIRST], "Progressing")
    assert not has_condition([FIRST], "Progressing", "False")
    assert without_condition([FIRST], "Progressing") == []
    assert without_condition(None, "Progressing") == []

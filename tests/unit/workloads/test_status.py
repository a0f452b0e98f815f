"""A status is written onto the object it was decided for, and only what has changed of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podlife.api.patch import merge_patch
from podlife.client import REPLICA_SETS, Client
from podlife.errors import ConflictError
from podlife.testing import virtual_time
from podlife.wire import Handler, Request, Response
from podlife.workloads.status import changed_fields, next_collision_count, write_status
from podlife.workloads.views import WorkloadMetadata
from tests.kit.embedded import connect, refusal, start
from tests.workloads.objects import replica_set

Object = dict[str, Any]


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


async def made(client: Client) -> WorkloadMetadata:
    created = await client.create(REPLICA_SETS, replica_set("web", 1), "default")
    return msgspec.convert(created["metadata"], WorkloadMetadata)


async def status_of(client: Client) -> Object:
    status: Object = (await client.get(REPLICA_SETS, "web", "default"))["status"]
    return status


@virtual_time
async def test_nothing_is_sent_where_nothing_has_changed() -> None:
    way = Meddling(0)
    client = connect(await start(), way)
    metadata = await made(client)
    way.seen.clear()
    same = {"replicas": 0}
    assert await write_status(client, REPLICA_SETS, metadata, same, dict(same)) is None
    assert way.seen == []
    await client.close()


@virtual_time
async def test_a_write_that_was_overtaken_once_is_made_on_the_newest_state() -> None:
    way = Meddling(0)
    client = connect(await start(), way)
    metadata = await made(client)
    await client.patch(REPLICA_SETS, "web", {"metadata": {"annotations": {"note": "new"}}}, "default")
    way.times = 1
    written = await write_status(client, REPLICA_SETS, metadata, {"replicas": 0}, {"replicas": 2})
    assert written is not None
    assert (await status_of(client))["replicas"] == 2
    assert written["metadata"]["annotations"] == {"note": "new"}
    await client.close()


@virtual_time
async def test_a_write_that_was_overtaken_twice_is_left_to_the_next_try() -> None:
    way = Meddling(2)
    client = connect(await start(), way)
    metadata = await made(client)
    with pytest.raises(ConflictError):
        await write_status(client, REPLICA_SETS, metadata, {"replicas": 0}, {"replicas": 2})
    assert (await status_of(client)).get("replicas", 0) == 0
    await client.close()


@virtual_time
async def test_a_status_is_never_written_onto_another_object_of_the_same_name() -> None:
    client = connect(await start())
    metadata = await made(client)
    await client.delete(REPLICA_SETS, "web", "default")
    assert await write_status(client, REPLICA_SETS, metadata, {}, {"replicas": 2}) is None
    await made(client)
    assert await write_status(client, REPLICA_SETS, metadata, {}, {"replicas": 2}) is None
    assert (await status_of(client)).get("replicas", 0) == 0
    await client.close()


def test_the_collision_count_begins_again_where_an_int32_ends() -> None:
    assert [next_collision_count(count) for count in (None, 0, 5, 2**31 - 1)] == [1, 1, 6, 0]

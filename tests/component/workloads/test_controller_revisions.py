"""Revisions on a server: claimed, made once, numbered anew, and gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from podlife.aio import cancel_and_wait
from podlife.api.codec import Object
from podlife.api.selectors import label_selector_from_dict
from podlife.client import CONTROLLER_REVISIONS, STATEFUL_SETS, Client
from podlife.errors import PodlifeError
from podlife.informer import Informer
from podlife.podcontrol import AdoptionRefusedError, Owner, owner_of
from podlife.testing import virtual_time
from podlife.workloads.controller_revisions import (
    REVISION_INDEXERS,
    ControllerRevision,
    History,
    RevisionDraft,
    revision_hash,
    template_patch,
)
from tests.kit.embedded import connect, start

TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
SELECTOR = label_selector_from_dict({"matchLabels": {"app": "web"}})
DATA = template_patch(TEMPLATE)
DRAFT = RevisionDraft(DATA, 1, {"app": "web"})


@asynccontextmanager
async def following(client: Client) -> AsyncIterator[Informer[ControllerRevision]]:
    informer = Informer(client, CONTROLLER_REVISIONS, view=ControllerRevision, indexers=REVISION_INDEXERS)
    running = asyncio.get_running_loop().create_task(informer.run())
    try:
        await informer.wait_for_sync(seconds=30)
        yield informer
    finally:
        await cancel_and_wait(running)


async def make_set(client: Client) -> Owner:
    spec = {"serviceName": "", "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}
    made: Object = await client.create(
        STATEFUL_SETS, {"metadata": {"name": "web", "namespace": "default"}, "spec": spec}
    )
    return owner_of(made, STATEFUL_SETS)


async def stored(client: Client) -> list[Any]:
    return list((await client.list(CONTROLLER_REVISIONS, "default")).items)


async def put(client: Client, name: str, data: bytes = DATA, **metadata: Any) -> None:
    await client.create(
        CONTROLLER_REVISIONS,
        {"metadata": {"name": name, **metadata}, "data": msgspec.Raw(data), "revision": 1},
        "default",
    )


@virtual_time
async def test_a_revision_is_made_once_and_found_again() -> None:
    client = connect(await start())
    owner = await make_set(client)
    written: list[Object] = []
    async with following(client) as informer:
        history = History(
            client, informer.cache, STATEFUL_SETS, on_write=lambda _, body: written.append(body)
        )
        one, _ = await history.create(owner, DRAFT, 0)
        again, collisions = await history.create(owner, DRAFT, 0)
        await asyncio.sleep(1)
        claimed = await history.claim(owner, SELECTOR)
    assert one.metadata.uid == again.metadata.uid
    assert collisions == 0
    assert [each.metadata.name for each in claimed] == [f"web-{revision_hash(DATA, 0)}"]
    assert [body["metadata"]["uid"] for body in written] == [one.metadata.uid]
    assert len(await stored(client)) == 1


@virtual_time
async def test_a_name_that_other_data_has_is_passed_over_and_counted() -> None:
    client = connect(await start())
    owner = await make_set(client)
    await put(client, f"web-{revision_hash(DATA, 0)}", b'{"other":1}')
    async with following(client) as informer:
        made, collisions = await History(client, informer.cache, STATEFUL_SETS).create(owner, DRAFT, 0)
    assert collisions == 1
    assert made.metadata.name == f"web-{revision_hash(DATA, 1)}"
    assert len(await stored(client)) == 2


@virtual_time
async def test_an_owner_that_was_replaced_under_its_name_adopts_nothing() -> None:
    client = connect(await start())
    owner = await make_set(client)
    await client.delete(STATEFUL_SETS, "web", "default")
    await make_set(client)
    await put(client, "orphan", labels={"app": "web"})
    async with following(client) as informer:
        with pytest.raises(AdoptionRefusedError, match="is gone"):
            await History(client, informer.cache, STATEFUL_SETS).claim(owner, SELECTOR)
    assert "ownerReferences" not in (await stored(client))[0]["metadata"]


@virtual_time
async def test_a_revision_is_deleted_by_its_uid_and_one_that_is_gone_is_no_failure() -> None:
    client = connect(await start())
    owner = await make_set(client)
    async with following(client) as informer:
        history = History(client, informer.cache, STATEFUL_SETS)
        made, _ = await history.create(owner, DRAFT, 0)
        await history.delete(made)
        await history.delete(made)
        replaced, _ = await history.create(owner, DRAFT, 0)
        await history.delete(made)
        with pytest.raises(PodlifeError):
            await history.renumber(owner, made, 9)
    (found,) = await stored(client)
    assert found["metadata"]["uid"] == replaced.metadata.uid
    assert found["revision"] == 1


@virtual_time
async def test_a_server_gives_back_the_very_bytes_of_a_revision() -> None:
    """kube-controller-manager compares them, and writes JSON as Go does."""
    client = connect(await start())
    owner = await make_set(client)
    shell = {"name": "c", "image": "i", "command": ["sh", "-c", "a < b && echo \u2028ü > c"]}
    data = template_patch({**TEMPLATE, "spec": {"containers": [shell]}})
    async with following(client) as informer:
        made, _ = await History(client, informer.cache, STATEFUL_SETS).create(
            owner, RevisionDraft(data, 1), 0
        )
        await History(client, informer.cache, STATEFUL_SETS).renumber(owner, made, 2)
    for name in (made.metadata.name, ""):
        reply = await client.request("GET", CONTROLLER_REVISIONS.path("default", name))
        assert b'"data":' + data in reply.body

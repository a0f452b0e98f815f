"""`kill -9` of the whole server at any moment, with clients that write and watch over HTTPS.

After each restart on the same data: every acknowledged write is there and every acknowledged delete is gone,
revisions have not gone back, a watch goes on from the last event it has seen with every later one, once and in
order, and who the clients are has not changed. A few rounds on one folder; `make crash` asks for a hundred.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Awaitable, Iterable
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest

from tests.crash.server_clients import (
    KINDS,
    Change,
    Object,
    Seen,
    Watcher,
    Writer,
    change_of,
    create_definition,
    list_all,
    read_until,
)
from tests.kit.server_process import ServerProcess

ROUNDS = int(os.environ.get("PODLIFE_CRASH_ROUNDS", "4"))
WRITERS = 8
Standing = dict[tuple[str, str], Object]


@pytest.fixture
def server(tmp_path: Path) -> Iterable[ServerProcess]:
    server = ServerProcess(tmp_path)
    yield server
    if server.is_running:
        server.kill()


async def write_until_killed(
    server: ServerProcess, writers: list[Writer], watchers: list[Watcher], acknowledgements: int
) -> None:
    """Kill the server after so many acknowledgements, in the midst of whatever it is doing then."""
    told: asyncio.Queue[int] = asyncio.Queue()
    connected: asyncio.Queue[str] = asyncio.Queue()
    async with server.session(seconds=None) as session, asyncio.timeout(300):
        watching = [_until_gone(watcher.follow(session, connected)) for watcher in watchers]
        async with asyncio.TaskGroup() as group:
            for follow in watching:
                group.create_task(follow)
            for _ in watchers:
                await connected.get()
            for writer in writers:
                group.create_task(_until_gone(writer.write(session, told)))
            for _ in range(acknowledgements):
                await told.get()
            server.kill()


async def _until_gone(work: Awaitable[object]) -> None:
    with suppress(aiohttp.ClientConnectionError, aiohttp.ClientPayloadError):
        await work


def verify_writes(writer: Writer, standing: Standing) -> None:
    """What stands is what was acknowledged last, or that and the one request that was on its way."""
    for key, last in writer.acknowledged.items():
        found = standing.get(key)
        if key == writer.in_flight:
            if found is not None:
                assert int(found["metadata"]["resourceVersion"]) >= last.revision
        elif last.is_gone:
            assert found is None, f"{key} was deleted, and is back"
        else:
            assert found is not None, f"{key} was acknowledged at {last.revision}, and is lost"
            assert change_of(found) == last


def take_over(writer: Writer, standing: Standing) -> None:
    """The request that was on its way has arrived or not: the writer goes on from what it finds."""
    key = writer.in_flight
    writer.in_flight = None
    if key is None:
        return
    found = standing.get(key)
    last = writer.acknowledged.get(key)
    if found is not None:
        writer.acknowledged[key] = change_of(found)
    elif last is not None:
        writer.acknowledged[key] = Change(last.uid, last.revision, is_gone=True)


async def verify_watch(session: aiohttp.ClientSession, watcher: Watcher, start: int) -> None:
    """Resumed where it was cut, the watch is the same as one that was never cut, and adds up to the list."""
    last = await _write_a_last_event(session, watcher.path)
    resumed = await read_until(session, watcher.path, watcher.revision, last)
    whole = await read_until(session, watcher.path, start, last)
    seen = [event for event in watcher.events if event.revision > start]
    assert seen + resumed == whole
    revisions = [event.revision for event in whole]
    assert revisions == sorted(set(revisions))
    watcher.events += resumed
    _, items = await list_all(session, watcher.path)
    assert _standing_after(watcher.events) == {
        name: (item["metadata"]["uid"], int(item["metadata"]["resourceVersion"]))
        for name, item in items.items()
    }


async def _write_a_last_event(session: aiohttp.ClientSession, path: str) -> int:
    """Something to wait for: a watch says nothing when there is nothing more to come."""
    kind = next(kind for kind in KINDS if kind.path.rpartition("/")[2] == path.rpartition("/")[2])
    async with session.post(kind.items, json=kind.object(generateName="last-")) as answer:
        assert answer.status == 201
        return change_of(await answer.json()).revision


def _standing_after(events: list[Seen]) -> dict[str, tuple[str, int]]:
    """What is there when all of this has happened; also holds that each event could happen at all."""
    standing: dict[str, tuple[str, int]] = {}
    for event in events:
        before = standing.pop(event.name, None)
        assert (before is None) == (event.type == "ADDED"), event
        assert before is None or before[0] == event.uid, event
        if event.type != "DELETED":
            standing[event.name] = (event.uid, event.revision)
    return standing


async def _added_before(session: aiohttp.ClientSession, path: str) -> list[Seen]:
    """What the server itself has written when it starts, as if the watch had seen it."""
    _, items = await list_all(session, path)
    changes = {name: change_of(item) for name, item in items.items()}
    return [Seen("ADDED", name, change.revision, change.uid) for name, change in changes.items()]


def identity_files(server: ServerProcess) -> dict[str, bytes]:
    names = ("admin.kubeconfig", "controllers.kubeconfig", "tokens.csv", "pki/ca.crt", "pki/ca.pem")
    return {name: (server.data / name).read_bytes() for name in names}


async def read_standing(session: aiohttp.ClientSession) -> tuple[int, Standing]:
    standing: Standing = {}
    revision = 0
    for kind in KINDS:
        revision, items = await list_all(session, kind.path)
        standing |= {(kind.path, name): item for name, item in items.items()}
    return revision, standing


async def test_nothing_acknowledged_or_shown_is_lost_when_the_server_is_killed(server: ServerProcess) -> None:
    chance = random.Random(20260102)
    writers = [Writer(number, random.Random(number)) for number in range(WRITERS)]
    server.start()
    identities = identity_files(server)
    async with server.session() as session:
        await create_definition(session)
        revision, _ = await read_standing(session)
        paths = [kind.path for kind in KINDS] + [KINDS[0].items]
        watchers = [Watcher(path, revision, await _added_before(session, path)) for path in paths]

    for number in range(ROUNDS):
        start = revision
        await write_until_killed(server, writers, watchers, acknowledgements=chance.randint(1, 400))
        if number % 4 == 3:
            # Killed once more, anywhere on its way up.
            server.begin()
            await asyncio.sleep(chance.random() * 0.8)
            server.kill()
        report = server.run("check")
        assert report.returncode == 0, report.stderr

        server.start()
        async with server.session() as session:
            revision, standing = await read_standing(session)
            promised = [change.revision for writer in writers for change in writer.acknowledged.values()]
            assert revision >= max(promised)
            assert revision >= max(watcher.revision for watcher in watchers)
            for writer in writers:
                verify_writes(writer, standing)
                take_over(writer, standing)
            for watcher in watchers:
                await verify_watch(session, watcher, start)
            revision, _ = await read_standing(session)
        assert identity_files(server) == identities
    figures = f"{ROUNDS} rounds, {sum(writer.promises for writer in writers)} acknowledged writes"
    print(figures)  # noqa: T201 - what `make crash` shows


async def test_killed_anywhere_in_its_first_start_the_next_one_serves(tmp_path: Path) -> None:
    chance = random.Random(20260103)
    for number in range(max(3, ROUNDS // 4)):
        server = ServerProcess(tmp_path / str(number))
        server.begin()
        await asyncio.sleep(chance.random())
        server.kill()
        server.start()
        try:
            async with server.session() as session:
                _, items = await list_all(session, "/api/v1/namespaces")
            assert "default" in items
        finally:
            server.kill()

"""`kill -9` at any moment: nothing acknowledged or shown is lost, revisions never go back, history is whole.

Five rounds on one folder; `PODLIFE_CRASH_ROUNDS` asks for more."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from podlife.apiserver.storage import Event, HistoryLimits, Key, SqliteStore
from podlife.apiserver.storage.maintenance import check

ROUNDS = int(os.environ.get("PODLIFE_CRASH_ROUNDS", "5"))
WRITER = Path(__file__).with_name("store_writer.py")
LIMITS = HistoryLimits(events=2_000)


@dataclass(frozen=True)
class Promise:
    kind: str
    key: Key
    revision: int
    deleted: bool


def write_until_killed(folder: Path, seed: int, acknowledgements: int) -> list[Promise]:
    """Everything the process promised before it was killed, somewhere after so many acknowledgements."""
    with subprocess.Popen(
        [sys.executable, str(WRITER), str(folder), str(seed)], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        lines: list[bytes] = []
        heard = 0
        while heard < acknowledgements:
            line = process.stdout.readline()
            assert line, "the writer ended by itself"
            lines.append(line)
            heard += line.startswith(b"A")
        process.kill()
        lines.extend(process.stdout.readlines())
    promises = []
    for line in lines:
        kind, resource, namespace, name, revision, deleted = line.decode().split()
        promises.append(Promise(kind, Key(resource, namespace, name), int(revision), deleted == "1"))
    return promises


async def history(store: SqliteStore, since: int) -> list[Event]:
    """Every event of both resources after a revision."""
    events: list[Event] = []
    for resource in ("pods", "leases"):
        subscription = store.subscribe(resource, since=since)
        while subscription.revision < store.revision:
            events.extend((await subscription.next()).events)
    return sorted(events, key=lambda event: event.revision)


def verify_promises(store: SqliteStore, promises: list[Promise], events: list[Event]) -> None:
    happened = {event.revision: event for event in events}
    for promise in promises:
        assert promise.revision <= store.revision
        if promise.revision > store.oldest:
            event = happened[promise.revision]
            assert (event.record.key, event.type == "DELETED") == (promise.key, promise.deleted)
    last = {promise.key: promise for promise in promises if promise.kind == "A"}
    for key, promise in last.items():
        later = [event for event in events if event.record.key == key and event.revision > promise.revision]
        record = store.get(key)
        if not later:
            assert (record is None) == promise.deleted
            assert record is None or record.revision == promise.revision
        elif later[-1].type == "DELETED":
            assert record is None
        else:
            assert record is later[-1].record


async def verify_history(store: SqliteStore, events: list[Event], chance: random.Random) -> None:
    revisions = [event.revision for event in events]
    assert revisions == list(range(store.oldest + 1, store.revision + 1))
    for since in {
        store.oldest,
        store.revision,
        *(chance.randint(store.oldest, store.revision) for _ in range(20)),
    }:
        resumed = await history(store, since)
        assert [event.revision for event in resumed] == list(range(since + 1, store.revision + 1))


async def test_nothing_promised_is_lost_when_the_process_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    chance = random.Random(20260101)
    revision = 0
    for seed in range(ROUNDS):
        promises = write_until_killed(folder, seed, acknowledgements=chance.randint(1, 600))
        report = check(folder)
        assert report.problems == ()

        store = await SqliteStore.open(folder, limits=LIMITS)
        assert store.revision >= max(promise.revision for promise in promises) > revision
        assert report.revision == store.revision
        revision = store.revision
        events = await history(store, store.oldest)
        verify_promises(store, promises, events)
        await verify_history(store, events, chance)
        await store.close()

"""A process that writes to a store until it is killed.

`python store_writer.py FOLDER SEED`. Twenty writers, each with keys of its own, make, change and remove objects;
a reader follows. What is acknowledged (`A`) or seen (`E`) is said on standard output at once, a line each:
what stands there was promised, and must be there however this process ends.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path

from podlife.apiserver.storage import Change, Delete, HistoryLimits, Key, Put, SqliteStore, writer

WRITERS = 20
KEYS_PER_WRITER = 4


def say(kind: str, key: Key, revision: int, deleted: bool) -> None:
    # One small write to a pipe is whole or not there.
    os.write(1, f"{kind} {key.resource} {key.namespace} {key.name} {revision} {int(deleted)}\n".encode())


def encode(size: int) -> Callable[[int], bytes]:
    return lambda revision: b'{"metadata":{"resourceVersion":"%d"},"x":"%s"}' % (revision, b"x" * size)


async def write(store: SqliteStore, number: int, chance: random.Random) -> None:
    while True:
        key = Key(
            chance.choice(["pods", "leases"]), "default", f"w{number}-{chance.randrange(KEYS_PER_WRITER)}"
        )
        record = store.get(key)
        expected = 0 if record is None else record.revision
        changes: list[Change] = [Put(key, encode(chance.choice([10, 500, 9_000])), expected)]
        if record is not None and chance.random() < 0.3:
            changes.append(Delete(key, encode(1), expected))
        done = await store.commit(*changes)
        say("A", key, done[-1].revision, len(changes) == 2)


async def follow(store: SqliteStore, resource: str) -> None:
    subscription = store.subscribe(resource, since=store.revision)
    while True:
        for event in (await subscription.next()).events:
            say("E", event.record.key, event.revision, event.type == "DELETED")


async def main(folder: Path, seed: int) -> None:
    # Compaction has its part in every round.
    writer.COMPACT_REVISIONS = 50
    store = await SqliteStore.open(folder, limits=HistoryLimits(events=2_000))
    async with asyncio.TaskGroup() as group:
        for resource in ("pods", "leases"):
            group.create_task(follow(store, resource))
        for number in range(WRITERS):
            group.create_task(write(store, number, random.Random(seed * 1_000 + number)))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))

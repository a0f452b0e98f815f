"""Damaged files: a store is refused in one clear line, or serves only what was written and names what it set aside.

Forty damages over four stores; `PODLIFE_DAMAGE_ROUNDS` asks for more.
"""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from pathlib import Path

import pytest

from podlife.apiserver.storage import SqliteStore
from podlife.apiserver.storage.maintenance import check
from podlife.errors import PodlifeError
from tests.crash.store_damage import DAMAGES, LIMITS, RESOURCES, Known, fill

ROUNDS = int(os.environ.get("PODLIFE_DAMAGE_ROUNDS", "40"))
ROUNDS_PER_STORE = 25


async def use(folder: Path, known: Known) -> tuple[str, list[str]]:
    """Open a store and hold everything that it serves against what was written. Returns why it was refused, empty if
    it was not, and what it has set aside."""
    try:
        store = await SqliteStore.open(folder, limits=LIMITS)
    except PodlifeError as error:
        return str(error), []
    try:
        assert store.revision == known.revision, "revisions have gone back, or on"
        found = {
            record.key: (record.revision, record.value)
            for resource in RESOURCES
            for record in store.list(resource)
        }
        for key, what in found.items():
            assert known.standing.get(key) == what, f"a wrong value is served for {key}"
        missing = known.standing.keys() - found.keys()
        set_aside = list(store.set_aside)
        assert {key.resource for key in missing} <= {"events"}
        assert all(any(key.name in title for title in set_aside) for key in missing), "lost without a word"
        await verify_history(store, known)
        return "", set_aside
    finally:
        await store.close()


async def verify_history(store: SqliteStore, known: Known) -> None:
    for resource in RESOURCES:
        subscription = store.subscribe(resource, since=store.oldest)
        while subscription.revision < store.revision:
            for event in (await subscription.next()).events:
                record = event.record
                assert known.changes[record.revision] == (record.key, event.type == "DELETED", record.value)


def checked(folder: Path) -> list[str]:
    """What `check` finds, in as many lines."""
    try:
        return list(check(folder).problems)
    except PodlifeError as error:
        return [str(error)]


async def one_round(folder: Path, known: Known, seed: int) -> str:
    """Damage a copy of a store and use it; says how it ended."""
    chance = random.Random(seed)
    damaged = folder / f"damaged-{seed}"
    shutil.copytree(folder / chance.choice(["killed", "killed", "closed"]), damaged)
    before = {file.name: file.read_bytes() for file in damaged.iterdir()}
    damage = chance.choice(DAMAGES)
    what = damage(damaged, chance)
    if {file.name: file.read_bytes() for file in damaged.iterdir()} == before:
        return "nothing changed"
    problems = checked(damaged)
    try:
        refusal, set_aside = await use(damaged, known)
    except Exception as error:
        raise AssertionError(f"seed {seed}, {what}: {error!r}") from error
    shutil.rmtree(damaged)
    if refusal or set_aside:
        assert problems, f"seed {seed}, {what}: {refusal or set_aside}, but check finds nothing"
    if refusal:
        assert "\n" not in refusal
        assert str(damaged) in refusal, "the message does not name the file"
        return "refused"
    if set_aside:
        return "set aside"
    return "found by check" if problems else "not visible"


async def test_a_damaged_store_is_refused_or_serves_only_what_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podlife.apiserver.storage.writer.COMPACT_REVISIONS", 50)
    ends: Counter[str] = Counter()
    for seed in range(ROUNDS):
        folder = tmp_path / str(seed // ROUNDS_PER_STORE)
        if seed % ROUNDS_PER_STORE == 0:
            folder.mkdir()
            known = await fill(folder, seed)
        ends[await one_round(folder, known, seed)] += 1
    print(f"{ROUNDS} damages: " + ", ".join(f"{count} {end}" for end, count in sorted(ends.items())))  # noqa: T201 - what `make crash` shows
    assert ends["refused"] > ROUNDS // 4

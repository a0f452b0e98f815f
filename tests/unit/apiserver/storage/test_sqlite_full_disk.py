"""A full disk: writes fail with a clear message, reads continue, and nothing is lost or half done."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from podlife.apiserver.storage import Put, SqliteStore, StoreError
from podlife.apiserver.storage.maintenance import check
from tests.conformance.storage.storage_kit import pod, start
from tests.unit.apiserver.storage.conftest import Gate
from tests.unit.apiserver.storage.stores import opened, value


@contextmanager
def no_file_may_grow_beyond(size: int) -> Iterator[None]:
    """Same effect as a full disk: the operating system rejects the process's writes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_writes_fail_clearly_reads_go_on_and_writing_resumes_when_there_is_room(folder: Path) -> None:
    async with opened(folder) as store:
        await store.commit(Put(pod("kept"), value(1000), 0))
        subscription = store.subscribe("pods", since=1)

        # No room for any of them: how many of them share a transaction is the scheduler's choice.
        with no_file_may_grow_beyond((folder / "store.db-wal").stat().st_size + 20_000):
            outcomes = await asyncio.gather(
                *(store.commit(Put(pod(f"p{i}"), value(50_000), 0)) for i in range(10)),
                return_exceptions=True,
            )
            refused = [outcome for outcome in outcomes if isinstance(outcome, StoreError)]
            assert len(refused) == 10
            assert str(refused[0]).startswith(f"the change could not be written to {folder}/store.db: ")
            assert store.revision == 1
            assert [record.key.name for record in store.list("pods")] == ["kept"]

        (record,) = await store.commit(Put(pod("p0"), value(50_000), 0))
        assert record.revision == 12, "the revisions that were refused are skipped, not used again"
        assert [event.revision for event in (await subscription.next()).events] == [12]

    report = check(folder)
    assert report.problems == ()
    assert (report.records, report.skipped) == (2, 10)
    async with opened(folder) as again:
        assert [r.key.name for r in again.list("pods")] == ["kept", "p0"]
        assert again.revision == 12


async def test_a_refused_commit_of_many_changes_leaves_none_of_them(folder: Path) -> None:
    async with opened(folder) as store:
        await store.commit(Put(pod("kept"), value(1000), 0))

        with (
            no_file_may_grow_beyond((folder / "store.db-wal").stat().st_size + 1_000_000),
            pytest.raises(StoreError, match="could not be written"),
        ):
            await store.commit(*(Put(pod(f"p{i:04}"), value(5_000), 0) for i in range(600)))
        assert store.count("pods") == 1
        await store.commit(*(Put(pod(f"p{i:04}"), value(5_000), 0) for i in range(600)))
        assert store.count("pods") == 601
    assert check(folder).problems == ()


async def test_commits_that_follow_a_refused_one_on_the_same_key_start_from_what_stands(
    store: SqliteStore, gate: Gate
) -> None:
    gate.shut()
    with no_file_may_grow_beyond(100_000):
        refused = start(store.commit(Put(pod("a"), value(200_000), 0)))
        await asyncio.to_thread(gate.arrived.wait, 60)
        follows = start(store.commit(Put(pod("a"), value(10), 0)))
        await asyncio.sleep(0)
        gate.open()
        with pytest.raises(StoreError):
            await refused
        (record,) = await follows
    assert record.revision == 2
    assert store.get(pod("a")) is record

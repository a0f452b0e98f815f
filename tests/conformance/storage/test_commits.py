"""What every store promises of a commit: whole or not at all, in order, seen by all, checked against what is."""

from __future__ import annotations

import asyncio

import pytest

from podlife.apiserver.storage import Delete, MismatchError, Put, Store, StoreError
from tests.conformance.storage.storage_kit import delete, held, pass_turns, pod, put, read, seen, start, text


async def test_an_empty_store_is_at_revision_zero_and_holds_nothing(store: Store) -> None:
    assert (store.revision, store.oldest) == (0, 0)
    assert store.get(pod("a")) is None
    assert list(store.list("pods")) == []
    assert store.count("pods") == 0


async def test_revisions_rise_by_one_for_each_change_of_any_resource(store: Store) -> None:
    first = await put(store, pod("a"))
    second = await put(store, pod("b")._replace(resource="leases"))
    third, fourth = await store.commit(Put(pod("c"), text("c"), 0), Put(pod("d"), text("d"), 0))
    fifth = await delete(store, pod("a"))

    assert [r.revision for r in (first, second, third, fourth, fifth)] == [1, 2, 3, 4, 5]
    assert store.revision == 5


async def test_a_value_is_written_with_its_own_revision_and_read_back_byte_for_byte(store: Store) -> None:
    await put(store, pod("a"))
    record = await put(store, pod("b"), "\N{SNOWMAN}\0")

    assert record.value == "\N{SNOWMAN}\0@2".encode()
    found = store.get(pod("b"))
    assert found is not None
    assert (found.key, found.revision, found.value) == (pod("b"), 2, record.value)


async def test_a_put_that_expects_nothing_is_refused_where_something_stands(store: Store) -> None:
    await put(store, pod("a"), "first")

    with pytest.raises(MismatchError, match="pods default/a is at revision 1, not absent"):
        await store.commit(Put(pod("a"), text("second"), 0))
    assert held(store, pod("a")).value == b"first@1"
    assert store.revision == 1


@pytest.mark.parametrize("change", [Put, Delete])
async def test_a_change_that_expects_an_older_revision_is_refused(store: Store, change: type) -> None:
    await put(store, pod("a"), "first")
    await put(store, pod("a"), "second")

    with pytest.raises(MismatchError):
        await store.commit(change(pod("a"), text("third"), 1))
    assert held(store, pod("a")).value == b"second@2"


@pytest.mark.parametrize("change", [Put(pod("a"), text("x"), 7), Delete(pod("a"), text("x"), 7)])
async def test_a_change_of_what_is_not_there_is_refused(store: Store, change: Put | Delete) -> None:
    with pytest.raises(MismatchError, match="is absent, not at revision 7"):
        await store.commit(change)
    assert store.revision == 0


async def test_deleting_what_was_never_there_is_refused(store: Store) -> None:
    with pytest.raises(MismatchError, match="nothing to delete"):
        await store.commit(Delete(pod("a"), text("x"), 0))


async def test_when_one_change_of_a_commit_is_refused_none_of_them_happens(store: Store) -> None:
    await put(store, pod("taken"))
    subscription = store.subscribe("pods", since=store.revision)

    with pytest.raises(MismatchError):
        await store.commit(Put(pod("new"), text("x"), 0), Put(pod("taken"), text("x"), 0))
    assert store.get(pod("new")) is None
    await put(store, pod("after"))
    assert [seen(event)[:3] for event in await read(subscription, 1)] == [("ADDED", "default/after", 2)]


async def test_when_an_encode_fails_nothing_happens_and_no_revision_is_lost(store: Store) -> None:
    def fail(revision: int) -> bytes:
        raise ValueError("cannot be written down")

    with pytest.raises(ValueError, match="cannot be written down"):
        await store.commit(Put(pod("a"), text("x"), 0), Put(pod("b"), fail, 0))
    assert store.count("pods") == 0
    assert (await put(store, pod("a"))).revision == 1


async def test_a_change_and_the_removal_of_one_key_in_one_commit_are_two_events(store: Store) -> None:
    before = await put(store, pod("a"), "running")
    subscription = store.subscribe("pods", since=before.revision)

    changed, removed = await store.commit(
        Put(pod("a"), text("terminating"), before.revision), Delete(pod("a"), text("last"), before.revision)
    )

    assert (changed.revision, removed.revision) == (2, 3)
    assert store.get(pod("a")) is None
    modified, deleted = await read(subscription, 2)
    assert seen(modified) == ("MODIFIED", "default/a", 2, b"terminating@2")
    assert modified.previous is not None
    assert modified.previous.value == b"running@1"
    assert seen(deleted) == ("DELETED", "default/a", 3, b"last@3")
    assert deleted.previous is modified.record


async def test_an_object_made_and_removed_in_one_commit_leaves_two_events_and_no_object(store: Store) -> None:
    subscription = store.subscribe("pods", since=0)
    await store.commit(Put(pod("a"), text("x"), 0), Delete(pod("a"), text("x"), 0))

    assert [event.type.value for event in await read(subscription, 2)] == ["ADDED", "DELETED"]
    assert store.get(pod("a")) is None
    assert store.count("pods") == 0


async def test_a_name_can_be_used_again_after_its_removal(store: Store) -> None:
    await put(store, pod("a"), "first")
    await delete(store, pod("a"))
    await put(store, pod("a"), "second")

    (event,) = await read(store.subscribe("pods", since=2), 1)
    assert seen(event) == ("ADDED", "default/a", 3, b"second@3")
    assert event.previous is None


async def test_a_commit_of_nothing_changes_nothing(store: Store) -> None:
    assert list(await store.commit()) == []
    assert store.revision == 0


async def test_of_many_who_expect_the_same_revision_exactly_one_wins(store: Store) -> None:
    await put(store, pod("a"), "start")
    outcomes = await asyncio.gather(
        *(store.commit(Put(pod("a"), text(f"writer-{i}"), 1)) for i in range(20)), return_exceptions=True
    )

    winners = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
    assert len(winners) == 1
    assert all(isinstance(o, MismatchError) for o in outcomes if isinstance(o, BaseException))
    assert store.get(pod("a")) is winners[0][0]
    assert store.revision == 2


async def test_concurrent_commits_of_different_keys_all_happen_each_with_its_own_revision(
    store: Store,
) -> None:
    results = await asyncio.gather(*(put(store, pod(f"p{i:03}")) for i in range(300)))

    assert sorted(record.revision for record in results) == list(range(1, 301))
    assert [record.key.name for record in store.list("pods")] == [f"p{i:03}" for i in range(300)]
    events = await read(store.subscribe("pods", since=0), 300)
    assert [event.revision for event in events] == list(range(1, 301))


async def test_a_commit_with_very_many_changes_happens_as_one(store: Store) -> None:
    records = await store.commit(*(Put(pod(f"p{i:04}"), text("x"), 0) for i in range(1500)))

    assert [record.revision for record in records] == list(range(1, 1501))
    assert store.count("pods") == 1500
    assert store.revision == 1500


async def test_a_commit_whose_caller_is_cancelled_is_finished(store: Store) -> None:
    task = start(store.commit(Put(pod("a"), text("x"), 0)))
    await pass_turns(1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert await store.wait_for_revision(1, seconds=60)
    assert held(store, pod("a")).value == b"x@1"
    assert (await put(store, pod("a"), "y")).revision == 2


async def test_what_was_begun_before_a_close_is_finished_and_what_comes_after_is_refused(
    store: Store,
) -> None:
    commits = [start(put(store, pod(f"p{i}"))) for i in range(10)]
    await pass_turns(1)
    await store.close()

    assert [record.revision for record in await asyncio.gather(*commits)] == list(range(1, 11))
    assert store.count("pods") == 10
    with pytest.raises(StoreError, match="closed"):
        await put(store, pod("late"))
    with pytest.raises(StoreError, match="closed"):
        store.subscribe("pods", since=0)


async def test_a_store_can_be_closed_twice(store: Store) -> None:
    await store.close()
    await store.close()


async def test_waiting_for_a_revision_ends_when_it_is_reached(store: Store) -> None:
    waiting = start(store.wait_for_revision(2, seconds=60))
    await put(store, pod("a"))
    await pass_turns()
    assert not waiting.done()
    await put(store, pod("b"))

    assert await waiting is True
    assert await store.wait_for_revision(1, seconds=0) is True


async def test_waiting_for_a_revision_that_does_not_come_ends_in_time(store: Store) -> None:
    assert await store.wait_for_revision(1, seconds=0) is False


async def test_a_commit_without_changes_waits_for_those_before_it_and_writes_nothing(store: Store) -> None:
    async with asyncio.TaskGroup() as group:
        for name in ("a", "b", "c"):
            group.create_task(put(store, pod(name)))
        await asyncio.sleep(0)

        assert list(await store.commit()) == []
        assert [record.key.name for record in store.list("pods")] == ["a", "b", "c"]
    assert store.revision == 3

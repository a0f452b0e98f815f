"""What every store promises a subscriber: every later change, once, in order, or to be told what was missed."""

from __future__ import annotations

import asyncio

import pytest

from podlife.apiserver.storage import CompactedError, HistoryLimits, Key, Store, StoreError
from tests.conformance.storage.conftest import OpenStore
from tests.conformance.storage.storage_kit import (
    delete,
    held,
    next_batch,
    pass_turns,
    pod,
    put,
    read,
    seen,
    start,
)
from tests.kit.moved_time import pass_time

NODE = Key("nodes", "", "n")


async def test_a_subscriber_sees_every_later_change_of_its_resource_and_no_other(store: Store) -> None:
    await put(store, pod("before"))
    subscription = store.subscribe("pods", since=store.revision)
    await put(store, pod("a"), "one")
    await put(store, NODE)
    await put(store, pod("a"), "two")
    await delete(store, pod("a"))

    assert [seen(event) for event in await read(subscription, 3)] == [
        ("ADDED", "default/a", 2, b"one@2"),
        ("MODIFIED", "default/a", 4, b"two@4"),
        ("DELETED", "default/a", 5, b"gone@5"),
    ]


async def test_a_subscriber_may_start_anywhere_in_the_history(store: Store) -> None:
    for i in range(5):
        await put(store, pod(f"p{i}"))

    for since in range(5):
        events = await read(store.subscribe("pods", since=since), 5 - since)
        assert [event.revision for event in events] == list(range(since + 1, 6))


async def test_when_an_event_is_seen_the_store_already_shows_it(store: Store) -> None:
    subscription = store.subscribe("pods", since=0)
    waiting = start(next_batch(subscription))
    await pass_turns(1)
    writing = start(put(store, pod("a")))
    batch = await waiting

    assert store.get(pod("a")) is batch.events[0].record
    assert store.revision == 1
    await writing


async def test_subscribers_at_the_same_place_share_one_batch(store: Store) -> None:
    early = [store.subscribe("pods", since=0) for _ in range(3)]
    waiting = [start(next_batch(subscription)) for subscription in early]
    await pass_turns(1)
    await put(store, pod("a"))

    batches = await asyncio.gather(*waiting)
    assert all(batch is batches[0] for batch in batches)
    late = await next_batch(store.subscribe("pods", since=0))
    assert late is batches[0]


async def test_a_cancelled_wait_loses_nothing(store: Store) -> None:
    subscription = store.subscribe("pods", since=0)
    waiting = start(subscription.next())
    await pass_turns(1)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await put(store, pod("a"))

    assert [event.revision for event in await read(subscription, 1)] == [1]


async def test_a_wait_cancelled_in_the_moment_of_the_event_loses_nothing(store: Store) -> None:
    subscription = store.subscribe("pods", since=0)
    trigger = store.subscribe("pods", since=0)

    async def cancel_when_it_comes() -> None:
        await trigger.next()
        waiting.cancel()

    # Woken first, so that it cancels the other between its wake-up and its turn.
    first = start(cancel_when_it_comes())
    await pass_turns(1)
    waiting = start(subscription.next())
    await pass_turns(1)
    await put(store, pod("a"))
    await asyncio.gather(first, waiting, return_exceptions=True)

    assert waiting.cancelled()
    assert [event.revision for event in await read(subscription, 1)] == [1]


async def test_who_is_far_behind_catches_up_in_bounded_batches(store: Store) -> None:
    for first in range(0, 2500, 250):
        await asyncio.gather(*(put(store, pod(f"p{i:04}")) for i in range(first, first + 250)))
    subscription = store.subscribe("pods", since=0)
    sizes = [len((await next_batch(subscription)).events) for _ in range(3)]

    assert sizes == [1000, 1000, 500]


async def test_a_batch_is_bounded_in_bytes_but_never_empty(store: Store) -> None:
    for content in ("a" * 700_000, "b" * 700_000, "c" * 3_000_000, "d"):
        await put(store, pod("large"), content)
    subscription = store.subscribe("pods", since=0)

    batches = [(await next_batch(subscription)).events for _ in range(4)]
    assert [[event.revision for event in batch] for batch in batches] == [[1], [2], [3], [4]]


async def test_a_subscription_says_how_far_it_has_come(store: Store) -> None:
    await put(store, pod("a"))
    subscription = store.subscribe("pods", since=0)
    assert subscription.revision == 0
    await subscription.next()
    assert subscription.revision == 1

    await put(store, NODE)
    assert subscription.revision == 2, "nothing of pods is missing up to here, though others changed"
    await put(store, pod("b"))
    assert subscription.revision == 1


async def test_a_subscription_may_start_at_a_revision_still_to_come(store: Store) -> None:
    subscription = store.subscribe("pods", since=2)
    for name in ("a", "b", "c"):
        await put(store, pod(name))

    assert [event.revision for event in await read(subscription, 1)] == [3]
    assert subscription.revision == 3


async def test_who_falls_out_of_history_is_told(open_store: OpenStore) -> None:
    store = await open_store(HistoryLimits(events=4))
    subscription = store.subscribe("pods", since=0)
    await put(store, pod("a"))
    await read(subscription, 1)
    for _ in range(9):
        await put(store, pod("a"))

    with pytest.raises(CompactedError) as told:
        await subscription.next()
    assert (told.value.revision, told.value.oldest) == (1, store.oldest)
    assert [e.revision for e in await read(store.subscribe("pods", since=store.oldest), 4)] == [7, 8, 9, 10]


async def test_who_missed_nothing_is_not_thrown_out_because_others_changed_much(
    open_store: OpenStore,
) -> None:
    store = await open_store(HistoryLimits(events=4))
    subscription = store.subscribe("nodes", since=0)
    for _ in range(20):
        await put(store, pod("a"))
    await put(store, NODE)

    assert [event.revision for event in await read(subscription, 1)] == [21]


async def test_starting_before_the_oldest_revision_is_refused(open_store: OpenStore) -> None:
    store = await open_store(HistoryLimits(events=4))
    for _ in range(10):
        await put(store, pod("a"))

    with pytest.raises(CompactedError) as refusal:
        store.subscribe("pods", since=store.oldest - 1)
    assert refusal.value.oldest == store.oldest


async def test_history_is_bounded_by_count_across_resources_the_oldest_goes_first(
    open_store: OpenStore,
) -> None:
    store = await open_store(HistoryLimits(events=100))
    for i in range(500):
        await put(store, pod("a") if i % 2 else NODE)
        kept = store.revision - store.oldest
        assert kept <= 100
        assert kept >= min(i + 1, 80)

    kept_of_pods = [revision for revision in range(store.oldest + 1, 501) if revision % 2 == 0]
    events = await read(store.subscribe("pods", since=store.oldest), len(kept_of_pods))
    assert [event.revision for event in events] == kept_of_pods


async def test_history_is_bounded_by_the_size_of_its_values(open_store: OpenStore) -> None:
    store = await open_store(HistoryLimits(value_bytes=100_000))
    for _ in range(50):
        await put(store, pod("a"), "v" * 10_000)
        assert store.revision - store.oldest <= 9

    assert store.revision - store.oldest >= 7


async def test_history_is_bounded_by_age(open_store: OpenStore) -> None:
    store = await open_store(HistoryLimits(seconds=600))
    await put(store, pod("a"))
    pass_time(400)
    await put(store, pod("a"))
    assert store.oldest == 0
    pass_time(201)
    assert store.oldest == 1
    with pytest.raises(CompactedError):
        store.subscribe("pods", since=0)
    with pytest.raises(CompactedError):
        store.list("pods", revision=0)
    pass_time(400)
    assert store.oldest == 2
    assert held(store, pod("a")).revision == 2, "the object itself is never too old"


async def test_a_closed_subscription_ends_its_wait(store: Store) -> None:
    subscription = store.subscribe("pods", since=0)
    waiting = start(subscription.next())
    await pass_turns(1)
    subscription.close()

    with pytest.raises(StoreError, match="closed"):
        await waiting
    with pytest.raises(StoreError, match="closed"):
        await subscription.next()


async def test_closing_the_store_ends_every_subscription(store: Store) -> None:
    waiting = [start(store.subscribe("pods", since=0).next()) for _ in range(3)]
    revision = start(store.wait_for_revision(9, seconds=60))
    await pass_turns(1)
    await store.close()

    ended = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(end) for end in ended] == [StoreError] * 3
    assert await revision is False

"""What every store promises of a list: the order of paths, one namespace or all, now or as it was."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from podlife.apiserver.storage import CompactedError, HistoryLimits, Key, Record, Store, StoreError
from tests.conformance.storage.conftest import OpenStore
from tests.conformance.storage.storage_kit import delete, pod, put


def paths(records: Iterable[Record]) -> list[str]:
    return [record.key.path for record in records]


async def test_a_list_is_in_the_order_of_paths_whatever_the_order_of_writing(store: Store) -> None:
    for namespace, name in (("b", "a"), ("a", "z"), ("a-b", "m"), ("a", "b-1"), ("a", "b"), ("ab", "a")):
        await put(store, pod(name, namespace))

    assert paths(store.list("pods")) == ["a-b/m", "a/b", "a/b-1", "a/z", "ab/a", "b/a"]


async def test_a_list_of_one_namespace_holds_nothing_of_its_neighbours(store: Store) -> None:
    for namespace in ("a", "a-b", "a.b", "a0", "aa", "b"):
        await put(store, pod("x", namespace))

    assert paths(store.list("pods", "a")) == ["a/x"]
    assert paths(store.list("pods", "a-b")) == ["a-b/x"]
    assert paths(store.list("pods", "nobody")) == []


async def test_objects_without_a_namespace_are_listed_by_name(store: Store) -> None:
    for name in ("node-2", "node-10", "node-1"):
        await put(store, Key("nodes", "", name))

    assert paths(store.list("nodes")) == ["node-1", "node-10", "node-2"]
    assert store.count("nodes") == 3
    assert store.count("pods") == 0


async def test_a_list_that_was_handed_out_does_not_change_afterwards(store: Store) -> None:
    await put(store, pod("a"))
    listed = store.list("pods")
    await put(store, pod("b"))
    await delete(store, pod("a"))

    assert paths(listed) == ["default/a"]
    assert paths(store.list("pods")) == ["default/b"]


async def test_a_list_at_a_revision_is_what_stood_there_then(store: Store) -> None:
    async def write() -> None:
        await put(store, pod("b"), "one")
        await put(store, pod("a", "other"), "two")
        await put(store, pod("b"), "three")
        await delete(store, pod("a", "other"))
        await put(store, pod("a"), "five")
        await delete(store, pod("b"))
        await put(store, pod("b"), "seven")

    def at(revision: int, namespace: str = "") -> list[bytes]:
        return [record.value for record in store.list("pods", namespace, revision=revision)]

    await write()
    assert at(0) == []
    assert at(1) == [b"one@1"]
    assert at(2) == [b"one@1", b"two@2"]
    assert at(3) == [b"three@3", b"two@2"]
    assert at(4) == [b"three@3"]
    assert at(5) == [b"five@5", b"three@3"]
    assert at(6) == [b"five@5"]
    assert at(7) == [b"five@5", b"seven@7"]
    assert at(2, "other") == [b"two@2"]
    assert at(3, "default") == [b"three@3"]
    assert at(7, "other") == []


async def test_a_list_at_a_revision_in_which_only_others_changed_is_todays(store: Store) -> None:
    await put(store, pod("a"))
    await put(store, Key("leases", "kube-node-lease", "n"))
    await put(store, Key("leases", "kube-node-lease", "n"))

    assert paths(store.list("pods", revision=1)) == ["default/a"]
    assert paths(store.list("pods", revision=2)) == ["default/a"]
    assert list(store.list("secrets", revision=2)) == []


async def test_a_list_at_a_compacted_revision_is_refused_with_the_oldest_one(open_store: OpenStore) -> None:
    store = await open_store(HistoryLimits(events=4))
    for _ in range(10):
        await put(store, pod("a"))

    assert store.oldest == 6
    assert paths(store.list("pods", revision=6)) == ["default/a"]
    with pytest.raises(CompactedError) as refusal:
        store.list("pods", revision=5)
    assert (refusal.value.revision, refusal.value.oldest) == (5, 6)


async def test_a_list_at_a_revision_still_to_come_is_refused(store: Store) -> None:
    await put(store, pod("a"))
    with pytest.raises(StoreError, match="revision 2 has not been reached"):
        store.list("pods", revision=2)

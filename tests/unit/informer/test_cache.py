"""The core of an informer, event by event."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from podlife.api.views import Metadata
from podlife.client import Bookmark, EventType, WatchEvent
from podlife.informer import Added, Cache, Deleted, Updated


class Thing(msgspec.Struct):
    metadata: Metadata
    owners: tuple[str, ...] = ()


def thing(name: str, revision: int | str, *owners: str, uid: str = "u") -> Thing:
    return Thing(Metadata(name=name, namespace="ns", uid=uid, resource_version=str(revision)), owners)


def event(type_: str, obj: Thing) -> WatchEvent[Thing]:
    return WatchEvent(EventType(type_), obj, obj.metadata.resource_version)


def listed(obj: Thing) -> WatchEvent[Thing]:
    return WatchEvent(EventType.ADDED, obj, "")


def synced(revision: int | str) -> Bookmark:
    return Bookmark(str(revision), is_synced=True)


def by_owner(obj: Thing) -> Iterable[str]:
    return obj.owners


def cache_of(*things: Thing, revision: int | str = 10) -> Cache[Thing]:
    cache = Cache({"owner": by_owner})
    fill(cache, *things, revision=revision)
    return cache


def fill(cache: Cache[Thing], *things: Thing, revision: int | str) -> list[Any]:
    cache.begin_list()
    told = [note for obj in things for note in cache.apply(listed(obj))]
    return [*told, *cache.apply(synced(revision))]


def test_a_list_into_nothing_is_all_additions() -> None:
    cache: Cache[Thing] = Cache()
    a, b = thing("a", 1), thing("b", 2)
    assert fill(cache, a, b, revision=10) == [Added(a), Added(b)]
    assert cache.list() == (a, b)
    assert len(cache) == 2
    assert cache.get("ns", "a") is a
    assert cache.get("other", "a") is None
    assert cache.revision == 10


def test_a_second_list_tells_the_difference_and_what_has_gone_in_the_order_it_came() -> None:
    a, b, c, d = (thing(name, 1) for name in "abcd")
    cache = cache_of(d, a, b, c)
    new_b = thing("b", 15)
    assert fill(cache, new_b, thing("c", 1), revision=20) == [Updated(b, new_b), Deleted(d), Deleted(a)]
    assert cache.get("ns", "c") is c


def test_changes_that_come_while_a_streamed_list_is_not_whole_count() -> None:
    a, b = thing("a", 1), thing("b", 1)
    cache = cache_of(a, b)
    cache.begin_list()
    cache.apply(listed(a))
    cache.apply(listed(b))
    assert cache.apply(WatchEvent(EventType.DELETED, thing("a", 12), "")) == (Deleted(thing("a", 12)),)
    new_b = thing("b", 13)
    assert cache.apply(WatchEvent(EventType.MODIFIED, new_b, "")) == (Updated(b, new_b),)
    assert cache.apply(synced(13)) == []
    assert cache.list() == (new_b,)


def test_a_list_may_take_an_object_back_since_a_server_may_have_been_restored() -> None:
    new, old = thing("a", 100), thing("a", 50)
    cache = cache_of(new, revision=100)
    assert fill(cache, old, revision=60) == [Updated(new, old)]
    later = thing("a", 61)
    assert cache.apply(event("MODIFIED", later)) == (Updated(old, later),)


def test_a_watch_never_takes_an_object_back() -> None:
    cache = cache_of(thing("a", 5))
    new = thing("a", 12)
    cache.apply(event("MODIFIED", new))
    for late in (event("MODIFIED", thing("a", 11)), event("DELETED", thing("a", 11))):
        assert cache.apply(late) == ()
    assert cache.apply(event("ADDED", thing("b", 11))) == ()
    assert cache.list() == (new,)
    assert cache.stale_events == 3


def test_the_same_state_again_tells_nothing() -> None:
    a = thing("a", 12)
    cache = cache_of()
    assert cache.apply(event("ADDED", a)) == (Added(a),)
    assert cache.apply(event("ADDED", thing("a", 12))) == ()
    assert cache.apply(event("MODIFIED", thing("a", 12))) == ()
    assert cache.get("ns", "a") is a


def test_what_the_server_calls_it_does_not_matter() -> None:
    cache = cache_of()
    a, b = thing("a", 11), thing("a", 12)
    assert cache.apply(event("MODIFIED", a)) == (Added(a),)
    assert cache.apply(event("ADDED", b)) == (Updated(a, b),)
    assert cache.apply(event("DELETED", thing("unknown", 13))) == ()


def test_another_uid_is_a_deletion_and_an_addition() -> None:
    old = thing("a", 5, uid="old")
    cache = cache_of(old)
    new = thing("a", 12, uid="new")
    assert cache.apply(event("ADDED", new)) == (Deleted(old), Added(new))
    newest = thing("a", 15, uid="newest")
    assert fill(cache, newest, revision=20) == [Deleted(new), Added(newest)]


def test_a_deletion_tells_the_last_state_of_the_object_that_was_known() -> None:
    cache = cache_of(thing("a", 5), b := thing("b", 6, uid="old"))
    last = thing("a", 12)
    assert cache.apply(event("DELETED", last)) == (Deleted(last),)
    assert cache.apply(event("DELETED", thing("b", 13, uid="never seen"))) == (Deleted(b),)


def test_where_revisions_are_no_numbers_everything_is_taken_as_it_comes() -> None:
    cache = cache_of(thing("a", "x9"), revision="x9")
    first = thing("a", "x2")
    assert cache.apply(event("MODIFIED", first)) == (Updated(thing("a", "x9"), first),)
    assert cache.apply(event("MODIFIED", thing("a", "x2"))) == ()
    unversioned = thing("a", "")
    assert cache.apply(event("MODIFIED", unversioned)) == (Updated(first, unversioned),)
    assert cache.apply(event("MODIFIED", thing("a", ""))) == (Updated(unversioned, unversioned),)


def test_a_bookmark_moves_forward_and_one_that_is_late_does_not_move_back() -> None:
    cache = cache_of(revision=10)
    assert cache.apply(Bookmark("30")) == ()
    assert cache.apply(Bookmark("20")) == ()
    assert cache.apply(synced(25)) == ()
    assert cache.revision == 30
    assert cache.apply(event("ADDED", thing("a", 29))) == ()


def test_an_object_that_goes_and_cannot_be_read_goes() -> None:
    a = thing("a", 5, "x")
    cache = cache_of(a)
    assert cache.drop("ns", "a", "9") == ()
    assert cache.drop("ns", "unknown", "11") == ()
    assert cache.drop("ns", "a", "12") == (Deleted(a),)
    assert cache.by_index("owner", "x") == ()


def test_an_index_that_nobody_asked_for_is_an_error() -> None:
    with pytest.raises(KeyError, match="node"):
        cache_of().by_index("node", "x")


def test_what_was_handed_out_stays_as_it_is() -> None:
    cache = cache_of(a := thing("a", 1, "x"))
    before, owned = cache.list(), cache.by_index("owner", "x")
    cache.apply(event("DELETED", thing("a", 11)))
    assert before == owned == (a,)


def test_an_indexer_that_fails_leaves_cache_and_indexes_as_they_were() -> None:
    def picky(obj: Thing) -> Iterable[str]:
        return [obj.owners[0]]

    cache: Cache[Thing] = Cache({"all": by_owner, "first": picky})
    fill(cache, a := thing("a", 1, "x"), revision=10)
    with pytest.raises(IndexError):
        cache.apply(event("MODIFIED", thing("a", 11)))
    assert cache.list() == cache.by_index("all", "x") == cache.by_index("first", "x") == (a,)

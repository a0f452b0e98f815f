"""Owners that are known to be gone."""

from __future__ import annotations

from podlife.ownergc.absent_owner_cache import AbsentOwnerCache
from podlife.ownergc.views import PartialOwnerReference


def to(uid: str) -> PartialOwnerReference:
    return PartialOwnerReference("v1", "ConfigMap", "owner", uid)


def test_an_owner_is_absent_where_it_was_looked_for_and_nowhere_else() -> None:
    absent = AbsentOwnerCache()
    absent.add(to("u").identity("ns"))
    assert absent.has(to("u"), "ns")
    assert not absent.has(to("u"), "other")
    assert not absent.has(to("v"), "ns")


def test_one_without_a_namespace_is_absent_for_everybody() -> None:
    absent = AbsentOwnerCache()
    absent.add(to("u").identity(""))
    assert absent.has(to("u"), "ns")
    assert absent.has(to("u"), "")


def test_what_is_seen_again_is_absent_no_more() -> None:
    absent = AbsentOwnerCache()
    absent.add(to("u").identity("ns"))
    absent.discard(to("u").identity("ns"))
    absent.discard(to("v").identity("ns"))
    assert not absent.has(to("u"), "ns")


def test_what_was_used_longest_ago_is_forgotten_first() -> None:
    absent = AbsentOwnerCache(most=2)
    for uid in ("a", "b"):
        absent.add(to(uid).identity("ns"))
    assert absent.has(to("a"), "ns")
    absent.add(to("c").identity("ns"))
    assert [absent.has(to(uid), "ns") for uid in ("a", "b", "c")] == [True, False, True]
    assert len(absent) == 2

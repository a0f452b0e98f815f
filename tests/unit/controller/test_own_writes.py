"""A key waits until the caches have come as far as what was written for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from podlife.client import PODS, REPLICA_SETS
from podlife.controller import OwnWrites
from podlife.informer.informer import Stats

KEY = ("default", "web")


@dataclass
class Followed:
    revision: int = 0
    stats: Stats = field(default_factory=lambda: Stats(lists=1))


def written(revision: object) -> dict[str, Any]:
    return {"metadata": {"resourceVersion": revision}}


def test_nothing_written_is_nothing_to_wait_for() -> None:
    assert OwnWrites({PODS: Followed()}).is_seen(KEY)


def test_a_write_is_seen_when_the_cache_has_come_so_far() -> None:
    pods = Followed(10)
    writes = OwnWrites({PODS: pods})
    writes.note(KEY, PODS, written("12"))
    for revision, is_seen in ((11, False), (0, False), (12, True), (11, True)):
        pods.revision = revision
        # What was seen once is not waited for again, even if a cache begins anew.
        assert writes.is_seen(KEY) == is_seen


def test_a_write_is_in_every_list_begun_after_it_though_the_server_counts_anew() -> None:
    pods = Followed(10)
    writes = OwnWrites({PODS: pods})
    pods.stats.lists, pods.revision = 2, 0
    # A list was under way when it was written, and may have been made before it.
    writes.note(KEY, PODS, written("12"))
    pods.revision = 11
    assert not writes.is_seen(KEY)
    pods.stats.lists, pods.revision = 3, 0
    assert not writes.is_seen(KEY)
    pods.revision = 4
    assert writes.is_seen(KEY)


def test_of_several_writes_the_newest_counts_and_of_several_caches_all() -> None:
    pods, sets = Followed(5), Followed(9)
    writes = OwnWrites({PODS: pods, REPLICA_SETS: sets})
    writes.note(KEY, PODS, written("7"))
    writes.note(KEY, PODS, written("6"))
    writes.note(KEY, REPLICA_SETS, written("9"))
    pods.revision = 6
    assert not writes.is_seen(KEY)
    pods.revision = 7
    sets.revision = 8
    assert not writes.is_seen(KEY)
    sets.revision = 9
    assert writes.is_seen(KEY)


def test_keys_do_not_wait_for_each_other_and_one_that_is_forgotten_for_nothing() -> None:
    writes = OwnWrites({PODS: Followed(1)})
    writes.note(KEY, PODS, written("2"))
    assert writes.is_seen(("default", "other"))
    writes.forget(KEY)
    assert writes.is_seen(KEY)


def test_what_cannot_be_compared_is_not_waited_for() -> None:
    writes = OwnWrites({PODS: Followed(1)})
    writes.note(KEY, REPLICA_SETS, written("2"))
    writes.note(KEY, PODS, written("opaque"))
    writes.note(KEY, PODS, {})
    assert writes.is_seen(KEY)

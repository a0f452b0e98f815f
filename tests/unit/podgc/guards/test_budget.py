"""What the book of deletions answers, one promise at a time."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest

from podlife.podgc.guards.budget import DeletionBudget, Moment
from podlife.podgc.namespace_annotations import EVERYWHERE, GuardAnnotations
from podlife.podgc.plan import CLUSTER, Guard
from podlife.podgc.policy.model import Guards, Window
from podlife.podgc.views import Pod, PodMetadata

START = datetime(2030, 1, 1, tzinfo=UTC)
NIGHT = (Window(start=time(22), end=time(23)),)


def at(seconds: float = 0.0) -> Moment:
    return Moment(seconds, START + timedelta(seconds=seconds))


def book(pods: dict[str, int] | None = None, *, is_forced: bool = False, **guards: Any) -> DeletionBudget:
    made = DeletionBudget(Guards(**{"share_at_least": 0, **guards}), is_forced=is_forced)
    made.begin_pass(pods or {"a": 10, "b": 10})
    return made


def ask(book: DeletionBudget, uid: str, place: str = "a", moment: Moment | None = None) -> Guard | None:
    refusal = book.admit(Pod(PodMetadata(name=uid, namespace=place, uid=uid)), moment or at())
    return None if refusal is None else refusal.guard


def let_go(book: DeletionBudget, count: int, place: str = "a", moment: Moment | None = None) -> list[str]:
    """So many are deleted, and answered at once."""
    uids = [f"{place}-{number}" for number in range(count)]
    for uid in uids:
        assert ask(book, uid, place, moment) is None
        book.note_deleted(uid, moment or at())
    return uids


# In a minute


def test_one_under_way_counts_until_a_minute_after_its_answer() -> None:
    guarded = book(per_minute=1)
    assert ask(guarded, "slow") is None
    assert ask(guarded, "slow", moment=at(400)) is None
    assert ask(guarded, "other", moment=at(500)) is Guard.PER_MINUTE
    guarded.note_deleted("slow", at(600))
    assert guarded.next_room_at(at(600)) == 660
    assert ask(guarded, "other", moment=at(659.9)) is Guard.PER_MINUTE
    assert ask(guarded, "other", moment=at(660)) is None


def test_one_that_did_not_happen_counts_nowhere() -> None:
    guarded = book(per_minute=1, per_pass=1, share_of_namespace=0.1)
    assert ask(guarded, "refused") is None
    guarded.note_not_deleted("refused")
    assert not guarded.has_admitted("refused")
    assert ask(guarded, "other") is None


def test_room_comes_when_as_many_are_old_enough_as_a_lower_bound_asks_for() -> None:
    guarded = book(per_minute=3)
    for number in range(3):
        assert ask(guarded, str(number)) is None
        guarded.note_deleted(str(number), at(number))
    guarded.replace(Guards(per_minute=1))
    assert guarded.next_room_at(at(10)) == 62
    assert ask(guarded, "next", moment=at(61.9)) is Guard.PER_MINUTE
    assert ask(guarded, "next", moment=at(62)) is None


def test_a_bound_of_the_minute_that_comes_later_knows_the_last_minute_and_nothing_older_is_kept() -> None:
    guarded = book()
    for number in range(1000):
        let_go(guarded, 1, moment=at(number))
    assert len(guarded._answered) <= 61
    guarded.replace(Guards(per_minute=59))
    assert ask(guarded, "next", moment=at(1000)) is Guard.PER_MINUTE


# In a pass


def test_one_under_way_counts_in_every_pass_that_it_touches() -> None:
    guarded = book(per_pass=1)
    assert ask(guarded, "slow") is None
    guarded.begin_pass({"a": 10})
    assert ask(guarded, "other") is Guard.PER_PASS
    guarded.note_deleted("slow", at())
    assert ask(guarded, "other") is Guard.PER_PASS
    guarded.begin_pass({"a": 10})
    assert ask(guarded, "other") is None


def test_one_that_is_tried_again_in_the_same_pass_is_still_one() -> None:
    guarded = book(per_pass=2, share_of_namespace=0.2)
    for _ in range(3):
        assert ask(guarded, "unclear") is None
        assert ask(guarded, "unclear") is None
        guarded.note_deleted("unclear", at())
    assert ask(guarded, "other") is None
    assert ask(guarded, "third") in (Guard.PER_PASS, Guard.NAMESPACE_SHARE)


def test_who_was_let_go_in_the_pass_before_is_wanted_by_nobody_and_after_that_again() -> None:
    guarded = book()
    let_go(guarded, 1)
    assert guarded.has_admitted("a-0")
    guarded.begin_pass({"a": 10})
    assert guarded.has_admitted("a-0")
    guarded.begin_pass({"a": 10})
    assert not guarded.has_admitted("a-0")


def test_who_failed_in_the_pass_after_is_wanted_again() -> None:
    guarded = book()
    assert ask(guarded, "slow") is None
    guarded.begin_pass({"a": 10})
    guarded.note_not_deleted("slow")
    assert not guarded.has_admitted("slow")


# A share


def test_what_is_wanted_counts_together_with_what_was_let_go() -> None:
    guarded = book(share_of_namespace=0.5)
    let_go(guarded, 3)
    guarded.judge({"a": 2, "b": 5}, at())
    assert not guarded.stops
    guarded.judge({"a": 3, "b": 5}, at())
    assert set(guarded.stops) == {"a"}
    assert ask(guarded, "x", "a") is Guard.NAMESPACE_SHARE
    assert ask(guarded, "y", "b") is None


def test_a_mass_in_the_cluster_holds_everybody_and_is_told_as_that() -> None:
    guarded = book(share_of_cluster=0.25)
    let_go(guarded, 2)
    guarded.judge({"a": 2, "b": 2}, at())
    assert guarded.stops[CLUSTER].wanted == 6
    assert ask(guarded, "x", "elsewhere") is Guard.CLUSTER_SHARE


def test_nobody_announced_stops_at_the_share_all_the_same() -> None:
    guarded = book(share_of_namespace=0.29, share_of_cluster=0.5)
    guarded.begin_pass({"a": 100, "b": 4})
    # 29 % of 100 are 29, whatever floating point makes of it.
    let_go(guarded, 29)
    assert ask(guarded, "one-more") is Guard.NAMESPACE_SHARE
    let_go(guarded, 1, "b")
    assert ask(guarded, "one-more", "b") is Guard.NAMESPACE_SHARE


def test_few_pods_are_no_mass() -> None:
    guarded = book({"a": 1}, share_of_namespace=0.1, share_of_cluster=0.1, share_at_least=2)
    guarded.judge({"a": 2}, at())
    let_go(guarded, 2)
    assert ask(guarded, "third") is not None


def test_a_stop_stays_while_anybody_is_wanted_there_also_in_the_next_pass() -> None:
    guarded = book(share_of_namespace=0.5)
    guarded.judge({"a": 6}, at())
    guarded.begin_pass({"a": 10})
    guarded.judge({"a": 1}, at())
    assert ask(guarded, "x") is Guard.NAMESPACE_SHARE
    assert guarded.stops["a"].wanted == 6
    guarded.judge({"b": 1}, at())
    assert ask(guarded, "x") is None


def test_outside_the_windows_no_stop_begins_or_ends() -> None:
    guarded = book(share_of_namespace=0.5, windows=NIGHT)
    night = at(22.5 * 3600)
    guarded.judge({"a": 6}, at())
    assert not guarded.stops
    guarded.judge({"a": 6}, night)
    guarded.judge({}, at(24 * 3600))
    assert set(guarded.stops) == {"a"}
    assert ask(guarded, "x", moment=at()) is Guard.WINDOW
    assert ask(guarded, "x", moment=night) is Guard.NAMESPACE_SHARE


def test_where_a_person_has_stopped_it_nobody_counts() -> None:
    guarded = book(share_of_cluster=0.25, share_of_namespace=0.5)
    guarded.set_annotations(GuardAnnotations({"a": "why"}))
    guarded.judge({"a": 9, "b": 1}, at())
    assert not guarded.stops
    assert ask(guarded, "x", "a") is Guard.STOP
    assert ask(guarded, "x", "b") is None


@pytest.mark.parametrize("by", ["the sweep's flag", "a mark", "a mark on the whole cluster"])
def test_a_person_lifts_a_share_for_as_long_as_was_said(by: str) -> None:
    guarded = book(share_of_namespace=0.1, is_forced=by == "the sweep's flag")
    guarded.judge({"a": 6}, at())
    where = {"a mark": "a", "a mark on the whole cluster": EVERYWHERE}
    if by in where:
        assert ask(guarded, "x") is Guard.NAMESPACE_SHARE
        guarded.set_annotations(GuardAnnotations(forced_until={where[by]: at(100).now}))
    guarded.judge({"a": 6}, at(99))
    assert let_go(guarded, 5, moment=at(99))
    assert not guarded.stops
    if by in where:
        assert ask(guarded, "x", moment=at(100)) is Guard.NAMESPACE_SHARE


def test_other_guards_without_a_share_end_its_stops_and_others_do_not() -> None:
    guarded = book(share_of_namespace=0.1, share_of_cluster=0.1)
    guarded.judge({"a": 6}, at())
    guarded.replace(Guards(share_of_namespace=0.2, share_at_least=0))
    assert set(guarded.stops) == {"a"}
    guarded.replace(Guards())
    assert ask(guarded, "x") is None


# What holds one that was let go already


def test_what_comes_up_before_the_deletion_is_sent_holds_it_after_all() -> None:
    guarded = book(share_of_cluster=0.25)
    assert ask(guarded, "x") is None
    assert guarded.objection("a", at()) is None
    for guards, guard in (
        (Guards(windows=NIGHT), Guard.WINDOW),
        (Guards(is_observing=True), Guard.OBSERVING),
    ):
        changed = book()
        changed.replace(guards)
        found = changed.objection("a", at())
        assert found is not None
        assert found.guard is guard
    guarded.judge({"b": 9}, at())
    found = guarded.objection("a", at())
    assert found is not None
    assert found.guard is Guard.CLUSTER_SHARE


# Windows


def test_when_a_window_opens_is_found_anew_when_the_clock_was_put_back_or_other_windows_came() -> None:
    guarded = book(windows=NIGHT)
    evening = START.replace(hour=22)
    assert guarded.closed_until(START.replace(hour=23)) == evening + timedelta(days=1)
    assert guarded.closed_until(START) == evening
    guarded.replace(Guards(windows=(Window(start=time(5), end=time(6)),)))
    assert guarded.closed_until(START) == START.replace(hour=5)

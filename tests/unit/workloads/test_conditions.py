"""Conditions in a list: one of each type, and times that tell when something changed."""

from __future__ import annotations

from datetime import UTC, datetime

from podlife.workloads.status import (
    ConditionDict,
    find_condition,
    has_condition,
    with_condition,
    without_condition,
)

NOW = datetime(2030, 1, 1, tzinfo=UTC)
LATER = datetime(2030, 1, 2, tzinfo=UTC)
FIRST = ConditionDict("Progressing", "True", "Begun", "It has begun.").to_object(NOW)


def test_object_has_what_is_given_and_the_time() -> None:
    assert FIRST == {
        "type": "Progressing",
        "status": "True",
        "reason": "Begun",
        "message": "It has begun.",
        "lastTransitionTime": "2030-01-01T00:00:00Z",
    }
    assert ConditionDict("Ready", "False").to_object(NOW, lastUpdateTime=LATER) == {
        "type": "Ready",
        "status": "False",
        "lastUpdateTime": "2030-01-02T00:00:00Z",
        "lastTransitionTime": "2030-01-01T00:00:00Z",
    }


def test_a_condition_that_says_the_same_stays_as_it_was() -> None:
    again = ConditionDict("Progressing", "True", "Begun", "in other words").to_object(LATER)
    assert with_condition([FIRST], again) == [FIRST]


def test_another_reason_with_the_same_status_is_no_transition() -> None:
    other = ConditionDict("Progressing", "True", "GoingOn").to_object(LATER)
    [written] = with_condition([FIRST], other)
    assert (written["reason"], written["lastTransitionTime"]) == ("GoingOn", FIRST["lastTransitionTime"])


def test_another_status_is_a_transition_and_comes_last() -> None:
    ready = ConditionDict("Ready", "True").to_object(NOW)
    stopped = ConditionDict("Progressing", "False", "Stopped").to_object(LATER)
    known = [FIRST, ready]
    assert with_condition(known, stopped) == [ready, stopped]
    assert known == [FIRST, ready], "what was given can still be compared"


def test_a_condition_is_found_by_type_and_taken_away() -> None:
    assert find_condition([FIRST], "Progressing") is FIRST
    assert find_condition(None, "Progressing") is None
    assert has_condition([FIRST], "Progressing")
    assert not has_condition([FIRST], "Progressing", "False")
    assert without_condition([FIRST], "Progressing") == []
    assert without_condition(None, "Progressing") == []

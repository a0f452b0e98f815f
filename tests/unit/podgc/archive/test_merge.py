"""A pod that is archived again: nothing is lost, nothing is there twice, and it does not grow for ever."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.podgc.archive import Log
from podlife.podgc.archive import merge as joining_module
from podlife.podgc.archive.merge import joined_events, joined_logs


def event(number: int, count: int = 1) -> dict[str, Any]:
    return {"metadata": {"uid": f"e-{number}"}, "count": count}


def test_a_log_that_cannot_be_had_any_more_is_as_it_was() -> None:
    old = (Log(container="a", text="1"), Log(container="b", text="2"), Log(container="gone", text="3"))
    new = (
        Log(container="a", problem="404"),
        Log(container="b", text="4"),
        Log(container="a", is_previous=True, problem="404"),
    )
    assert joined_logs(old, new) == (old[0], new[1], new[2], old[2])


def test_a_log_that_never_was_there_has_the_reason_of_now() -> None:
    assert joined_logs((Log(container="a", problem="old"),), (Log(container="a", problem="new"),)) == (
        Log(container="a", problem="new"),
    )


def test_each_event_is_there_once_as_it_is_now() -> None:
    assert joined_events([event(1), event(2)], [event(2, 7), event(3)]) == [event(1), event(2, 7), event(3)]
    nameless = {"reason": "Killing"}
    assert joined_events([nameless], [nameless]) == [nameless]


def test_of_too_many_events_or_too_large_ones_the_latest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = [event(number) for number in range(499)], [event(number) for number in range(1000, 1010)]
    found = joined_events(old, new)
    assert (len(found), found[-10:]) == (500, new)
    monkeypatch.setattr(joining_module, "MOST_EVENT_BYTES", 200)
    found = joined_events(old, new)
    assert 0 < len(found) < 10
    assert found == new[-len(found) :]

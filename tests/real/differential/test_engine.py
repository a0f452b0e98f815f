"""The comparison itself: it must see what differs, and only that."""

from __future__ import annotations

from datetime import timedelta

import pytest

from podlife.api.codec import format_time
from podlife.clock import ManualClock
from tests.real.differential.compare import Difference, differences_between
from tests.real.differential.differences import Known
from tests.real.differential.normalise import Normaliser
from tests.real.differential.steps import Area, fill

UID = "12345678-1234-1234-1234-123456789abc"
OTHER = "87654321-1234-1234-1234-123456789abc"


@pytest.mark.parametrize(
    ("real", "ours", "paths"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, ["a"]),
        ({"a": 1}, {"a": True}, ["a"]),
        ({"a": {"b": 1}}, {"a": {}}, ["a.b"]),
        ({"a": []}, {}, ["a"]),
        ({"a": [{"b": 1}, {"b": 2}]}, {"a": [{"b": 1}, {"b": 3}]}, ["a[1].b"]),
        ({"a": [1, 2]}, {"a": [1]}, ["a"]),
        ([1, 2], [2, 1], ["[0]", "[1]"]),
    ],
)
def test_every_place_that_differs_is_named(real: object, ours: object, paths: list[str]) -> None:
    assert [one.path for one in differences_between(real, ours)] == paths


def shown(*uids: str) -> list[dict[str, object]]:
    normaliser = Normaliser()
    seen = []
    for number, uid in enumerate(uids):
        normaliser.begin(f"step-{number}")
        seen.append(normaliser.body({"metadata": {"uid": uid}}))
    return seen


def test_the_same_uid_again_is_the_same_symbol_and_another_is_not() -> None:
    assert shown(UID, UID) == shown(OTHER, OTHER)
    assert shown(UID, UID) != shown(UID, OTHER)


def test_a_version_tells_whether_it_went_up() -> None:
    def versions(*values: str) -> list[str]:
        normaliser = Normaliser()
        return [normaliser.body({"metadata": {"resourceVersion": value}}) for value in values]

    assert versions("10", "11") == versions("500", "900")
    assert versions("10", "11") != versions("11", "10")


def test_times_compare_by_their_distance_from_now() -> None:
    clock = ManualClock()
    now = clock.now()
    normaliser = Normaliser(clock)
    soon, late = (format_time(now + timedelta(seconds=seconds)) for seconds in (1, 30))
    assert normaliser.text(soon) == normaliser.text(format_time(now))
    assert normaliser.text(soon) != normaliser.text(late)
    assert normaliser.text("2001-01-01T00:00:00Z") == "2001-01-01T00:00:00Z"


def test_a_deletion_time_that_does_not_fit_its_grace_is_seen() -> None:
    clock = ManualClock()

    def deleted(after_seconds: int, grace_seconds: int) -> object:
        moment = format_time(clock.now() + timedelta(seconds=after_seconds))
        metadata = {"deletionTimestamp": moment, "deletionGracePeriodSeconds": grace_seconds}
        return Normaliser(clock).body({"metadata": metadata})

    assert deleted(30, 30) == deleted(29, 30) == deleted(26, 30)
    assert deleted(30, 30) != deleted(0, 30)
    assert deleted(30, 0) != deleted(0, 0)


def test_a_generated_name_is_recognised_wherever_it_stands() -> None:
    normaliser = Normaliser()
    normaliser.body({"metadata": {"generateName": "made-", "name": "made-x7f2p"}})
    assert normaliser.text('pods "made-x7f2p" not found') == 'pods "made-<random>" not found'


def test_a_listed_difference_must_be_there_and_nowhere_else() -> None:
    known = Known("because", ("body.message",))
    assert not known.complaint([Difference("body.message", 1, 2)])
    assert "take it off" in known.complaint([])
    assert "more than is listed" in known.complaint(
        [Difference("body.message", 1, 2), Difference("code", 200, 201)]
    )


def test_a_variable_that_was_never_kept_shows() -> None:
    assert fill("/pods/${name}", {}) == "/pods/<no-name>"


def test_an_area_refuses_two_steps_of_one_name() -> None:
    area = Area("a")
    area.get("x", "/x")
    with pytest.raises(ValueError, match="two steps called x"):
        area.get("x", "/y")

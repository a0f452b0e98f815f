"""client-go's rules of which events become one, each by itself, and that what is remembered has a bound."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from podlife.events import Correlated, Correlator, CorrelatorSettings
from podlife.events.recorder import Namer, make_event

POD = {"kind": "Pod", "apiVersion": "v1", "namespace": "my-ns", "name": "my-pod", "uid": "u-1"}


class Story:
    """Events told one after the other, each of which reaches the server."""

    def __init__(self, *, every_seconds: float, settings: CorrelatorSettings | None = None) -> None:
        self.now = datetime(2030, 1, 1, tzinfo=UTC)
        self.step = timedelta(seconds=every_seconds)
        self.namer = Namer()
        self.correlator = Correlator(settings)

    def tell(
        self,
        message: str,
        *,
        reason: str = "Why",
        type_: str = "Normal",
        regarding: dict[str, Any] = POD,
        component: str = "gc",
    ) -> Correlated | None:
        self.now += self.step
        event = make_event(regarding, (type_, reason, message), component, self.now, self.namer)
        told = self.correlator.correlate(event, self.now)
        if told is not None:
            self.correlator.update(told, told.event)
        return told

    def must_tell(self, message: str, **parts: Any) -> Correlated:
        told = self.tell(message, **parts)
        assert told is not None
        return told

    def shown(self, message: str, **parts: Any) -> tuple[str, int, bool]:
        told = self.must_tell(message, **parts)
        return told.event["message"], told.event["count"], told.patch is not None


def test_a_single_event_is_created() -> None:
    assert Story(every_seconds=5).shown("once") == ("once", 1, False)


def test_the_same_event_is_counted_on_the_first_one() -> None:
    story = Story(every_seconds=60)
    first = story.must_tell("again")
    second = story.must_tell("again")
    assert second.event["metadata"]["name"] == first.event["metadata"]["name"]
    assert second.event["firstTimestamp"] == first.event["firstTimestamp"]
    assert second.patch == {"count": 2, "lastTimestamp": "2030-01-01T00:02:00Z", "message": "again"}


def test_the_same_event_is_counted_and_not_combined_however_often_it_comes() -> None:
    story = Story(every_seconds=30)
    for count in range(1, 21):
        assert story.shown("again") == ("again", count, count > 1)


def test_events_that_differ_in_reason_object_type_source_or_field_are_events_of_their_own() -> None:
    story = Story(every_seconds=5)
    names = {
        story.must_tell("m").event["metadata"]["name"],
        story.must_tell("m", reason="Other").event["metadata"]["name"],
        story.must_tell("m", type_="Warning").event["metadata"]["name"],
        story.must_tell("m", component="kubelet").event["metadata"]["name"],
        story.must_tell("m", regarding={**POD, "uid": "u-2"}).event["metadata"]["name"],
        story.must_tell("m", regarding={**POD, "fieldPath": "spec.containers{a}"}).event["metadata"]["name"],
    }
    assert len(names) == 6


def test_the_tenth_similar_event_is_combined_and_the_next_ones_are_counted_on_it() -> None:
    story = Story(every_seconds=5)
    for number in range(9):
        assert story.shown(f"m{number}") == (f"m{number}", 1, False)
    assert story.shown("m9") == ("(combined from similar events): m9", 1, False)
    assert story.shown("m10") == ("(combined from similar events): m10", 2, True)
    combined = story.must_tell("m11")
    assert combined.patch is not None
    assert combined.patch["message"] == "(combined from similar events): m11"
    assert combined.event["firstTimestamp"] == "2030-01-01T00:00:50Z"


def test_a_message_known_before_similar_events_were_combined_is_still_counted_by_itself() -> None:
    story = Story(every_seconds=5)
    for number in range(10):
        story.tell(f"m{number}")
    assert story.shown("m8") == ("m8", 2, True)


def test_events_of_different_reasons_are_not_combined() -> None:
    story = Story(every_seconds=5)
    for number in range(20):
        assert story.shown(f"m{number}", reason=f"R{number}") == (f"m{number}", 1, False)


def test_similar_events_more_than_ten_minutes_apart_are_not_combined() -> None:
    story = Story(every_seconds=601)
    for number in range(15):
        assert story.shown(f"m{number}") == (f"m{number}", 1, False)


def test_similar_events_within_ten_minutes_of_each_other_are_combined_however_long_it_takes() -> None:
    story = Story(every_seconds=600)
    for number in range(9):
        story.tell(f"m{number}")
    assert story.shown("m9") == ("(combined from similar events): m9", 1, False)


def test_after_25_events_about_an_object_one_more_is_told_every_five_minutes() -> None:
    story = Story(every_seconds=0)
    assert [story.tell("again") is not None for _ in range(27)] == [True] * 25 + [False] * 2
    story.now += timedelta(seconds=299)
    assert story.tell("again") is None
    story.now += timedelta(seconds=1)
    assert story.shown("again") == ("again", 29, True), "those not told are in the count"
    assert story.tell("again") is None


def test_too_much_about_one_object_whatever_the_reason_leaves_others_warnings_and_sources_alone() -> None:
    story = Story(every_seconds=0)
    for number in range(25):
        assert story.tell("m", reason=f"R{number}") is not None
    assert story.tell("m", reason="New") is None
    assert story.tell("m", type_="Warning") is not None
    assert story.tell("m", component="kubelet") is not None
    assert story.tell("m", regarding={**POD, "name": "other"}) is not None


def test_what_falls_out_of_memory_begins_anew() -> None:
    story = Story(every_seconds=1, settings=CorrelatorSettings(remembered=2))
    first = story.must_tell("m")
    for name in "abc":
        story.tell("m", regarding={**POD, "name": name})
    again = story.must_tell("m")
    assert again.patch is None
    assert again.event["metadata"]["name"] != first.event["metadata"]["name"]


def test_memory_keeps_what_was_used_last() -> None:
    story = Story(every_seconds=1, settings=CorrelatorSettings(remembered=2))
    story.tell("m")
    for name in "abc":
        story.tell("m", regarding={**POD, "name": name})
        assert story.must_tell("m").patch is not None


def test_the_count_goes_on_from_what_the_server_answered() -> None:
    story = Story(every_seconds=1)
    told = story.must_tell("m")
    story.correlator.update(told, {**told.event, "count": 7})
    assert story.shown("m") == ("m", 8, True)


def test_two_events_of_one_moment_have_names_of_their_own() -> None:
    namer, now = Namer(), datetime(2030, 1, 1, tzinfo=UTC)
    names = {namer.name("p", now) for _ in range(100)}
    assert len(names) == 100
    assert all(name.startswith("p.") for name in names)


def test_a_name_that_no_event_may_have_becomes_a_random_one() -> None:
    event = make_event(
        {"kind": "ClusterRole", "name": "system:node"},
        ("Normal", "Why", "m"),
        "gc",
        datetime(2030, 1, 1, tzinfo=UTC),
        Namer(),
    )
    assert ":" not in event["metadata"]["name"]
    assert event["metadata"]["namespace"] == "default"
    assert event["involvedObject"]["name"] == "system:node"

"""An event that only counts is counted without being made: what is sent of the others is the same either way."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from podlife.events.correlator import Correlated, Correlator, object_key
from podlife.events.recorder import Namer, make_event

START = datetime(2030, 1, 1, tzinfo=UTC)
TOLD = st.lists(
    st.tuples(
        st.sampled_from(["web", "db"]),
        st.sampled_from(["Created", "Failed"]),
        st.integers(0, 30),
        st.sampled_from([0.0, 0.0, 0.0, 1.0, 40.0, 301.0, 700.0]),
    ),
    max_size=120,
)


def sent(told: list[tuple[str, str, int, float]], *, is_short: bool) -> list[Correlated | None]:
    correlator, namer, now = Correlator(), Namer(), START
    namer._offset = 0
    results: list[Correlated | None] = []
    for name, reason, number, seconds in told:
        now += timedelta(seconds=seconds)
        about = {"kind": "ReplicaSet", "namespace": "default", "name": name, "uid": name}
        message = f"pod {number}"
        event = make_event(about, ("Normal", reason, message), "test", now, namer)
        key = object_key("test", about, "Normal")
        if is_short and correlator.counts_only(key, (reason, message, "test"), now):
            results.append(None)
            continue
        correlated = correlator.correlate(event, now)
        if correlated is not None:
            correlator.update(correlated, correlated.event)
        results.append(correlated)
    return results


@given(TOLD)
def test_what_is_sent_is_the_same_whether_or_not_counting_is_cut_short(
    told: list[tuple[str, str, int, float]],
) -> None:
    assert sent(told, is_short=True) == sent(told, is_short=False)


def test_most_of_thousands_about_one_object_only_count() -> None:
    correlator = Correlator()
    key = object_key("test", {"kind": "ReplicaSet", "name": "web"}, "Normal")
    about = {"kind": "ReplicaSet", "name": "web"}
    namer, counted = Namer(), 0
    for number in range(1000):
        what = ("Created", f"pod {number}", "test")
        if correlator.counts_only(key, what, START):
            counted += 1
        else:
            event = make_event(about, ("Normal", *what[:2]), "test", START, namer)
            correlator.correlate(event, START)
    assert counted >= 970

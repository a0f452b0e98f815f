"""How pods are counted, and how long they took to run."""

from __future__ import annotations

from array import array
from typing import Any

from podlife.kubelet.hollow import HollowProgress, percentile


def pod(name: str, phase: str = "Pending", *, restarts: int = 0) -> dict[str, Any]:
    status = {"phase": phase, "containerStatuses": [{"restartCount": restarts}]}
    return {"metadata": {"namespace": "d", "name": name, "uid": f"uid-{name}"}, "status": status}


def test_a_pod_is_counted_in_one_phase_at_a_time_and_not_when_it_is_gone() -> None:
    tally = HollowProgress()
    tally.put(pod("a"), 1.0)
    tally.put(pod("b", "Running"), 1.0)
    tally.put(pod("a", "Running"), 2.0)
    assert tally.phases == {"Running": 2}
    tally.remove("uid-a")
    tally.remove("uid-a")
    assert (tally.phases, tally.gone, tally.seen, tally.there) == ({"Running": 1}, 1, 2, 1)


def test_the_way_to_running_begins_when_a_pod_was_asked_for_or_else_first_seen() -> None:
    tally = HollowProgress()
    tally.ask("d", "asked", 10.0)
    tally.put(pod("asked"), 12.0)
    tally.put(pod("seen"), 12.0)
    tally.put(pod("asked", "Running"), 15.0)
    tally.put(pod("seen", "Running"), 15.0)
    tally.put(pod("seen", "Running", restarts=1), 99.0)
    assert list(tally.start_seconds) == [5.0, 3.0]


def test_a_pod_that_ran_when_it_was_first_seen_took_no_known_time_unless_it_was_asked_for() -> None:
    tally = HollowProgress()
    tally.put(pod("old", "Running"), 5.0)
    assert list(tally.start_seconds) == []
    tally.ask("d", "quick", 5.0)
    tally.put(pod("quick", "Running"), 6.0)
    assert list(tally.start_seconds) == [1.0]


def test_restarts_from_before_are_not_counted() -> None:
    tally = HollowProgress()
    tally.put(pod("a", "Running", restarts=7), 1.0)
    tally.put(pod("a", "Running", restarts=9), 2.0)
    assert tally.restarts == 2


def test_a_percentile_is_one_of_the_values() -> None:
    values = array("d", range(1, 101))
    assert (percentile(values, 0.5), percentile(values, 0.99), percentile(values, 1.0)) == (51, 100, 100)
    assert percentile(array("d"), 0.5) == 0

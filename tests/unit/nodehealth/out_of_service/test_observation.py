"""Since when a node is away, by what was seen of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from podlife.api.views import Metadata
from podlife.nodehealth.out_of_service.observation import NodeObservation, observe
from podlife.nodehealth.out_of_service.views import FencedNode
from podlife.nodehealth.unknown_status import read_node
from podlife.nodehealth.views import Lease, LeaseSpec

AT = datetime(2020, 1, 1, tzinfo=UTC)


def node(
    status: str | None = "Unknown", *, uid: str = "u1", heartbeat: int = 0, since: int = 0
) -> FencedNode:
    ready = {
        "type": "Ready",
        "status": status,
        "lastHeartbeatTime": f"2001-01-01T00:00:{heartbeat:02}Z",
        "lastTransitionTime": f"2001-01-01T00:00:{since:02}Z",
    }
    return read_node(
        {"metadata": {"name": "n1", "uid": uid}, "status": {"conditions": [ready] if status else []}},
        FencedNode,
    )


def lease(second: int) -> Lease:
    return Lease(Metadata(name="n1"), LeaseSpec(AT + timedelta(seconds=second)))


def seen(*observations: tuple[float, FencedNode, Lease | None]) -> NodeObservation:
    watched = None
    for now, a_node, a_lease in observations:
        watched = observe(watched, a_node, a_lease, now)
    assert watched is not None
    return watched


def test_time_is_counted_from_the_first_look_whatever_the_node_says() -> None:
    watched = seen((100, node(), lease(0)), (500, node(), lease(0)))
    assert (watched.not_ready_at, watched.last_report_at) == (100, 100)


def test_a_node_that_is_ready_in_between_is_counted_anew() -> None:
    watched = seen((100, node(), None), (200, node("True"), None), (300, node("False"), None))
    assert watched.not_ready_at == 300
    assert seen((100, node("True"), None)).not_ready_at is None


def test_a_node_that_was_something_else_in_between_unseen_is_counted_anew() -> None:
    assert seen((100, node(since=1), None), (200, node(since=9), None)).not_ready_at == 200


def test_from_not_ready_to_unknown_it_is_not_ready_all_the_time() -> None:
    assert (
        seen((100, node("False", since=1), None), (200, node("Unknown", since=9), None)).not_ready_at == 100
    )
    assert seen((100, node(None), None), (200, node("Unknown"), None)).not_ready_at == 100


def test_a_lease_that_is_renewed_is_heard_in_whichever_direction_its_clock_goes() -> None:
    assert seen((100, node(), lease(0)), (200, node(), lease(10))).last_report_at == 200
    assert seen((100, node(), lease(10)), (200, node(), lease(0))).last_report_at == 200


def test_a_heartbeat_of_the_status_is_heard_too() -> None:
    assert seen((100, node(heartbeat=1), None), (200, node(heartbeat=2), None)).last_report_at == 200


def test_a_lease_that_has_gone_says_nothing_and_one_that_comes_is_heard() -> None:
    assert seen((100, node(), lease(0)), (200, node(), None), (300, node(), lease(0))).last_report_at == 100
    assert seen((100, node(), None), (200, node(), lease(0))).last_report_at == 200


def test_how_long_a_lease_is_for_is_its_own_word_within_bounds() -> None:
    def length(seconds: int | None) -> float:
        return seen((0, node(), Lease(Metadata(name="n1"), LeaseSpec(AT, seconds)))).lease_seconds

    assert [length(seconds) for seconds in (120, None, 0, -5, 10**9)] == [120, 40, 40, 0, 600]
    assert seen((0, node(), None)).lease_seconds == 0
    assert seen((0, node(), lease(0)), (9, node(), None)).lease_seconds == 40


def test_a_node_that_is_made_anew_under_its_name_begins_anew() -> None:
    watched = seen((100, node(), lease(0)), (500, node(uid="u2"), lease(0)))
    assert (watched.not_ready_at, watched.last_report_at) == (500, 500)


def test_time_in_which_nobody_could_be_heard_is_left_out_and_no_more_than_that() -> None:
    watched = seen((100, node(), None)).without(60, 200)
    assert (watched.not_ready_at, watched.last_report_at) == (160, 160)
    watched = seen((100, node("True"), None)).without(600, 200)
    assert (watched.not_ready_at, watched.last_report_at) == (None, 200)


def test_before_a_node_is_tainted_it_is_looked_whether_it_was_heard_since() -> None:
    watched = seen((100, node(heartbeat=1), lease(1)))
    assert not watched.has_reported(node(heartbeat=1), lease(1))
    assert not watched.has_reported(node(heartbeat=1), None)
    assert watched.has_reported(node(heartbeat=2), lease(1))
    assert watched.has_reported(node(heartbeat=1), lease(2))

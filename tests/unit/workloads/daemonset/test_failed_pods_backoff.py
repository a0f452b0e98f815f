"""How often failed pods are deleted."""

from __future__ import annotations

from podlife.workloads.daemonset.pod_control import FailedPodsBackoff


def test_wait_doubles_from_a_second_to_a_quarter_of_an_hour() -> None:
    failed, now, waits = FailedPodsBackoff(), 0.0, []
    for _ in range(12):
        assert failed.seconds_left("n1", now) == 0.0
        failed.note("n1", now)
        waits.append(failed.seconds_left("n1", now))
        now += waits[-1]
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]


def test_nodes_do_not_wait_for_each_other() -> None:
    failed = FailedPodsBackoff()
    failed.note("n1", 0.0)
    assert (failed.seconds_left("n1", 0.4), failed.seconds_left("n2", 0.4)) == (0.6, 0.0)


def test_half_an_hour_in_peace_starts_anew_and_leaves_nothing() -> None:
    failed = FailedPodsBackoff()
    for now in (0.0, 10.0, 20.0):
        failed.note("n1", now)
        failed.note(f"other-{now}", now)
    failed.note("n1", 20.0 + 1801)
    assert failed.seconds_left("n1", 20.0 + 1801) == 1.0
    assert len(failed) == 1

"""What is counted."""

from __future__ import annotations

from podlife.workloads.daemonset.placement import NodeFit
from podlife.workloads.daemonset.plan import DaemonRevision
from podlife.workloads.daemonset.status import new_status
from tests.unit.workloads.daemonset.pods import NEW, NOW, OLD, daemon_set, pod

REVISION = DaemonRevision(NEW, min_ready_seconds=10)


def test_nodes_are_counted_by_what_is_on_them() -> None:
    run, stay = NodeFit.SHOULD_RUN, NodeFit.MAY_STAY
    fits = {"ready": run, "fresh": run, "old": run, "empty": run, "tainted": stay, "bare": NodeFit.MUST_NOT}
    pods = {
        "ready": [pod("a", ready_for=10)],
        "fresh": [pod("b", ready_for=9)],
        "old": [pod("c", revision=OLD)],
        "tainted": [pod("d", ready_for=99)],
        "gone": [pod("e", ready_for=99)],
    }
    assert new_status(daemon_set(), pods, fits, REVISION, NOW) == {
        "currentNumberScheduled": 3,
        "desiredNumberScheduled": 4,
        "numberMisscheduled": 1,
        "numberReady": 2,
        "numberAvailable": 1,
        "numberUnavailable": 3,
        "updatedNumberScheduled": 2,
    }


def test_of_two_pods_on_a_node_the_older_counts() -> None:
    pods = {"n": [pod("new", age=5), pod("old", revision=OLD, age=50, ready_for=20)]}
    status = new_status(daemon_set(), pods, {"n": NodeFit.SHOULD_RUN}, REVISION, NOW)
    assert status["numberAvailable"] == 1
    assert "updatedNumberScheduled" not in status


def test_what_others_say_stays_and_counts_of_nothing_are_as_the_server_writes_them() -> None:
    before = daemon_set()
    before.status = {"collisionCount": 2, "observedGeneration": 3, "numberAvailable": 5, "numberReady": 5}
    assert new_status(before, {}, {}, REVISION, NOW) == {
        "collisionCount": 2,
        "observedGeneration": 3,
        "currentNumberScheduled": 0,
        "desiredNumberScheduled": 0,
        "numberMisscheduled": 0,
        "numberReady": 0,
    }

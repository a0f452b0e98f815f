"""Pods made and deleted, and what is expected of it."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.errors import NotFoundError, PodlifeError
from podlife.podcontrol import NamespaceTerminatingError, Owner, PodDeleteError
from podlife.testing import FakePodControl, virtual_time
from podlife.workloads.daemonset.pod_control import DaemonPodControl, FailedPodsBackoff
from tests.unit.workloads.daemonset.pods import pod

OWNER = Owner("apps/v1", "DaemonSet", "d", "uid-d", "default")
KEY = ("default", "d")
TEMPLATE: dict[str, Any] = {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": []}}


def expected(pods: DaemonPodControl) -> tuple[int, int]:
    found = pods.expectations.get(KEY)
    return (found.creations, found.deletions) if found else (0, 0)


@virtual_time
async def test_each_node_gets_one_pod_and_what_was_asked_for_is_expected() -> None:
    control = FakePodControl()
    pods = DaemonPodControl(control, burst=250)
    await pods.change(OWNER, TEMPLATE, ["n1", "n2", "n3"], [pod("a"), pod("b")])
    required = [
        made["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        for made in control.templates
    ]
    wanted = [each["nodeSelectorTerms"][0]["matchFields"][0]["values"] for each in required]
    assert wanted == [["n1"], ["n2"], ["n3"]]
    assert control.deleted == ["a", "b"]
    assert expected(pods) == (3, 2)
    assert not pods.expectations.is_satisfied(KEY)


@virtual_time
async def test_no_more_than_a_burst_of_each_is_done_and_expected() -> None:
    control = FakePodControl()
    pods = DaemonPodControl(control, burst=2)
    await pods.change(OWNER, TEMPLATE, ["n1", "n2", "n3"], [pod("a"), pod("b"), pod("c")])
    assert (control.create_calls, control.deleted, expected(pods)) == (2, ["a", "b"], (2, 2))


@virtual_time
async def test_nothing_to_do_expects_nothing() -> None:
    pods = DaemonPodControl(FakePodControl(), burst=2)
    await pods.change(OWNER, TEMPLATE, [], [])
    assert pods.expectations.get(KEY) is None


@virtual_time
async def test_what_was_refused_or_not_tried_is_not_expected() -> None:
    control = FakePodControl(create_limit=2)
    pods = DaemonPodControl(control, burst=250)
    with pytest.raises(PodlifeError, match="limit 2 already reached"):
        await pods.change(OWNER, TEMPLATE, [f"n{number}" for number in range(20)], [])
    # One, and of two one; the others were not tried.
    assert (control.create_calls, expected(pods)) == (3, (2, 0))


@virtual_time
async def test_namespace_that_is_going_is_no_failure_and_is_tried_once() -> None:
    control = FakePodControl()
    control.error = NamespaceTerminatingError("it is going")
    pods = DaemonPodControl(control, burst=250)
    await pods.change(OWNER, TEMPLATE, ["n1", "n2", "n3"], [])
    assert control.create_calls == 1
    # So that the end of each pod there does not make it try again.
    assert expected(pods) == (3, 0)


@virtual_time
async def test_pod_that_is_gone_already_is_no_failure_and_one_that_cannot_be_deleted_is() -> None:
    control = FakePodControl()
    pods = DaemonPodControl(control, burst=250)
    control.error = NotFoundError("gone")
    await pods.change(OWNER, TEMPLATE, [], [pod("a")])
    assert pods.expectations.is_satisfied(KEY)
    control.error = PodDeleteError(PodlifeError("no"))
    with pytest.raises(PodDeleteError):
        await pods.change(OWNER, TEMPLATE, [], [pod("a")])
    assert pods.expectations.is_satisfied(KEY)


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

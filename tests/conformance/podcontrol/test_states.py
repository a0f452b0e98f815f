"""Which pods count, whose they are, and when they become available."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from podlife.api.codec import Object
from podlife.api.selectors import EVERYTHING, parse_label_selector
from podlife.client.watch import EventType, WatchEvent
from podlife.clock import ManualClock
from podlife.informer import Cache
from podlife.podcontrol import (
    BY_NODE,
    POD_INDEXERS,
    InvalidOwnerError,
    OwnedPod,
    Owner,
    claimed_pods,
    is_active,
    is_available,
    is_terminating,
    pods_of_owner,
    seconds_to_next_check,
)
from podlife.podcontrol.pod_state import next_availability_check
from tests.conformance.podcontrol.world import NOW, ago, make_pod


def test_active_is_neither_ended_nor_going() -> None:
    """AP-01."""
    pods = [make_pod(status={"phase": phase}) for phase in ("Succeeded", "Failed", "", "", "")]
    assert [pod for pod in pods if is_active(pod)] == pods[2:]
    assert not is_active(make_pod(metadata={"deletionTimestamp": ago()}, status={"phase": "Running"}))


def test_terminating_is_going_and_not_ended() -> None:
    """AP-02."""
    going = {"deletionTimestamp": ago()}
    rows = [({}, "Succeeded"), ({}, "Failed"), (going, "Pending"), (going, "Running")]
    rows += [({}, "Running")] * 3
    pods = [make_pod(metadata=metadata, status={"phase": phase}) for metadata, phase in rows]
    assert [number for number, pod in enumerate(pods) if is_terminating(pod)] == [2, 3]
    assert not is_terminating(make_pod(metadata=going, status={"phase": "Failed"}))


def reference(uid: str, controller: bool | None = True, **fields: str) -> Object:
    named = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": uid, **fields}
    return named if controller is None else {**named, "controller": controller}


@pytest.mark.parametrize(
    ("references", "labels", "is_claimed"),
    [
        pytest.param([reference("u")], {"app": "web"}, True, id="AP-03 owned and selected"),
        pytest.param([reference("u", None)], {"app": "web"}, False, id="AP-03 controller not said"),
        pytest.param([reference("u", False)], {"app": "web"}, False, id="AP-03 no controller"),
        pytest.param([reference("v")], {"app": "web"}, False, id="AP-03 of another"),
        pytest.param([], {"app": "web"}, False, id="AP-03 orphan"),
        pytest.param([reference("u")], {"app": "db"}, False, id="AP-03 other labels"),
        pytest.param([reference("u")], {}, False, id="AP-03 no labels"),
        pytest.param(
            [reference("x", False), reference("y", None), reference("u")],
            {"app": "web"},
            True,
            id="AP-03 behind others",
        ),
    ],
)
def test_claimed_is_owned_and_selected(
    references: list[Object], labels: dict[str, str], is_claimed: bool
) -> None:
    pod = make_pod(metadata={"ownerReferences": references, "labels": labels})
    assert claimed_pods("u", parse_label_selector("app=web"), [pod]) == ([pod] if is_claimed else [])
    assert claimed_pods("other", EVERYTHING, [pod]) == []


OWNER = Owner("apps/v1", "ReplicaSet", "web", "u", "default")


def filled(*pods: tuple[str, str, Object | None], node: str = "") -> Cache[OwnedPod]:
    cache: Cache[OwnedPod] = Cache(POD_INDEXERS)
    for name, namespace, owner in pods:
        metadata: dict[str, Any] = {"name": name, "namespace": namespace, "uid": name}
        if owner:
            metadata["ownerReferences"] = [owner]
        pod = make_pod(metadata=metadata, spec={"nodeName": node})
        cache.apply(WatchEvent(EventType.ADDED, pod, "1"))
    return cache


def rows() -> Cache[OwnedPod]:
    return filled(
        ("owned", "default", reference("u")),
        ("other-uid", "default", reference("v")),
        ("other-kind", "default", reference("u", kind="Job")),
        ("other-name", "default", reference("u", name="db")),
        ("other-namespace", "elsewhere", reference("u")),
        ("no-controller", "default", reference("u", False)),
        ("orphan", "default", None),
        ("orphan-elsewhere", "elsewhere", None),
    )


def test_owned_pods_are_found_by_all_of_the_owners_identity() -> None:
    """AP-04."""
    assert [pod.metadata.name for pod in pods_of_owner(rows(), OWNER)] == ["owned"]


def test_orphans_of_the_same_namespace_are_found_with_them() -> None:
    """AP-05."""
    found = [pod.metadata.name for pod in pods_of_owner(rows(), OWNER, with_orphans=True)]
    assert found == ["owned", "no-controller", "orphan"]


@pytest.mark.parametrize(
    ("owner", "message"),
    [
        (Owner("apps/v1", "ReplicaSet", "web", "u", ""), "no owner namespace provided"),
        (Owner("apps/v1", "ReplicaSet", "", "u", "default"), "no owner name provided"),
        (Owner("apps/v1", "ReplicaSet", "web", "", "default"), "no owner uid provided"),
        (Owner("apps/v1", "", "web", "u", "default"), "no owner kind provided"),
    ],
)
def test_owner_that_does_not_say_who_it_is_is_refused(owner: Owner, message: str) -> None:
    """AP-06."""
    with pytest.raises(InvalidOwnerError) as caught:
        pods_of_owner(rows(), owner)
    assert str(caught.value) == message


def test_pods_without_a_node_stand_in_no_nodes_index() -> None:
    """AP-07."""
    assert len(filled(("p", "default", None), node="node-1").by_index(BY_NODE, "node-1")) == 1
    assert filled(("p", "default", None)).by_index(BY_NODE, "") == ()


def ready(seconds_ago: float | None, status: str = "True") -> OwnedPod:
    since = None if seconds_ago is None else ago(seconds=seconds_ago)
    return make_pod(status={"conditions": [{"type": "Ready", "status": status, "lastTransitionTime": since}]})


@pytest.mark.parametrize(
    ("pod", "min_ready_seconds", "wait"),
    [
        pytest.param(ready(0, "False"), 1, None, id="AV-01a"),
        pytest.param(ready(0), 0, None, id="AV-01b"),
        pytest.param(ready(None), 1, None, id="AV-01c"),
        pytest.param(ready(0), 1, 1, id="AV-02a"),
        pytest.param(ready(20), 30, 10, id="AV-02b"),
        pytest.param(ready(51), 50, None, id="AV-02c"),
    ],
)
def test_next_check_of_a_pod(pod: OwnedPod, min_ready_seconds: int, wait: int | None) -> None:
    expected = None if wait is None else timedelta(seconds=wait)
    assert next_availability_check(pod, min_ready_seconds, NOW) == expected


@pytest.mark.parametrize(
    ("pods", "wait"),
    [
        ([ready(2), ready(0), ready(4)], 6.0),
        ([ready(15), ready(11), ready(10)], None),
        ([ready(2, "False"), make_pod()], None),
        ([], None),
    ],
)
def test_soonest_of_many_pods_decides(pods: list[OwnedPod], wait: float | None) -> None:
    """AV-03."""
    assert seconds_to_next_check(pods, 10, NOW, ManualClock(NOW)) == wait


@pytest.mark.parametrize(("later", "wait"), [(0, 6.0), (2, 4.0), (7, 0.0)])
def test_pod_that_became_available_since_the_count_is_not_missed(later: int, wait: float) -> None:
    """AV-04."""
    clock = ManualClock(NOW + timedelta(seconds=later))
    assert seconds_to_next_check([ready(2), ready(0), ready(4)], 10, NOW, clock) == wait


@pytest.mark.parametrize(
    ("pod", "min_ready_seconds", "expected"),
    [
        (ready(0), 0, True),
        (ready(None), 0, True),
        (ready(0, "False"), 0, False),
        (ready(10), 10, True),
        (ready(9), 10, False),
        (ready(None), 10, False),
    ],
)
def test_available_is_ready_for_long_enough(pod: OwnedPod, min_ready_seconds: int, expected: bool) -> None:
    assert is_available(pod, min_ready_seconds, NOW) is expected


def test_time_beyond_all_dates_keeps_nobody_from_being_judged() -> None:
    """What a node says of one pod must not stop the owner of many."""
    last = make_pod(
        status={
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "9999-12-31T23:59:59Z"}]
        }
    )
    assert not is_available(last, 2**31 - 1, NOW)
    assert next_availability_check(ready(20), 2**31 - 1, NOW) == timedelta(seconds=2**31 - 21)
    wait = seconds_to_next_check([last], 2**31 - 1, NOW, ManualClock(NOW))
    assert wait is not None
    assert wait > 2**31

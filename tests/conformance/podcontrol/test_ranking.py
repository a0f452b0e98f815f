"""Which pods go first, and which are asked for logs. An order is checked both ways: neither may say it is first."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from podlife.podcontrol import OwnedPod, deletion_order, deletion_order_with_ranks, logging_order
from podlife.podcontrol.pod_order import POD_DELETION_COST, deletion_cost
from tests.conformance.podcontrol.world import NOW, ago, make_pod

MONTH = {"days": 30}


def pod(
    phase: str = "Running",
    *,
    node: str = "node-1",
    ready: bool = False,
    ready_ago: Mapping[str, float] | None = None,
    restarts: int = 0,
    sidecar_restarts: int = 0,
    init_restarts: int = 0,
    created_ago: Mapping[str, float] | None = None,
    cost: str | None = None,
    uid: str = "",
) -> OwnedPod:
    metadata: dict[str, Any] = {"uid": uid}
    if created_ago is not None:
        metadata["creationTimestamp"] = ago(**created_ago)
    if cost is not None:
        metadata["annotations"] = {POD_DELETION_COST: cost}
    since = None if ready_ago is None else ago(**ready_ago)
    is_ready = ready or ready_ago is not None
    condition = {"type": "Ready", "status": "True" if is_ready else "False", "lastTransitionTime": since}
    spec = {
        "nodeName": node,
        "initContainers": [{"name": "side", "restartPolicy": "Always"}, {"name": "init"}],
    }
    statuses = [
        {"name": "side", "restartCount": sidecar_restarts},
        {"name": "init", "restartCount": init_restarts},
    ]
    status = {
        "phase": phase,
        "conditions": [condition],
        "containerStatuses": [{"name": "a", "restartCount": 0}, {"name": "b", "restartCount": restarts}],
        "initContainerStatuses": statuses,
    }
    return make_pod(metadata=metadata, spec=spec, status=status)


NOTHING: dict[str, float] = {}
UNSCHEDULED = pod("Pending", node="")
PENDING = pod("Pending")
UNKNOWN = pod("Unknown")
NOT_READY = pod()
READY_SINCE_NEVER = pod(ready=True)
READY_NOW = pod(ready_ago=NOTHING)
READY_A_MONTH = pod(ready_ago=MONTH)


def first_of_two(one: OwnedPod, other: OwnedPod) -> None:
    assert deletion_order([one, other]) == [one, other]
    assert deletion_order([other, one]) == [one, other]


def same(one: OwnedPod, other: OwnedPod) -> None:
    """Neither goes first: each order stays as it was."""
    for pods in ([one, other], [other, one]):
        assert [id(each) for each in deletion_order(pods)] == [id(each) for each in pods]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(pod("Running", node="", ready_ago=MONTH), PENDING, id="RK-01 unscheduled"),
        pytest.param(pod("Pending", ready_ago=MONTH), UNKNOWN, id="RK-01 Pending before Unknown"),
        pytest.param(pod("Unknown", ready_ago=MONTH), NOT_READY, id="RK-01 Unknown before Running"),
        pytest.param(NOT_READY, pod(ready=True, restarts=9), id="RK-01 not ready"),
        pytest.param(READY_SINCE_NEVER, pod(ready_ago=NOTHING, restarts=9), id="RK-01 ready since never"),
        pytest.param(READY_NOW, pod(ready_ago=MONTH, restarts=9), id="RK-01 ready for a shorter time"),
        pytest.param(pod(restarts=2), pod(restarts=1, sidecar_restarts=9), id="RK-01 more restarts"),
        pytest.param(pod(sidecar_restarts=1), pod(created_ago=NOTHING), id="RK-01 more of a sidecar"),
        pytest.param(pod(), pod(created_ago=NOTHING), id="RK-01 created never"),
        pytest.param(pod(created_ago=NOTHING), pod(created_ago=MONTH), id="RK-01 newer"),
    ],
)
def test_each_step_decides_before_the_next(first: OwnedPod, second: OwnedPod) -> None:
    first_of_two(first, second)


def test_which_node_it_is_does_not_matter() -> None:
    """RK-02."""
    same(pod(node="node-1"), pod(node="node-2"))


@pytest.mark.parametrize("phase", ["", "Succeeded", "Failed", "Dreaming"])
def test_other_phases_rank_like_pending(phase: str) -> None:
    """RK-03."""
    same(pod(phase), PENDING)
    first_of_two(pod(phase), UNKNOWN)


def test_full_order_whatever_it_was_before() -> None:
    """RK-04."""
    ordered = [
        UNSCHEDULED,
        PENDING,
        UNKNOWN,
        NOT_READY,
        pod(ready=True, restarts=3, created_ago=NOTHING),
        pod(ready_ago=NOTHING, restarts=3, created_ago=NOTHING),
        pod(ready_ago=MONTH, restarts=3, created_ago=NOTHING),
        pod(ready_ago=MONTH, restarts=2, sidecar_restarts=2, created_ago=NOTHING),
        pod(ready_ago=MONTH, restarts=2, created_ago=NOTHING),
        pod(ready_ago=MONTH, restarts=2, created_ago=MONTH),
    ]
    for seed in range(20):
        shuffled = ordered.copy()
        random.Random(seed).shuffle(shuffled)
        assert deletion_order(shuffled) == ordered


def test_sidecars_only_break_ties_and_init_containers_never_count() -> None:
    """RK-05."""
    first_of_two(pod(restarts=3), pod(restarts=2, sidecar_restarts=100))
    first_of_two(pod(restarts=2, sidecar_restarts=1), pod(restarts=2))
    same(pod(restarts=2, init_restarts=100), pod(restarts=2))


Ranked = tuple[OwnedPod, int]


def ranked(one: Ranked, other: Ranked, **options: Any) -> list[int]:
    """Which of the two comes first, asked both ways: [0, 0] is the one, [1, 1] the other, [0, 1] neither."""
    firsts = []
    for pair in ((one, other), (other, one)):
        options.setdefault("now", NOW)
        pods = deletion_order_with_ranks([each[0] for each in pair], [each[1] for each in pair], **options)
        firsts.append(0 if pods[0] is one[0] else 1)
    return firsts


FIRST, NEITHER = [0, 0], [0, 1]
COST_10, COST_100 = pod(ready_ago=NOTHING, cost="10"), pod(ready_ago=NOTHING, cost="100")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param((UNSCHEDULED, 1), (PENDING, 2), id="RK-15"),
        pytest.param((UNSCHEDULED, 2), (PENDING, 1), id="RK-15 ranks swapped"),
        pytest.param((PENDING, 1), (UNKNOWN, 2), id="RK-16 Pending before Unknown"),
        pytest.param((UNKNOWN, 1), (NOT_READY, 2), id="RK-16 Unknown before Running"),
        pytest.param((NOT_READY, 1), (READY_SINCE_NEVER, 1), id="RK-16 not ready"),
        pytest.param((READY_SINCE_NEVER, 1), (READY_NOW, 1), id="RK-17"),
        pytest.param((READY_NOW, 2), (READY_SINCE_NEVER, 1), id="RK-17 rank decides"),
        pytest.param((READY_NOW, 1), (READY_A_MONTH, 1), id="RK-18"),
        pytest.param((READY_NOW, 2), (READY_A_MONTH, 1), id="RK-18 ranked"),
        pytest.param((pod(restarts=9001), 1), (pod(), 1), id="RK-19"),
        pytest.param(
            (pod(restarts=9001, sidecar_restarts=9001), 1), (pod(restarts=9001), 1), id="RK-19 sidecars"
        ),
        pytest.param((pod(), 2), (pod(restarts=9001), 1), id="RK-19 rank decides"),
        pytest.param(
            (pod(ready_ago=NOTHING, created_ago=NOTHING), 1),
            (pod(ready_ago=NOTHING, created_ago=MONTH), 1),
            id="RK-20",
        ),
        pytest.param(
            (pod(ready_ago=NOTHING, created_ago=MONTH), 2),
            (pod(ready_ago=NOTHING, created_ago=NOTHING), 1),
            id="RK-20 rank decides",
        ),
        pytest.param((COST_10, 2), (COST_100, 1), id="RK-21"),
        pytest.param((COST_10, 1), (COST_100, 2), id="RK-10 cost before rank"),
        pytest.param((pod(cost="100"), 1), (pod(ready=True, cost="-5"), 9), id="RK-10 readiness before cost"),
        pytest.param((pod(ready_ago={"hours": 2}), 1), (pod(ready_ago={"hours": 5}), 1), id="RK-22"),
        pytest.param(
            (pod(ready_ago={"hours": 2}), 1),
            (pod(ready_ago={"hours": 5}, restarts=9), 1),
            id="RK-10 ready time before restarts",
        ),
    ],
)
def test_pair_with_ranks(first: Ranked, second: Ranked) -> None:
    assert ranked(first, second) == FIRST


def test_without_costs_the_rank_decides() -> None:
    """RK-21."""
    assert ranked((COST_100, 2), (COST_10, 1), use_deletion_cost=False) == FIRST
    assert ranked((COST_10, 1), (COST_100, 2)) == FIRST


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("0", 0),
        ("10", 10),
        ("-10", -10),
        ("2147483647", 2147483647),
        ("-2147483648", -2147483648),
        ("2147483648", 0),
        ("-2147483649", 0),
        ("+10", 0),
        ("008", 0),
        ("-008", -8),
        ("", 0),
        ("-", 0),
        ("1e3", 0),
        ("1_000", 0),
        (" 1", 0),
        ("9" * 5000, 0),
    ],
)
def test_deletion_cost_is_a_32_bit_integer_or_nothing(text: str, cost: int) -> None:
    """RK-11."""
    assert deletion_cost({POD_DELETION_COST: text}) == cost
    assert deletion_cost({}) == 0


def test_ages_of_one_power_of_two_are_decided_by_uid() -> None:
    """RK-12."""
    older, newer = {"hours": 8}, {"hours": 5}
    assert ranked((pod(uid="a", ready_ago=older), 1), (pod(uid="b", ready_ago=newer), 1)) == FIRST
    assert ranked((pod(uid="a", created_ago=older), 1), (pod(uid="b", created_ago=newer), 1)) == FIRST


def test_what_has_not_begun_ranks_before_any_age() -> None:
    """RK-12."""
    ahead = pod(uid="b", created_ago={"seconds": -5})
    assert ranked((ahead, 1), (pod(uid="a", created_ago={"seconds": 1}), 1)) == FIRST
    assert ranked((pod(uid="a", created_ago=NOTHING), 1), (ahead, 1)) == FIRST


def test_without_a_reference_time_ages_are_compared_plainly() -> None:
    """RK-13."""
    newer, older = pod(uid="b", ready_ago={"hours": 5}), pod(uid="a", ready_ago={"hours": 8})
    assert ranked((newer, 1), (older, 1), now=None) == FIRST
    assert ranked((older, 1), (newer, 1), now=NOW) == FIRST


def test_age_that_is_not_known_goes_first() -> None:
    """RK-13."""
    assert ranked((pod(uid="b"), 1), (pod(uid="a", created_ago={"hours": 5}), 1)) == FIRST


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (READY_A_MONTH, pod(ready_ago=MONTH)),
        (
            pod("Pending", node="", created_ago={"hours": 5}),
            pod("Pending", node="", created_ago={"hours": 8}),
        ),
        (pod(ready_ago={"hours": 5}), pod(ready_ago={"hours": 8})),
    ],
)
def test_pods_that_are_equal(one: OwnedPod, other: OwnedPod) -> None:
    """RK-14."""
    assert ranked((one, 1), (other, 1)) == NEITHER


def test_as_many_ranks_as_pods_are_needed() -> None:
    """RK-10."""
    with pytest.raises(ValueError, match="shorter"):
        deletion_order_with_ranks([PENDING], [], NOW)


def test_reference_time_moves_the_order() -> None:
    """RK-12: the same two pods a day later are in one power of two."""
    older, newer = pod(uid="a", ready_ago={"hours": 5}), pod(uid="b", ready_ago={"hours": 2})
    assert ranked((newer, 1), (older, 1)) == FIRST
    assert ranked((older, 1), (newer, 1), now=NOW + timedelta(days=1)) == FIRST


def logged_first(one: OwnedPod, other: OwnedPod) -> bool:
    return logging_order([one, other])[0] is one and logging_order([other, one])[0] is one


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(PENDING, pod("Running", node=""), id="RK-30 scheduled"),
        pytest.param(NOT_READY, UNKNOWN, id="RK-30 Running before Unknown"),
        pytest.param(UNKNOWN, PENDING, id="RK-30 Unknown before Pending"),
        pytest.param(READY_SINCE_NEVER, NOT_READY, id="RK-30 ready"),
        pytest.param(READY_A_MONTH, READY_NOW, id="RK-30 longer ready"),
        pytest.param(READY_NOW, READY_SINCE_NEVER, id="RK-30 ready since never"),
        pytest.param(pod(restarts=2), pod(restarts=1), id="RK-30 more restarts"),
        pytest.param(pod(created_ago=MONTH), pod(created_ago=NOTHING), id="RK-30 older"),
        pytest.param(pod(created_ago=NOTHING), pod(), id="RK-30 created never"),
    ],
)
def test_pod_to_read_logs_from(first: OwnedPod, second: OwnedPod) -> None:
    assert logged_first(first, second)


@pytest.mark.parametrize(("one", "other"), [("Failed", "Succeeded"), ("Failed", "Pending")])
def test_phases_that_rank_alike_end_the_comparison(one: str, other: str) -> None:
    """RK-31."""
    better, worse = pod(one, ready_ago=MONTH, restarts=9), pod(other)
    assert logging_order([worse, better])[0] is worse
    assert logging_order([better, worse])[0] is better

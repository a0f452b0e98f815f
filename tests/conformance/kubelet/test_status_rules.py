"""The merge for the patch, the last status of a pod, and the conditions."""

from __future__ import annotations

import copy
from datetime import timedelta
from typing import Any

import pytest

from podlife.kubelet.status.conditions import all_containers_restarting, containers_ready, initialized, ready
from podlife.kubelet.status.conditions import condition as kubelet_condition
from podlife.kubelet.status.patch import merged_status
from podlife.kubelet.status.terminated import terminated_status
from tests.conformance.kubelet.api_world import World
from tests.conformance.kubelet.kit import (
    START,
    UNKNOWN_137,
    Object,
    container,
    pod,
    shown,
    sidecar,
    static,
    terminated,
)

LATER = START + timedelta(minutes=1)
BEGIN, AFTER = "2030-01-01T00:00:00Z", "2030-01-01T00:01:00Z"


def condition(type_: str, value: str = "True", **fields: str) -> Object:
    return {"type": type_, "status": value, "lastTransitionTime": BEGIN, **fields}


READY = [condition("Ready"), condition("ContainersReady")]
FOREIGN = condition("example.com/gate", reason="theirs")
TARGET = condition("DisruptionTarget", reason="TerminationByKubelet")
THEIRS = condition("DisruptionTarget", reason="EvictionByEvictionAPI")


def status(phase: str, *conditions: Object, **fields: Any) -> Object:
    return {"phase": phase, "conditions": list(conditions), **fields}


def merged(old: Object, new: Object, *, could_run: bool = False) -> Object:
    before = copy.deepcopy((old, new))
    result = merged_status(pod(), old, new, could_run=could_run, now=LATER)
    assert (old, new) == before
    return result


def test_no_change_merges_to_the_same() -> None:
    """SM-20"""
    same = status("Running", *READY)
    assert merged(same, same) == same


@pytest.mark.parametrize(("phase", "reason"), [("Failed", "PodFailed"), ("Succeeded", "PodCompleted")])
def test_an_end_is_told_when_nothing_can_run_any_more(phase: str, reason: str) -> None:
    """SM-21"""
    told = merged(status("Running", *READY), status(phase, *READY, reason="why", message="how"))
    assert (told["phase"], told["reason"], told["message"]) == (phase, "why", "how")
    assert told["conditions"] == [
        {"type": type_, "status": "False", "reason": reason, "lastTransitionTime": AFTER}
        for type_ in ("Ready", "ContainersReady")
    ]


def test_an_end_is_withheld_while_something_could_run() -> None:
    """SM-22"""
    old = status("Running", *READY, reason="before", message="then")
    assert merged(old, status("Failed", *READY, reason="why", message="how"), could_run=True) == old
    assert "reason" not in merged(status("Running"), status("Failed", reason="why"), could_run=True)


@pytest.mark.parametrize(
    ("old", "new", "could_run", "told"),
    [
        pytest.param("Running", "Failed", False, ["TerminationByKubelet"], id="SM-23 at the end"),
        pytest.param("Running", "Failed", True, [], id="SM-23 could run"),
        pytest.param("Running", "Running", False, [], id="SM-23 no end"),
        pytest.param("Failed", "Failed", False, [], id="SM-23 had ended before"),
    ],
)
def test_disruption_is_told_with_the_end_only(old: str, new: str, could_run: bool, told: list[str]) -> None:
    result = merged(status(old), status(new, TARGET), could_run=could_run)
    assert [each["reason"] for each in result["conditions"]] == told


@pytest.mark.parametrize(
    ("new", "could_run", "reason"),
    [
        pytest.param("Running", False, "EvictionByEvictionAPI", id="SM-24 no end"),
        pytest.param("Failed", True, "EvictionByEvictionAPI", id="SM-24 withheld"),
        pytest.param("Failed", False, "TerminationByKubelet", id="SM-24 at the end"),
    ],
)
def test_a_disruption_told_by_others_stays_until_the_end(new: str, could_run: bool, reason: str) -> None:
    result = merged(status("Running", THEIRS), status(new, TARGET), could_run=could_run)
    assert [each["reason"] for each in result["conditions"]] == [reason]


def test_conditions_of_others_are_theirs() -> None:
    """SM-25"""
    ours = {**FOREIGN, "status": "False", "reason": "ours"}
    unknown = condition("example.com/other")
    assert merged(status("Running", FOREIGN), status("Running", ours, unknown))["conditions"] == [FOREIGN]


def test_claims_of_others_are_theirs() -> None:
    """SM-25"""
    old = status("Running", resourceClaimStatuses=[{"name": "c"}], qosClass="Burstable")
    told = merged(old, status("Running", resourceClaimStatuses=[{"name": "d"}]))
    assert (told["resourceClaimStatuses"], told["qosClass"]) == ([{"name": "c"}], "Burstable")


def test_a_change_of_readiness_is_taken() -> None:
    """SM-26"""
    unready = condition("Ready", "False")
    assert merged(status("Running", FOREIGN, *READY), status("Running", unready))["conditions"] == [
        FOREIGN,
        unready,
    ]


# The last status


@pytest.mark.parametrize(
    ("phase", "expected"),
    [
        pytest.param("Pending", "Failed", id="SM-40 Pending"),
        pytest.param("Running", "Failed", id="SM-40 Running"),
        pytest.param("Unknown", "Failed", id="SM-40 Unknown"),
        pytest.param("odd", "Failed", id="SM-40 odd"),
        pytest.param("Succeeded", "Succeeded", id="SM-40 Succeeded"),
        pytest.param("Failed", "Failed", id="SM-40 Failed"),
    ],
)
def test_the_last_phase(phase: str, expected: str) -> None:
    each = pod(status={"phase": phase})
    assert terminated_status(each, each["status"])["phase"] == expected
    assert terminated_status(static(each), each["status"])["phase"] == phase


WAITING_AFTER_2 = {"state": {"waiting": {}}, "lastState": terminated(2)}
LOST = "lost"

# init states, regular states, init afterwards, regular afterwards
LAST_ROWS = [
    pytest.param(["W", "W"], ["W"], [LOST, "W"], ["W"], id="SM-44a SM-42 SM-43"),
    pytest.param(["W"], ["W"], [LOST], ["W"], id="SM-44b SM-42 SM-43"),
    pytest.param(["W", "W", "Tf", "W"], ["W"], [LOST, LOST, "Tf", "W"], ["W"], id="SM-44c SM-43"),
    pytest.param(["W", "W", "Tf"], ["W"], [LOST, LOST, "Tf"], ["W"], id="SM-44d SM-42"),
    pytest.param(["W", "W", "T0"], ["W"], [LOST, LOST, "T0"], [LOST], id="SM-44e SM-41"),
    pytest.param(["W", "W", "W*"], ["W"], [LOST, LOST, LOST], [LOST], id="SM-44f"),
    pytest.param(["W"], ["R"], [LOST], [LOST], id="SM-44g SM-41"),
    pytest.param(["W"], ["T0"], [LOST], ["T0"], id="SM-44h"),
    pytest.param(["W"], ["W*"], [LOST], [LOST], id="SM-44i SM-41"),
    pytest.param([], ["Wf"], [], [LOST], id="SM-44j"),
    pytest.param([], ["W"], [], [LOST], id="SM-44k SM-41"),
]


@pytest.mark.parametrize(("init", "regular", "init_after", "regular_after"), LAST_ROWS)
def test_the_last_states_of_containers(
    init: list[str], regular: list[str], init_after: list[str], regular_after: list[str]
) -> None:
    init_statuses = [shown(f"init-{place}", each) for place, each in enumerate(init)]
    regular_statuses = [shown(f"c-{place}", each) for place, each in enumerate(regular)]
    each = pod(
        *(container(one["name"]) for one in regular_statuses),
        init=[container(one["name"]) for one in init_statuses],
        status={
            "phase": "Pending",
            "containerStatuses": regular_statuses,
            "initContainerStatuses": init_statuses,
        },
    )
    result = terminated_status(each, each["status"])
    assert result["initContainerStatuses"] == [
        {**one, "state": UNKNOWN_137} if after == LOST else one
        for one, after in zip(init_statuses, init_after, strict=True)
    ]
    assert result["containerStatuses"] == [
        {**one, "state": UNKNOWN_137} if after == LOST else one
        for one, after in zip(regular_statuses, regular_after, strict=True)
    ]
    assert result["phase"] == "Failed"


@pytest.mark.parametrize(("state", "is_lost"), [("R", False), ("Rs", True), ("W", False)])
def test_a_sidecar_at_the_end_of_the_list_says_whether_the_pod_was_initialized(
    state: str, is_lost: bool
) -> None:
    """SM-41: only if it started."""
    each = pod(
        init=[sidecar("x")],
        status={"containerStatuses": [shown("a", "W")], "initContainerStatuses": [shown("x", state)]},
    )
    [regular] = terminated_status(each, each["status"])["containerStatuses"]
    assert (regular["state"] == UNKNOWN_137) is is_lost


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({"phase": "Failed"}, {"phase": "Failed"}, id="SM-44l"),
        pytest.param({"phase": "Running"}, {"phase": "Failed"}, id="SM-44m no statuses"),
        pytest.param(
            {"phase": "Running", "containerStatuses": [{"name": "a", "state": terminated(2)}]},
            {"phase": "Failed", "containerStatuses": [{"name": "a", "state": terminated(2)}]},
            id="SM-44m one that ended",
        ),
    ],
)
def test_the_last_status_without_init_containers(given: Object, expected: Object) -> None:
    assert terminated_status(pod(status=given), given) == expected


def test_a_failure_that_is_known_survives_an_old_pod_object() -> None:
    """SM-45"""
    world = World()
    each = world.add(pod(status={"phase": "Running"}))
    world.manager.set_status(each, {"phase": "Failed", "reason": "Evicted"})
    world.manager.terminate(each)
    kept = world.manager.status("u") or {}
    assert (kept["phase"], kept["reason"]) == ("Failed", "Evicted")


# Conditions

TWO = pod(container("a"), container("b"), init=[container("i"), sidecar("x")])
UP = [
    {"name": "x", "ready": True, "started": True, "state": {"running": {}}},
    {"name": "a", "ready": True, "state": {"running": {}}},
    {"name": "b", "ready": True, "state": {"running": {}}},
]
UNKNOWN, UNREADY = "containers with unknown status", "containers with unready status"
INCOMPLETE = "containers with incomplete status"


def told(found: Object) -> str:
    """Its status, with reason and message where it has them: `False Reason: message`."""
    reason = f" {found['reason']}" if "reason" in found else ""
    return found["status"] + reason + (f": {found['message']}" if "message" in found else "")


@pytest.mark.parametrize(
    ("statuses", "phase", "expected"),
    [
        pytest.param(None, "Pending", "False UnknownContainerStatuses", id="SM-60 none"),
        pytest.param(UP, "Running", "True", id="SM-60 all ready"),
        pytest.param(UP, "Succeeded", "False PodCompleted", id="SM-60 succeeded"),
        pytest.param(UP[:1], "Failed", "False PodFailed", id="SM-60 failed"),
        pytest.param(
            UP[:1], "Succeeded", f"False ContainersNotReady: {UNKNOWN}: [a b]", id="SM-60 ended but unknown"
        ),
        pytest.param(
            [{"name": "x"}, {"name": "a"}],
            "Running",
            f"False ContainersNotReady: {UNKNOWN}: [b], {UNREADY}: [x a]",
            id="SM-60 unknown and unready",
        ),
    ],
)
def test_containers_ready(statuses: list[Object] | None, phase: str, expected: str) -> None:
    for found in (containers_ready(TWO, statuses, phase), ready(TWO, [], statuses, phase)):
        assert told(found) == expected


MISSING = 'corresponding condition of pod readiness gate "g" does not exist.'
CLOSED = 'the status of pod readiness gate "g" is not "True", but False'


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        pytest.param([], f"False ReadinessGatesNotReady: {MISSING}", id="SM-61 missing"),
        pytest.param(
            [condition("g", "False")], f"False ReadinessGatesNotReady: {CLOSED}", id="SM-61 not True"
        ),
        pytest.param([condition("g")], "True", id="SM-61 open"),
    ],
)
def test_readiness_gates(conditions: list[Object], expected: str) -> None:
    gated = {**TWO, "spec": {**TWO["spec"], "readinessGates": [{"conditionType": "g"}]}}
    assert told(ready(gated, conditions, UP, "Running")) == expected


def test_a_pod_is_not_ready_for_the_reason_that_its_containers_are_not() -> None:
    """SM-61"""
    same = containers_ready(TWO, UP[:2], "Running")
    assert ready(TWO, [], UP[:2], "Running") == {**same, "type": "Ready"}


I_RUNS = [shown("i", "R"), shown("x", "W")]


@pytest.mark.parametrize(
    ("statuses", "phase", "was", "expected"),
    [
        pytest.param(None, "Pending", [], "False UnknownContainerStatuses", id="SM-62 none"),
        pytest.param([shown("i", "T0", ready=True), shown("x", "Rs")], "Pending", [], "True", id="SM-62 all"),
        pytest.param(
            [shown("i", "T0"), shown("x", "R")], "Succeeded", [], "True PodCompleted", id="SM-62 end"
        ),
        pytest.param([shown("a", "R")], "Running", [], "True", id="SM-62 a regular one started"),
        pytest.param(
            I_RUNS,
            "Pending",
            [],
            f"False ContainersNotInitialized: {INCOMPLETE}: [i x]",
            id="SM-62 incomplete",
        ),
        pytest.param(
            [shown("x", "W")],
            "Pending",
            [],
            f"False ContainersNotInitialized: {UNKNOWN}: [i], {INCOMPLETE}: [x]",
            id="SM-62 unknown",
        ),
        pytest.param(I_RUNS, "Pending", [condition("Initialized")], "True", id="SM-62 was before"),
    ],
)
def test_initialized(statuses: list[Object] | None, phase: str, was: list[Object], expected: str) -> None:
    assert told(initialized(TWO, {"conditions": was}, statuses, phase)) == expected


def test_the_other_conditions_of_a_node() -> None:
    """SM-03: with the generation that they speak of."""
    each = pod(metadata={"generation": 3})
    scheduled = {"type": "PodScheduled", "status": "True", "observedGeneration": 3}
    assert kubelet_condition(each, "PodScheduled", True) == scheduled
    assert kubelet_condition(each, "PodScheduled", False)["status"] == "False"
    assert all_containers_restarting(each, "Running", is_restarting=True)["status"] == "True"
    assert all_containers_restarting(each, "Running", is_restarting=False)["status"] == "False"
    assert all_containers_restarting(each, "Failed", is_restarting=True)["reason"] == "PodFailed"

"""Statuses of containers and of the whole pod."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from podlife.kubelet.kuberuntime.reason_cache import StartFailure
from podlife.kubelet.observed_pod import ObservedPod
from podlife.kubelet.prober.state import ProbeResult, ProbeType
from podlife.kubelet.runtime import ContainerStatus, SandboxConfig, SandboxState, SandboxStatus
from podlife.kubelet.status.container_statuses import (
    PodObservation,
    container_statuses,
    is_log_needed,
    terminated_message,
)
from podlife.kubelet.status.pod_status import NodeFacts, pod_status
from tests.conformance.kubelet.kit import (
    START,
    UNKNOWN_137,
    Object,
    container,
    deleting,
    instance,
    pod,
    shown,
    sidecar,
    terminated,
)

GONE = {
    "terminated": {
        "reason": "ContainerStatusUnknown",
        "message": "The container could not be located when the pod was deleted.  The container used to be Running",
        "exitCode": 137,
    }
}
REMOVED = {
    "reason": "RestartingAllContainers",
    "message": "The container is removed because RestartAllContainers in place",
}
BOX = SandboxStatus("s", SandboxConfig("u", "ns", "p"), SandboxState.READY, START, ("10.0.0.1",))


def seen(of_pod: Object, *containers: ContainerStatus, **fields: Any) -> PodObservation:
    return PodObservation(of_pod, ObservedPod.of([BOX], containers), "sim", **fields)


def regular(of_pod: Object, old: Object | None, *containers: ContainerStatus, **fields: Any) -> Object:
    """The status of the only regular container."""
    before = [] if old is None else [old]
    [status] = container_statuses(seen(of_pod, *containers, **fields), of_pod["spec"]["containers"], before)
    return status


def init(of_pod: Object, old: Object | None, *containers: ContainerStatus) -> Object:
    before = [] if old is None else [old]
    specs = of_pod["spec"]["initContainers"]
    [status] = container_statuses(seen(of_pod, *containers), specs, before, is_init=True)
    return status


@pytest.mark.parametrize(
    ("of_pod", "reason", "count"),
    [
        pytest.param(pod(), "ContainerCreating", 4, id="CS-01 alone"),
        pytest.param(pod(init=[container("i")]), "PodInitializing", 4, id="CS-01 with init containers"),
        pytest.param(deleting(pod()), "ContainerCreating", 3, id="CS-01 deleting"),
    ],
)
def test_one_that_ran_and_is_gone_has_ended(of_pod: Object, reason: str, count: int) -> None:
    status = regular(of_pod, shown("a", "R", restartCount=3))
    assert (status["state"], status["lastState"]) == ({"waiting": {"reason": reason}}, GONE)
    assert status["restartCount"] == count


def test_one_that_had_ended_and_is_gone_keeps_its_status() -> None:
    """CS-02"""
    old = shown("a", "Tf", restartCount=3)
    assert regular(pod(), old) == old


def test_one_that_never_was_waits() -> None:
    """CS-01"""
    status = regular(pod(), None)
    assert (status["state"], status["lastState"], status["restartCount"]) == (
        {"waiting": {"reason": "ContainerCreating"}},
        {},
        0,
    )


def test_a_count_never_becomes_less() -> None:
    """CS-03"""
    old = shown("a", "Tf", restartCount=5, containerID="sim://old")
    status = regular(pod(), old, instance("a", "running"))
    assert (status["restartCount"], status["lastState"]) == (6, terminated(1))


@pytest.mark.parametrize("extra", [[], [instance("a", "running")]])
def test_a_missing_init_container_is_taken_as_done_when_a_regular_one_is_there(
    extra: list[ContainerStatus],
) -> None:
    """CS-04"""
    state = init(pod(init=[container("i")]), None, *extra)["state"]
    if not extra:
        assert state == {"waiting": {"reason": "PodInitializing"}}
    else:
        assert state["terminated"] == {
            "reason": "Completed",
            "message": "Unable to get init container status from container runtime and pod has been "
            "initialized, treat it as exited normally",
            "exitCode": 0,
        }


def test_a_missing_sidecar_waits() -> None:
    """CS-04"""
    state = init(pod(init=[sidecar("x")]), None, instance("a", "running"))["state"]
    assert state == {"waiting": {"reason": "PodInitializing"}}


@pytest.mark.parametrize(
    ("old", "known", "expected"),
    [
        pytest.param(None, "created", {"waiting": {}}, id="CS-05 created"),
        pytest.param("R", "unknown", UNKNOWN_137, id="CS-05 unknown, ran before"),
        pytest.param("W", "unknown", {"waiting": {}}, id="CS-05 unknown, waited before"),
        pytest.param(None, "unknown", {"waiting": {}}, id="CS-05 unknown, new"),
    ],
)
def test_states_that_say_little(old: str | None, known: str, expected: Object) -> None:
    before = None if old is None else shown("a", old, restartCount=1)
    status = regular(pod(), before, instance("a", known))
    assert status["state"] == expected
    assert status["restartCount"] == (2 if expected is UNKNOWN_137 else 0 if old is None else 1)


def test_the_newest_gives_the_state_and_the_one_before_the_last_state() -> None:
    """CS-06"""
    known = [
        instance("a", "exited", 1, started=0, finished=1, reason="Error"),
        instance("a", "exited", 2, attempt=1, started=5, finished=6, reason="Error"),
        instance("a", "running", attempt=2, started=9),
    ]
    status = regular(pod(), None, *known)
    assert status["state"] == {"running": {"startedAt": "2030-01-01T00:00:09Z"}}
    assert status["lastState"]["terminated"]["exitCode"] == 2
    assert (status["restartCount"], status["containerID"]) == (2, "sim://a-2")


def test_one_that_could_not_be_started_shows_why_it_waits() -> None:
    """CS-07"""
    failures = {"a": StartFailure("CrashLoopBackOff", "back-off 10s")}
    ended = instance("a", "exited", 1, reason="Error")
    status = regular(pod(), None, ended, start_failures=failures)
    assert status["state"] == {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
    assert status["lastState"]["terminated"]["exitCode"] == 1
    not_due = regular(pod(policy="Never"), None, ended, start_failures=failures)
    assert not_due["state"]["terminated"]["exitCode"] == 1
    new = regular(pod(), None, start_failures={"a": StartFailure("ErrImagePull", "no such image")})
    assert (new["state"]["waiting"]["reason"], new["lastState"]) == ("ErrImagePull", {})


@pytest.mark.parametrize("old", ["R", "Tf"])
def test_what_a_restart_of_the_whole_pod_removed_is_told_so(old: str) -> None:
    """CS-08"""
    status = regular(pod(), shown("a", old, restartCount=3), is_restarting_all=True)
    assert status["state"] == {"waiting": REMOVED}
    assert status["lastState"] == {"terminated": {**REMOVED, "exitCode": 137}}
    assert status["restartCount"] == 4


# The whole status

NODE = NodeFacts(START, ("192.0.2.1",))


def whole(what: PodObservation, old: Object | None = None, *, is_terminal: bool = False) -> Object:
    before = what.pod["status"] if old is None else old
    return pod_status(what, before, lambda type_, id_: None, NODE, is_terminal=is_terminal)


@pytest.mark.parametrize("where", ["the API", "here"])
@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_terminal_phase_is_never_left(where: str, phase: str) -> None:
    """PH-20"""
    ended = {"phase": phase, "reason": "why", "message": "how"}
    of_pod = pod(status=ended if where == "the API" else {"phase": "Running"})
    status = whole(seen(of_pod, instance("a", "running")), ended)
    assert (status["phase"], status["reason"], status["message"]) == (phase, "why", "how")


def test_what_the_api_server_holds_wins_over_another_end() -> None:
    """PH-20"""
    of_pod = pod(status={"phase": "Failed"}, policy="Never")
    assert whole(seen(of_pod, instance("a", "exited", 0)))["phase"] == "Failed"


def test_reason_and_message_go_with_the_phase() -> None:
    """PH-20"""
    old = {"phase": "Pending", "reason": "why", "message": "how"}
    assert whole(seen(pod()), old)["reason"] == "why"
    changed = whole(seen(pod(), instance("a", "running")), old)
    assert changed["phase"] == "Running"
    assert "reason" not in changed
    assert "message" not in changed


def test_running_may_fall_back_to_pending() -> None:
    """PH-21"""
    old = {"phase": "Running", "containerStatuses": [shown("a", "R"), shown("b", "W")]}
    of_pod = pod(container("a"), container("b"))
    assert whole(seen(of_pod, instance("a", "running")), old)["phase"] == "Pending"


DISRUPTED = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}


@pytest.mark.parametrize(
    ("is_terminal", "phase"),
    [pytest.param(True, "Failed", id="PH-22"), pytest.param(False, "Running", id="PH-23")],
)
def test_a_deleted_pod_whose_containers_vanished(is_terminal: bool, phase: str) -> None:
    old = {"phase": "Running", "containerStatuses": [shown("a", "R")], "conditions": [DISRUPTED]}
    status = whole(seen(deleting(pod(status=old))), is_terminal=is_terminal)
    assert status["phase"] == phase
    assert DISRUPTED in status["conditions"]


def test_a_pod_that_runs_is_told_whole() -> None:
    """PH-20: with the conditions of others, its addresses, and who is ready."""
    foreign = {"type": "example.com/gate", "status": "True"}
    of_pod = pod(status={"conditions": [foreign, {"type": "Ready", "status": "False"}]})
    status = whole(seen(of_pod, instance("a", "running")))
    assert {each["type"]: each["status"] for each in status["conditions"]} == {
        "example.com/gate": "True",
        "PodReadyToStartContainers": "True",
        "Initialized": "True",
        "Ready": "True",
        "ContainersReady": "True",
        "PodScheduled": "True",
    }
    assert (status["podIP"], status["hostIP"]) == ("10.0.0.1", "192.0.2.1")
    [one] = status["containerStatuses"]
    assert (one["ready"], one["started"]) == (True, True)


@pytest.mark.parametrize(
    ("boxes", "expected"),
    [
        ([], "10.0.0.9"),
        ([replace(BOX, state=SandboxState.NOT_READY, ips=())], "10.0.0.9"),
        ([BOX], "10.0.0.1"),
    ],
)
def test_a_pod_keeps_its_address_when_its_sandbox_is_gone(boxes: list[SandboxStatus], expected: str) -> None:
    """PH-23, PL-08"""
    old = {"phase": "Running", "podIPs": [{"ip": "10.0.0.9"}]}
    assert whole(PodObservation(pod(), ObservedPod.of(boxes, []), "sim"), old)["podIP"] == expected


# Ready and started

STARTUP, READINESS = ProbeType.STARTUP, ProbeType.READINESS
OK, BAD = ProbeResult.SUCCESS, ProbeResult.FAILURE


def flags(
    one: Object, state: str = "running", results: Any = None, old: Object | None = None
) -> tuple[bool, bool]:
    of_pod = pod(one, status=old or {})
    known = instance("a", state, 0)
    status = pod_status(
        seen(of_pod, known), of_pod["status"], lambda type_, id_: (results or {}).get(type_), NODE
    )
    [found] = status["containerStatuses"]
    return found["started"], found["ready"]


PROBED = container(startupProbe={"exec": {}}, readinessProbe={"exec": {}})


@pytest.mark.parametrize(
    ("one", "state", "results", "expected"),
    [
        pytest.param(container(), "running", {}, (True, True), id="PR-15 no probe"),
        pytest.param(PROBED, "running", {}, (False, False), id="PR-15 startup has not run"),
        pytest.param(PROBED, "running", {STARTUP: BAD}, (False, False), id="PR-15 not started"),
        pytest.param(PROBED, "running", {STARTUP: OK}, (True, False), id="PR-15 readiness pending"),
        pytest.param(
            PROBED, "running", {STARTUP: OK, READINESS: BAD}, (True, False), id="PR-15 readiness failed"
        ),
        pytest.param(PROBED, "running", {STARTUP: OK, READINESS: OK}, (True, True), id="PR-15 ready"),
        pytest.param(PROBED, "exited", {STARTUP: OK, READINESS: OK}, (False, False), id="PR-15 not running"),
    ],
)
def test_started_and_ready(one: Object, state: str, results: Any, expected: tuple[bool, bool]) -> None:
    assert flags(one, state, results) == expected


@pytest.mark.parametrize(("code", "expected"), [(0, True), (1, False)])
def test_an_init_container_is_ready_when_it_ended_well(code: int, expected: bool) -> None:
    """PR-15"""
    of_pod = pod(init=[container("i"), sidecar("x", readinessProbe={"exec": {}})])
    status = whole(seen(of_pod, instance("i", "exited", code), instance("x", "running")))
    plain, aside = status["initContainerStatuses"]
    assert plain["ready"] is expected
    assert (aside["started"], aside["ready"]) == (True, False)


@pytest.mark.parametrize(("seconds", "expected"), [(60, (True, True)), (5, (True, False))])
def test_an_agent_that_was_started_again_goes_on_with_what_was_said(
    seconds: float, expected: tuple[bool, bool]
) -> None:
    """PR-17: for containers that were there long before it."""
    one = container(readinessProbe={"exec": {}})
    old = {"containerStatuses": [shown("a", "R", containerID="sim://a-0", ready=True, started=True)]}
    of_pod = pod(one, status=old)
    known = replace(instance("a", "running"), started_at=START)
    later = NodeFacts(START.replace(minute=int(seconds // 60), second=int(seconds % 60)))
    [found] = pod_status(seen(of_pod, known), old, lambda type_, id_: None, later)["containerStatuses"]
    assert (found["started"], found["ready"]) == expected


@pytest.mark.parametrize(("container_id", "is_started"), [("sim://a-0", True), ("sim://before", False)])
def test_that_a_container_had_started_holds_for_that_container_alone(
    container_id: str, is_started: bool
) -> None:
    """PR-15, PR-17"""
    old = {"containerStatuses": [shown("a", "Rs", containerID=container_id)]}
    assert flags(container(startupProbe={"exec": {}}), old=old)[0] is is_started


@pytest.mark.parametrize(("sandbox_id", "phase"), [("s", "Running"), ("before", "Pending")])
def test_a_regular_container_of_the_newest_sandbox_shows_that_the_pod_was_initialized(
    sandbox_id: str, phase: str
) -> None:
    """PH-01"""
    of_pod = pod(init=[sidecar("x", startupProbe={"exec": {}})])
    known = [replace(instance("a", "running"), sandbox_id=sandbox_id), instance("x", "running")]
    assert whole(seen(of_pod, *known))["phase"] == phase


# What a container that ended has to say

FALLBACK = container(terminationMessagePolicy="FallbackToLogsOnError")


@pytest.mark.parametrize(
    ("code", "written", "expected"), [(1, "", True), (0, "", False), (1, "said", False), (0, "said", False)]
)
def test_the_log_speaks_for_one_that_failed_and_wrote_nothing(
    code: int, written: str, expected: bool
) -> None:
    known = instance("a", "exited", code, termination_message=written)
    assert is_log_needed(FALLBACK, known) is expected
    assert not is_log_needed(container(), known)
    assert terminated_message(FALLBACK, known, "the log") == ("the log" if expected else written)


def test_what_the_runtime_says_comes_first() -> None:
    known = instance("a", "exited", 1, message="OOM", termination_message="said")
    assert terminated_message(container(), known) == "OOM: said"
    assert terminated_message(container(), instance("a", "exited", 1, message="OOM")) == "OOM"


def test_the_end_of_what_is_too_long_is_kept() -> None:
    known = instance("a", "exited", 1, termination_message="x" * 5000 + "end")
    said = terminated_message(container(), known)
    assert (len(said), said[-3:]) == (4096, "end")
    lines = "".join(f"line {number}\n" for number in range(200))
    log = terminated_message(FALLBACK, instance("a", "exited", 1), lines)
    assert log.splitlines() == [f"line {number}" for number in range(120, 200)]
    assert len(terminated_message(FALLBACK, instance("a", "exited", 1), "y" * 9000)) == 2048

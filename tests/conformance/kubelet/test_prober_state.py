"""When probes run, and what their results mean."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from podlife.kubelet.prober.manager import first_delay_seconds, probers_of, probers_that_stop
from podlife.kubelet.prober.prober import (
    MAX_TRIES,
    ProbeEvent,
    ProbeOutcome,
    exec_command,
    http_outcome,
    probe_event,
    result_of,
)
from podlife.kubelet.prober.state import (
    Next,
    ProbeDecision,
    Prober,
    ProbeResult,
    ProberState,
    ProbeType,
    probe_spec,
)
from tests.conformance.kubelet.kit import START, Object, container, deleting, pod, rule, sidecar

LIVENESS, READINESS, STARTUP = ProbeType.LIVENESS, ProbeType.READINESS, ProbeType.STARTUP
OK, BAD, UNKNOWN = ProbeResult.SUCCESS, ProbeResult.FAILURE, ProbeResult.UNKNOWN
TYPES = [LIVENESS, READINESS, STARTUP]


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


class Probed:
    """A container with one probe, and the verdict on it."""

    def __init__(self, type_: ProbeType, of_pod: Object | None = None, **spec: int) -> None:
        self.pod = of_pod or pod()
        one = (self.pod["spec"].get("initContainers") or self.pod["spec"]["containers"])[0]
        one[type_.value] = spec
        self.prober = Prober(self.pod, one, type_, START)
        self.state = ProberState()
        self.result: ProbeResult | None = None
        self.name = one["name"]

    def look(self, state: Object | None, now: float = 0, **fields: Any) -> Next:
        """At a status in which the container has this state."""
        phase = fields.pop("phase", "Running")
        status = {"name": self.name, "containerID": "sim://1", **fields, "state": state}
        shown = {"phase": phase, "containerStatuses": [] if state is None else [status]}
        return self.after(self.prober.decide(self.state, self.pod, shown, at(now)))

    def take(self, result: ProbeResult | None) -> ProbeResult | None:
        self.after(self.prober.take(self.state, result))
        return self.result

    def after(self, decision: ProbeDecision) -> Next:
        self.state = decision.state
        if decision.result is not None:
            self.result = decision.result
        return decision.next


def running(started: float = 0) -> Object:
    return {"running": {"startedAt": at(started).isoformat()}}


def ended(code: int) -> Object:
    return {"terminated": {"exitCode": code}}


def test_no_number_of_a_probe_is_below_what_validation_allows() -> None:
    """PR-01: an older server may have stored it, and with a period of -1 a prober would never pause."""
    thresholds = ("successThreshold", "failureThreshold")
    numbers = ("timeoutSeconds", "periodSeconds", "initialDelaySeconds", *thresholds)
    spec = probe_spec(container(livenessProbe=dict.fromkeys(numbers, -1)), LIVENESS)
    assert spec == {**dict.fromkeys(numbers, 1), "initialDelaySeconds": 0}


def test_what_stands_for_numbers_left_out() -> None:
    """PR-01"""
    spec = probe_spec(container(livenessProbe={}), LIVENESS)
    assert [spec[f"{name}Seconds"] for name in ("timeout", "period", "initialDelay")] == [1, 10, 0]
    assert [spec[f"{name}Threshold"] for name in ("success", "failure")] == [1, 3]


@pytest.mark.parametrize(("type_", "expected"), [(LIVENESS, OK), (READINESS, BAD), (STARTUP, UNKNOWN)])
def test_the_verdict_before_the_first_result(type_: ProbeType, expected: ProbeResult) -> None:
    """PR-02"""
    probed = Probed(type_)
    probed.look(running())
    assert probed.result is expected


@pytest.mark.parametrize("type_", TYPES)
def test_what_a_look_at_the_status_decides(type_: ProbeType) -> None:
    """PR-03"""
    probed = Probed(type_, pod(policy="Never"))
    nothing = probed.prober.decide(probed.state, probed.pod, None, START)
    assert (nothing.next, nothing.result) == (Next.WAIT, None)
    assert (probed.look(None), probed.result) == (Next.WAIT, None)
    assert (probed.look({"waiting": {}}), probed.result) == (Next.WAIT, BAD)
    probed.result = None
    assert [probed.look(ended(1)), probed.result] == [Next.STOP, BAD]
    for phase in ("Failed", "Succeeded"):
        assert probed.look(running(), phase=phase) is Next.STOP


RULED = container(restartPolicy="Never", restartPolicyRules=[rule("In", 42)])


@pytest.mark.parametrize(
    ("of_pod", "code", "goes_on"),
    [
        pytest.param(pod(policy="OnFailure"), 1, True, id="PR-04 OnFailure, failed"),
        pytest.param(pod(policy="OnFailure"), 0, False, id="PR-04 OnFailure, succeeded"),
        pytest.param(pod(policy="Always"), 0, True, id="PR-04 Always"),
        pytest.param(pod(policy="Never"), 1, False, id="PR-04 Never"),
        pytest.param(pod(dict(RULED), policy="Never"), 42, True, id="PR-04 rule"),
        pytest.param(pod(dict(RULED), policy="Never"), 41, False, id="PR-04 another rule"),
        pytest.param(pod(init=[sidecar()], policy="Never"), 1, True, id="PR-04 sidecar"),
    ],
)
def test_an_ended_container_is_waited_for_if_it_comes_back(of_pod: Object, code: int, goes_on: bool) -> None:
    probed = Probed(READINESS, of_pod)
    assert probed.look(ended(code)) is (Next.WAIT if goes_on else Next.STOP)
    assert probed.result is BAD


@pytest.mark.parametrize(
    ("type_", "next_", "result"),
    [(LIVENESS, Next.STOP, OK), (STARTUP, Next.STOP, OK), (READINESS, Next.RUN, BAD)],
)
def test_a_pod_that_is_being_deleted_is_not_found_ill(
    type_: ProbeType, next_: Next, result: ProbeResult
) -> None:
    """PR-05"""
    probed = Probed(type_, deleting(pod()))
    assert probed.look(running(), started=True) is next_
    assert probed.result is result


@pytest.mark.parametrize(("now", "next_"), [(0, Next.WAIT), (9.9, Next.WAIT), (10, Next.RUN), (60, Next.RUN)])
def test_nothing_runs_within_the_initial_delay(now: float, next_: Next) -> None:
    """PR-06"""
    assert Probed(LIVENESS, initialDelaySeconds=10).look(running(), now, started=True) is next_


@pytest.mark.parametrize(
    ("type_", "started", "next_"),
    [
        (LIVENESS, False, Next.WAIT),
        (READINESS, None, Next.WAIT),
        (STARTUP, False, Next.RUN),
        (LIVENESS, True, Next.RUN),
        (READINESS, True, Next.RUN),
        (STARTUP, True, Next.WAIT),
    ],
)
def test_startup_comes_first_and_alone(type_: ProbeType, started: bool | None, next_: Next) -> None:
    """PR-07"""
    assert Probed(type_).look(running(), started=started) is next_


def test_only_so_many_in_a_row_count() -> None:
    """PR-08"""
    probed = Probed(READINESS, failureThreshold=3, successThreshold=2)
    probed.look(running(), started=True)
    results = [probed.take(each) for each in (OK, BAD, OK, OK, BAD, BAD, OK, BAD, BAD, BAD)]
    assert results == [BAD, BAD, BAD, OK, OK, OK, OK, OK, OK, BAD]


@pytest.mark.parametrize(("type_", "result"), [(LIVENESS, BAD), (STARTUP, BAD), (STARTUP, OK)])
def test_after_a_verdict_it_waits_for_a_new_container(type_: ProbeType, result: ProbeResult) -> None:
    """PR-09"""
    probed = Probed(type_, failureThreshold=1)
    is_started = type_ is LIVENESS
    probed.look(running(), started=is_started)
    assert probed.take(result) is result
    assert (probed.state.is_on_hold, probed.state.run) == (True, 0)
    assert probed.look(running(), 60, started=is_started) is Next.WAIT
    assert probed.look(running(60), 60, started=is_started, containerID="sim://2") is Next.RUN
    assert probed.result is (OK if type_ is LIVENESS else UNKNOWN)


def test_a_new_container_makes_the_verdict_on_the_old_one_void() -> None:
    """PR-09"""
    probed = Probed(READINESS)
    probed.look(running())
    status = {"name": "a", "containerID": "sim://2", "state": running()}
    decision = probed.prober.decide(probed.state, probed.pod, {"containerStatuses": [status]}, START)
    assert (decision.forget, decision.state.container_id) == ("1", "2")


def test_startup_that_fails_below_the_threshold_is_still_unknown() -> None:
    """PR-10"""
    probed = Probed(STARTUP, failureThreshold=3)
    probed.look(running())
    assert [probed.take(BAD) for _ in range(3)] == [UNKNOWN, UNKNOWN, BAD]


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (ProbeOutcome.SUCCESS, OK),
        (ProbeOutcome.WARNING, OK),
        (ProbeOutcome.FAILURE, BAD),
        (ProbeOutcome.UNKNOWN, BAD),
    ],
)
def test_what_an_outcome_counts_as(outcome: ProbeOutcome, expected: ProbeResult) -> None:
    """PR-11"""
    assert result_of(outcome) is expected


def test_a_probe_that_could_not_be_carried_out_changes_nothing() -> None:
    """PR-11"""
    probed = Probed(LIVENESS, failureThreshold=2)
    probed.look(running(), started=True)
    probed.take(BAD)
    before = probed.state
    assert [probed.take(None) for _ in range(9)] == [OK] * 9
    assert probed.state == before
    assert probed.take(BAD) is BAD


def test_what_is_told_of_a_probe() -> None:
    """PR-12"""
    assert MAX_TRIES == 3
    assert probe_event(LIVENESS, ProbeOutcome.SUCCESS, "fine") is None
    assert probe_event(LIVENESS, ProbeOutcome.FAILURE, "no") == ProbeEvent(
        "Unhealthy", "Liveness probe failed: no"
    )
    assert probe_event(READINESS, ProbeOutcome.WARNING, "well") == ProbeEvent(
        "ProbeWarning", "Readiness probe warning: well"
    )
    assert probe_event(STARTUP, ProbeOutcome.UNKNOWN, "", "gone") == ProbeEvent(
        "Unhealthy", "Startup probe errored and resulted in unknown state: gone"
    )


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (199, ProbeOutcome.FAILURE),
        (200, ProbeOutcome.SUCCESS),
        (299, ProbeOutcome.SUCCESS),
        (302, ProbeOutcome.WARNING),
        (399, ProbeOutcome.WARNING),
        (400, ProbeOutcome.FAILURE),
        (500, ProbeOutcome.FAILURE),
    ],
)
def test_answers_of_http(code: int, outcome: ProbeOutcome) -> None:
    """PR-13"""
    found, output = http_outcome(code)
    assert found is outcome
    if outcome is ProbeOutcome.FAILURE:
        assert output == f"HTTP probe failed with statuscode: {code}"


def test_arguments_know_only_plain_values() -> None:
    """PR-14"""
    env = [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {}}}]
    command = ["$(A)", "$(B)$(C)", "$$(A)", "$A"]
    assert exec_command(container(env=env), command) == ["1", "$(B)$(C)", "$(A)", "$A"]


def test_which_probers_a_pod_has() -> None:
    """PR-16, PR-20: all of them, whichever there are already."""
    probe: Object = {"exec": {}}
    of_pod = pod(
        container("a", livenessProbe=probe, startupProbe=probe),
        container("b"),
        container("c", readinessProbe=probe),
        init=[container("i", livenessProbe=probe), sidecar("x", readinessProbe=probe)],
    )
    assert [(each["name"], type_) for each, type_ in probers_of(of_pod)] == [
        ("a", STARTUP),
        ("a", LIVENESS),
        ("c", READINESS),
        ("x", READINESS),
    ]
    assert list(probers_of(pod())) == []


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize(("started", "is_old"), [(-11, True), (-9, False), (5, False)])
def test_a_container_of_an_agent_before_gets_no_first_verdict(
    type_: ProbeType, started: float, is_old: bool
) -> None:
    """PR-17"""
    probed = Probed(type_)
    probed.look(running(started), 60)
    assert (probed.result is None) is is_old


@pytest.mark.parametrize(("is_started", "result"), [(True, OK), (False, None)])
def test_a_sidecar_that_had_started_is_known_to_have(is_started: bool, result: ProbeResult | None) -> None:
    """PR-17"""
    probed = Probed(STARTUP, pod(init=[sidecar()]))
    probed.look(running(-60), 60, started=is_started)
    assert probed.result is result


@pytest.mark.parametrize(("age", "random", "expected"), [(5, 0.5, 5), (5, 0, 0), (10, 0.5, 0), (99, 1, 0)])
def test_probes_of_a_new_agent_are_spread(age: float, random: float, expected: float) -> None:
    """PR-18"""
    assert first_delay_seconds(10, age, random) == expected


def test_which_probers_stop_when_the_pod_is_to_end() -> None:
    """PR-19: those of sidecars too, otherwise than upstream, where they run on to no effect."""
    probe: Object = {"exec": {}}
    both = {"readinessProbe": probe, "livenessProbe": probe}
    of_pod = pod(container("a", **both), init=[sidecar("x", **both, startupProbe=probe)])
    assert list(probers_that_stop(of_pod)) == [("a", LIVENESS), ("x", STARTUP), ("x", LIVENESS)]

"""Should a container be started, killed, or the pod be given another sandbox?"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from podlife.kubelet.kuberuntime.compute_pod_actions import PodActions, compute_pod_actions, spec_hash
from podlife.kubelet.kuberuntime.kill_container import KillReason
from podlife.kubelet.observed_pod import ObservedPod
from podlife.kubelet.prober.state import ProbeResult, ProbeType
from podlife.kubelet.restart_policy import could_restart_all, is_restartable, should_restart_all, should_start
from podlife.kubelet.runtime import ContainerStatus, SandboxConfig, SandboxState, SandboxStatus
from tests.conformance.kubelet.kit import (
    RESTART_ALL,
    START,
    Object,
    container,
    deleting,
    instance,
    pod,
    rule,
    shown,
    sidecar,
)

IPS = ("10.0.0.1",)
HASH = "io.kubernetes.container.hash"


def sandbox(state: str = "Ready", attempt: int = 0, ips: tuple[str, ...] = IPS) -> SandboxStatus:
    config = SandboxConfig("u", "ns", "p", attempt=attempt)
    created = START + timedelta(seconds=attempt)
    return SandboxStatus(f"s{attempt}", config, SandboxState(state), created, ips)


def three(policy: str = "Always", **fields: Any) -> Object:
    return pod(*(container(name) for name in "abc"), policy=policy, **fields)


def up(*changed: ContainerStatus) -> list[ContainerStatus]:
    """Three that run, but for those given."""
    others = {each.config.name for each in changed}
    return [*changed, *(instance(name, "running") for name in "abc" if name not in others)]


def decided(
    of_pod: Object,
    containers: list[ContainerStatus],
    *sandboxes: SandboxStatus,
    results: dict[tuple[ProbeType, str], ProbeResult] | None = None,
) -> PodActions:
    observed = ObservedPod.of(sandboxes, containers)
    known = results or {}
    return compute_pod_actions(of_pod, observed, lambda type_, id_: known.get((type_, id_)))


@pytest.mark.parametrize("policy", ["Always", "OnFailure", "Never"])
def test_what_is_started_whatever_the_policy(policy: str) -> None:
    """RS-01"""
    each, one = pod(policy=policy), container()
    assert should_start(each, one, None)
    assert not should_start(each, one, instance("a", "running"))
    assert should_start(each, one, instance("a", "unknown"))
    assert should_start(each, one, instance("a", "created"))
    for state in ("running", "unknown", "created", "exited"):
        assert not should_start(deleting(each), one, instance("a", state, 1))
    assert not should_start(deleting(each), one, None)


@pytest.mark.parametrize(
    ("code", "policy", "expected"),
    [
        pytest.param(0, "Never", False, id="RS-02 Never, 0"),
        pytest.param(0, "OnFailure", False, id="RS-02 OnFailure, 0"),
        pytest.param(0, "Always", True, id="RS-02 Always, 0"),
        pytest.param(1, "Never", False, id="RS-02 Never, 1"),
        pytest.param(1, "OnFailure", True, id="RS-02 OnFailure, 1"),
        pytest.param(1, "Always", True, id="RS-02 Always, 1"),
    ],
)
def test_by_exit_code_and_policy(code: int, policy: str, expected: bool) -> None:
    assert should_start(pod(policy=policy), container(), instance("a", "exited", code)) is expected


ODD = rule("In", 42, action="Odd")


@pytest.mark.parametrize(
    ("pod_policy", "policy", "rules", "code", "expected"),
    [
        pytest.param("Never", "Always", [], 0, True, id="RS-03 container Always"),
        pytest.param("Always", "Never", [], 1, False, id="RS-03 container Never"),
        pytest.param("Always", "OnFailure", [], 0, False, id="RS-03 container OnFailure"),
        pytest.param("Never", "Never", [rule("In", 42)], 42, True, id="RS-03 In"),
        pytest.param("Never", "Never", [rule("In", 42)], 41, False, id="RS-03 not In"),
        pytest.param("Never", "Never", [rule("NotIn", 42)], 41, True, id="RS-03 NotIn"),
        pytest.param("Never", "Never", [rule("NotIn", 42)], 42, False, id="RS-03 not NotIn"),
        pytest.param("Never", "Never", [rule("In", 1), RESTART_ALL], 42, True, id="RS-03 the second"),
        pytest.param("Always", "Never", [ODD, rule("In", 42)], 42, False, id="RS-03 first decides"),
        pytest.param("odd", None, [], 0, True, id="RS-03 unknown policy"),
    ],
)
def test_container_policy_and_rules(
    pod_policy: str, policy: str | None, rules: list[Object], code: int, expected: bool
) -> None:
    one = container(restartPolicyRules=rules, **({"restartPolicy": policy} if policy else {}))
    assert is_restartable(pod(one, policy=pod_policy), one, code) is expected


def test_a_pod_that_runs_needs_nothing() -> None:
    """RS-04"""
    assert decided(three(), up(), sandbox()) == PodActions(sandbox_id="s0")


def test_a_pod_without_sandbox_gets_one_and_starts() -> None:
    """RS-04"""
    expected = PodActions(kill_pod=True, create_sandbox=True, start=("a", "b", "c"))
    assert decided(three(), []) == expected


FIRST_0 = instance("a", "exited", 0)
SECOND_111 = instance("b", "exited", 111)


@pytest.mark.parametrize(
    ("policy", "changed", "start"),
    [
        pytest.param("Always", [FIRST_0, SECOND_111], ("a", "b"), id="RS-05a"),
        pytest.param("OnFailure", [FIRST_0, SECOND_111], ("b",), id="RS-05b"),
        pytest.param("OnFailure", [FIRST_0, instance("b", "created")], ("b",), id="RS-05c"),
        pytest.param("Never", [FIRST_0, SECOND_111], (), id="RS-05d"),
    ],
)
def test_what_is_restarted(policy: str, changed: list[ContainerStatus], start: tuple[str, ...]) -> None:
    expected = PodActions(sandbox_id="s0", start=start)
    assert decided(three(policy), up(*changed), sandbox()) == expected


ALL_0 = [instance(name, "exited", 0) for name in "abc"]


@pytest.mark.parametrize(
    ("policy", "containers", "box", "creates", "attempt", "start"),
    [
        pytest.param("Always", up(), sandbox("NotReady"), True, 1, ("a", "b", "c"), id="RS-06a"),
        pytest.param(
            "OnFailure", up(instance("b", "exited", 0)), sandbox("NotReady"), True, 1, ("a", "c"), id="RS-06b"
        ),
        pytest.param("Always", up(), sandbox(ips=()), True, 1, ("a", "b", "c"), id="RS-06c"),
        pytest.param("Never", ALL_0, sandbox("NotReady", 1), False, 2, (), id="RS-07a"),
        pytest.param("OnFailure", ALL_0, sandbox("NotReady", 1), False, 2, (), id="RS-07b"),
        pytest.param("Never", [], sandbox("NotReady", 2), True, 3, ("a", "b", "c"), id="RS-07c"),
    ],
)
def test_a_sandbox_that_is_no_good(
    policy: str,
    containers: list[ContainerStatus],
    box: SandboxStatus,
    creates: bool,
    attempt: int,
    start: tuple[str, ...],
) -> None:
    expected = PodActions(True, creates, box.id, attempt, start=start)
    assert decided(three(policy), containers, box) == expected


def test_one_of_two_ready_sandboxes_is_one_too_many() -> None:
    """RS-06a"""
    assert decided(three(), up(), sandbox(), sandbox(attempt=1)).attempt == 2


def test_a_pod_on_the_host_network_needs_no_address() -> None:
    """RS-06c"""
    box = SandboxStatus("s0", SandboxConfig("u", "ns", "p", host_network=True), SandboxState.READY, START)
    assert not decided(three(hostNetwork=True), up(), box).create_sandbox
    assert decided(three(), up(), box).create_sandbox


LIVENESS, STARTUP = ProbeType.LIVENESS, ProbeType.STARTUP
CHANGED = instance("b", "running", annotations={HASH: "of another"})
UNCHANGED = instance("b", "running", annotations={HASH: spec_hash(container("b"))})


@pytest.mark.parametrize(
    ("second", "failed", "message", "reason"),
    [
        pytest.param(CHANGED, None, "definition changed", KillReason.OTHER, id="RS-08a RS-09"),
        pytest.param(
            UNCHANGED, LIVENESS, "failed liveness probe", KillReason.LIVENESS_PROBE, id="RS-08b RS-09"
        ),
        pytest.param(UNCHANGED, STARTUP, "failed startup probe", KillReason.STARTUP_PROBE, id="RS-08c RS-09"),
    ],
)
def test_one_that_is_no_good_is_killed_and_started(
    second: ContainerStatus, failed: ProbeType | None, message: str, reason: KillReason
) -> None:
    results = {} if failed is None else {(failed, "b-0"): ProbeResult.FAILURE}
    done = decided(three(), up(second), sandbox(), results=results)
    assert (done.kill_pod, done.start) == (False, ("b",))
    [kill] = done.kill
    assert (kill.container_id, kill.name, kill.reason) == ("b-0", "b", reason)
    assert kill.message == f"Container b {message}, will be restarted"


def test_one_in_an_unknown_state_is_killed_before_it_starts() -> None:
    """RS-10"""
    done = decided(three("Never"), up(instance("b", "unknown")), sandbox())
    assert done.start == ("b",)
    assert [kill.message for kill in done.kill] == [
        'Container is in "unknown" state, try killing it before restart'
    ]
    created = decided(three("Never"), up(instance("b", "created")), sandbox())
    assert (created.start, created.kill) == (("b",), ())


def test_with_never_a_probe_kills_for_good_but_a_change_does_not() -> None:
    """RS-11, RS-09"""
    failed = {(LIVENESS, "b-0"): ProbeResult.FAILURE}
    done = decided(three("Never"), up(), sandbox(), results=failed)
    assert (done.start, [kill.message for kill in done.kill]) == ((), ["Container b failed liveness probe"])
    assert decided(three("Never"), up(CHANGED), sandbox()).start == ("b",)


def test_a_pod_of_which_nothing_is_left_is_killed_with_its_sidecars() -> None:
    """RS-12"""
    each = pod(init=[sidecar("x"), sidecar("y")], policy="Never")
    there = [instance("a", "exited", 0), instance("x", "exited", 1), instance("y", "running")]
    done = decided(each, there, sandbox())
    assert (done.kill_pod, done.start_init, done.start) == (True, (), ())


def in_order(policy: str = "Always") -> Object:
    return pod(init=[container("i"), sidecar("x"), container("j")], policy=policy)


I_DONE, I_FAILED = (instance("i", "exited", code) for code in (0, 1))
X_DONE, X_FAILED = (instance("x", "exited", code) for code in (0, 1))


@pytest.mark.parametrize(
    ("there", "start_init", "start"),
    [
        pytest.param([], ("i",), (), id="RS-13 first"),
        pytest.param([instance("i", "running")], (), (), id="RS-13 running"),
        pytest.param([instance("i", "created")], ("i",), (), id="RS-13 created"),
        pytest.param([I_DONE], ("x",), (), id="RS-13 next"),
        pytest.param([I_FAILED], ("i",), (), id="RS-13 failed"),
        pytest.param([I_DONE, instance("x", "running")], ("j",), (), id="RS-13 after a sidecar"),
        pytest.param([X_FAILED], ("x",), (), id="RS-13 sidecar again"),
        pytest.param([X_DONE, instance("j", "running")], ("x",), (), id="RS-13 sidecar again while j runs"),
        pytest.param(
            [instance("j", "exited", 0)], ("x",), ("a",), id="RS-13 only the last known one matters"
        ),
        pytest.param(
            [I_FAILED, instance("a", "running"), X_FAILED], ("x",), (), id="RS-13 sidecars restart for ever"
        ),
    ],
)
def test_init_containers_run_in_order(
    there: list[ContainerStatus], start_init: tuple[str, ...], start: tuple[str, ...]
) -> None:
    done = decided(in_order(), there, sandbox())
    assert (done.kill_pod, done.start_init, done.start) == (False, start_init, start)


def test_an_init_container_that_failed_for_good_ends_the_pod() -> None:
    """RS-13"""
    done = decided(in_order("Never"), [instance("i", "exited", 1)], sandbox())
    assert (done.kill_pod, done.start_init) == (True, ())
    assert decided(in_order("Never"), [instance("i", "unknown")], sandbox()).kill_pod


@pytest.mark.parametrize(
    ("result", "start", "kills"),
    [
        (None, (), 0),
        (ProbeResult.UNKNOWN, (), 0),
        (ProbeResult.SUCCESS, ("j",), 0),
        (ProbeResult.FAILURE, ("x",), 1),
    ],
)
def test_a_sidecar_has_started_when_its_probe_says_so(
    result: ProbeResult | None, start: tuple[str, ...], kills: int
) -> None:
    """RS-13"""
    each = pod(init=[sidecar("x", startupProbe={"exec": {}}), container("j")])
    results = {(STARTUP, "x-0"): result} if result else {}
    done = decided(each, [instance("x", "running")], sandbox(), results=results)
    assert (done.start_init, len(done.kill)) == (start, kills)


def test_a_new_sandbox_begins_with_the_first_init_container() -> None:
    """RS-06a, RS-13"""
    done = decided(in_order(), [instance("a", "running")], sandbox("NotReady"))
    assert (done.create_sandbox, done.start_init, done.start) == (True, ("i",), ())


WHOLE = pod(container("a"), init=[container("i", restartPolicy="Never", restartPolicyRules=[RESTART_ALL])])
RESTARTING = {"type": "AllContainersRestarting", "status": "True"}


@pytest.mark.parametrize(
    ("status", "known", "expected"),
    [
        ({}, [], False),
        ({"conditions": [RESTARTING]}, [], True),
        ({"conditions": [{**RESTARTING, "status": "False"}]}, [], False),
        ({"initContainerStatuses": [shown("i", "Tf(42)")]}, [], True),
        ({"initContainerStatuses": [shown("i", "Tf")]}, [], False),
        ({"containerStatuses": [shown("a", "Tf(42)")]}, [], False),
        ({}, [instance("i", "exited", 42)], True),
        ({}, [instance("i", "exited", 1)], False),
        ({}, [instance("i", "running")], False),
    ],
)
def test_when_the_whole_pod_is_to_restart(
    status: Object, known: list[ContainerStatus], expected: bool
) -> None:
    """RS-03"""
    assert should_restart_all(WHOLE, status, ObservedPod.of([], known).newest) is expected


def test_a_restart_of_the_whole_pod_removes_who_asked_for_it_last() -> None:
    """RS-03"""
    assert could_restart_all(WHOLE)
    assert not could_restart_all(three())
    known = [instance("i", "exited", 42), instance("a", "running"), instance("a", "exited", 1, id="before")]
    observed = ObservedPod.of([sandbox()], known)
    done = compute_pod_actions(WHOLE, observed, lambda type_, id_: None, is_restarting_all=True)
    assert (done.kill_pod, done.start, done.start_init) == (False, (), ())
    assert done.reset[-1] == "i-0"
    assert sorted(done.reset) == ["a-0", "before", "i-0"]

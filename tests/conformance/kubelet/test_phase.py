"""The phase of a pod from the states of its containers.

A container is written as sort, policy, rule and state: `i` an init container, `s` a sidecar, `c` a regular one; `!` has
the rule to restart all containers on exit code 42; states are those of the kit, `-` is none.
"""

from __future__ import annotations

import re

import pytest

from podlife.kubelet.status.phase import phase_of
from tests.conformance.kubelet.kit import Object, container, pod, shown, static

CONTAINER = re.compile(r"([isc])(?:\((\w+)\))?(!?)=(\S+)")
RULE = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}


def read(text: str, policy: str) -> tuple[Object, list[Object]]:
    """A pod and the statuses of its containers."""
    init: list[Object] = []
    regular: list[Object] = []
    statuses: list[Object] = []
    for place, (sort, own, rule, state) in enumerate(CONTAINER.findall(text)):
        each = container(f"{sort}{place}")
        if sort == "s" or own or rule:
            each["restartPolicy"] = "Always" if sort == "s" else own or "Never"
        if rule:
            each["restartPolicyRules"] = [RULE]
        (regular if sort == "c" else init).append(each)
        if state != "-":
            statuses.append(shown(each["name"], state))
    of_pod = pod(init=init, policy=policy)
    of_pod["spec"]["containers"] = regular
    return of_pod, statuses


ROWS = [
    # policy, containers, computed for a terminal pod, has been initialized, phase
    pytest.param("Always", "c=- c=-", False, False, "Pending", id="PHR-01"),
    pytest.param("Always", "c=R c=R", False, False, "Running", id="PHR-02"),
    pytest.param("Always", "c=T0 c=T0", False, False, "Running", id="PHR-03"),
    pytest.param("Always", "c=T0 c=T0", True, False, "Succeeded", id="PHR-04"),
    pytest.param("Always", "c=T0 c=Tf", True, False, "Failed", id="PHR-05"),
    pytest.param("Always", "c=R c=T0", False, False, "Running", id="PHR-06"),
    pytest.param("Always", "c=R c=-", False, False, "Pending", id="PHR-07"),
    pytest.param("Always", "c=R c=W", False, False, "Pending", id="PHR-08"),
    pytest.param("Always", "c=R c=W*", False, False, "Running", id="PHR-09"),
    pytest.param("Always", "i=- c=- c=-", False, False, "Pending", id="PHR-10"),
    pytest.param("Always", "i=R c=- c=-", False, False, "Pending", id="PHR-11"),
    pytest.param("Always", "i=Tf c=- c=-", False, False, "Pending", id="PHR-12"),
    pytest.param("Always", "i=W* c=- c=-", False, False, "Pending", id="PHR-13"),
    pytest.param("Always", "i=Wf c=- c=-", False, False, "Pending", id="PHR-14"),
    pytest.param("Always", "i=W c=- c=-", False, False, "Pending", id="PHR-15"),
    pytest.param("Always", "i=T0 c=R c=R", False, False, "Running", id="PHR-16"),
    pytest.param("Always", "s=- c=- c=-", False, False, "Pending", id="PHR-17"),
    pytest.param("Always", "s=R c=- c=-", False, False, "Pending", id="PHR-18"),
    pytest.param("Always", "s=T0 c=- c=-", False, False, "Pending", id="PHR-19"),
    pytest.param("Always", "s=W* c=- c=-", False, False, "Pending", id="PHR-20"),
    pytest.param("Always", "s=Wf c=- c=-", False, False, "Pending", id="PHR-21"),
    pytest.param("Always", "s=W c=- c=-", False, False, "Pending", id="PHR-22"),
    pytest.param("Always", "s=Rs c=R c=-", False, True, "Pending", id="PHR-23"),
    pytest.param("Always", "s=Rs c=R c=R", False, True, "Running", id="PHR-24"),
    pytest.param("Always", "s=R c=R c=R", False, True, "Running", id="PHR-25"),
    pytest.param("Always", "s=T0 c=R c=R", False, True, "Running", id="PHR-26"),
    pytest.param("Always", "s=W* c=R c=R", False, True, "Running", id="PHR-27"),
    pytest.param("Always", "s=Tf c=T0 c=T0", True, True, "Succeeded", id="PHR-28"),
    pytest.param("Always", "s=T0 c=T0 c=T0", True, True, "Succeeded", id="PHR-29"),
    pytest.param("Always", "s=R c=R c=R", False, False, "Pending", id="PHR-30"),
    pytest.param("Always", "i=R s=R c=R", False, False, "Pending", id="PHR-31"),
    pytest.param("Always", "i=R s=R c=T0", False, False, "Pending", id="PHR-32"),
    pytest.param("Always", "i=T0 s=R c=T0", False, False, "Pending", id="PHR-33"),
    pytest.param("Always", "i=T0 s=R c=T0", False, True, "Running", id="PHR-34"),
    pytest.param("Always", "i=T0 s=R c=R", False, True, "Running", id="PHR-35"),
    pytest.param("Never", "c=- c=-", False, False, "Pending", id="PHR-36"),
    pytest.param("Never", "c=R c=R", False, False, "Running", id="PHR-37"),
    pytest.param("Never", "c=T0 c=T0", False, False, "Succeeded", id="PHR-38"),
    pytest.param("Never", "c=Tf c=Tf", False, False, "Failed", id="PHR-39"),
    pytest.param("Never", "c=R c=T0", False, False, "Running", id="PHR-40"),
    pytest.param("Never", "c=R c=-", False, False, "Pending", id="PHR-41"),
    pytest.param("Never", "c=R c=W", False, False, "Pending", id="PHR-42"),
    pytest.param("Never", "i=- c=- c=-", False, False, "Pending", id="PHR-43"),
    pytest.param("Never", "i=R c=- c=-", False, False, "Pending", id="PHR-44"),
    pytest.param("Never", "i=Tf c=- c=-", False, False, "Failed", id="PHR-45"),
    pytest.param("Never", "i=W* c=- c=-", False, False, "Pending", id="PHR-46"),
    pytest.param("Never", "i=Wf c=- c=-", False, False, "Failed", id="PHR-47"),
    pytest.param("Never", "i=W c=- c=-", False, False, "Pending", id="PHR-48"),
    pytest.param("Never", "i=T0 c=R c=R", False, False, "Running", id="PHR-49"),
    pytest.param("Never", "s=- c=- c=-", False, False, "Pending", id="PHR-50"),
    pytest.param("Never", "s=R c=- c=-", False, False, "Pending", id="PHR-51"),
    pytest.param("Never", "s=T0 c=- c=-", False, False, "Pending", id="PHR-52"),
    pytest.param("Never", "s=W* c=- c=-", False, False, "Pending", id="PHR-53"),
    pytest.param("Never", "s=Wf c=- c=-", False, False, "Pending", id="PHR-54"),
    pytest.param("Never", "s=W c=- c=-", False, False, "Pending", id="PHR-55"),
    pytest.param("Never", "s=Rs c=R c=-", False, True, "Pending", id="PHR-56"),
    pytest.param("Never", "s=Rs c=T0 c=T0", False, True, "Running", id="PHR-57"),
    pytest.param("Never", "s=R c=T0 c=T0", False, True, "Running", id="PHR-58"),
    pytest.param("Never", "s=T0 c=T0 c=T0", False, True, "Succeeded", id="PHR-59"),
    pytest.param("Never", "s=Tf c=T0 c=T0", False, True, "Succeeded", id="PHR-60"),
    pytest.param("Never", "s=W* c=T0 c=T0", False, True, "Succeeded", id="PHR-61"),
    pytest.param("Never", "s=Wf c=T0 c=T0", False, True, "Succeeded", id="PHR-62"),
    pytest.param("OnFailure", "c=- c=-", False, False, "Pending", id="PHR-63"),
    pytest.param("OnFailure", "c=R c=R", False, False, "Running", id="PHR-64"),
    pytest.param("OnFailure", "c=T0 c=T0", False, False, "Succeeded", id="PHR-65"),
    pytest.param("OnFailure", "c=Tf c=Tf", False, False, "Running", id="PHR-66"),
    pytest.param("OnFailure", "c=R c=T0", False, False, "Running", id="PHR-67"),
    pytest.param("OnFailure", "c=R c=-", False, False, "Pending", id="PHR-68"),
    pytest.param("OnFailure", "c=R c=W", False, False, "Pending", id="PHR-69"),
    pytest.param("OnFailure", "c=R c=W*", False, False, "Running", id="PHR-70"),
    pytest.param("Always", "c(Never)=Tf", False, True, "Failed", id="PHR-71"),
    pytest.param("Always", "c(OnFailure)=Tf", False, True, "Running", id="PHR-72"),
    pytest.param("Always", "c(Always)=Tf", False, True, "Running", id="PHR-73"),
    pytest.param("Never", "c(Always)=T0 c=Tf", False, True, "Running", id="PHR-74"),
    pytest.param("Always", "c(Never)=Tf c(OnFailure)=T0", False, True, "Failed", id="PHR-75"),
    pytest.param("Always", "c(Never)=T0 c(OnFailure)=T0", False, True, "Succeeded", id="PHR-76"),
    pytest.param("Always", "i(Never)=Tf c=-", False, True, "Failed", id="PHR-77"),
    pytest.param("Never", "i(OnFailure)=Tf c=-", False, True, "Pending", id="PHR-78"),
    pytest.param("Never", "s=Tf c=-", False, True, "Pending", id="PHR-79"),
    pytest.param("Never", "c!=Tf(42)", False, True, "Running", id="PHR-80"),
    pytest.param("Never", "i!=Tf(42)", False, True, "Pending", id="PHR-81"),
    pytest.param("Never", "s!=Tf(42) c!=W", False, True, "Pending", id="PHR-82"),
    pytest.param("Never", "s!=Tf(42) i!=W c!=W", False, True, "Pending", id="PHR-83"),
    pytest.param("Never", "c!=RA", False, True, "Running", id="PHR-84"),
    pytest.param("Never", "i!=RA", False, True, "Pending", id="PHR-85"),
    pytest.param("Never", "s!=RA c!=W", False, True, "Pending", id="PHR-86"),
    pytest.param("Never", "s!=RA i!=- c!=W", False, True, "Pending", id="PHR-87"),
    pytest.param("Never", "i=T0 c!=RA", False, True, "Running", id="PHR-88"),
    pytest.param("Never", "i=Tf c!=RA", False, True, "Failed", id="PHR-89"),
    pytest.param("Never", "i!=Tf(42) c!=W", False, True, "Pending", id="PHR-90"),
    pytest.param("Never", "i!=T0 c!=W", False, True, "Pending", id="PHR-91"),
    pytest.param("Never", "s!=RA c!=RA", False, True, "Running", id="PHR-92"),
    pytest.param("Never", "s!=R c!=RA", False, True, "Running", id="PHR-93"),
    pytest.param("Never", "s!=R i!=- c!=W", False, True, "Pending", id="PHR-94"),
]


@pytest.mark.parametrize(("policy", "containers", "is_terminal", "is_initialized", "phase"), ROWS)
def test_the_table_of_phases(
    policy: str, containers: str, is_terminal: bool, is_initialized: bool, phase: str
) -> None:
    of_pod, statuses = read(containers, policy)
    assert phase_of(of_pod, statuses, is_terminal=is_terminal, is_initialized=is_initialized) == phase


@pytest.mark.parametrize(
    ("policy", "containers", "phase"),
    [
        pytest.param("Never", "i=Tf c=R", "Failed", id="PH-01 init failed before all else"),
        pytest.param("Always", "i=W c=R", "Pending", id="PH-01 init unfinished"),
        pytest.param("Always", "s=R c=R", "Pending", id="PH-01 sidecar not started"),
        pytest.param("Always", "s=Rs c=R", "Running", id="PH-01 sidecar started"),
        pytest.param("Never", "c=T0 c=Tf", "Failed", id="PH-01 all stopped, one failed"),
        pytest.param("OnFailure", "c=T0 c=Tf", "Running", id="PH-01 one may restart"),
        pytest.param("Never", "c=W* c=W*", "Failed", id="PH-02 not succeeded while they wait"),
        pytest.param("Never", "s=Tf c=T0", "Succeeded", id="PH-02 a stopped sidecar does not count"),
        pytest.param("Never", "s=Wf c=T0", "Succeeded", id="PH-02 nor one that waits"),
    ],
)
def test_how_the_phase_is_found(policy: str, containers: str, phase: str) -> None:
    of_pod, statuses = read(containers, policy)
    assert phase_of(of_pod, statuses) == phase


def test_static_pods_do_not_end_because_they_are_computed_as_ended() -> None:
    """PH-24"""
    of_pod, statuses = read("c=T0", "Always")
    assert phase_of(of_pod, statuses, is_terminal=True) == "Succeeded"
    assert phase_of(static(of_pod), statuses, is_terminal=True) == "Running"

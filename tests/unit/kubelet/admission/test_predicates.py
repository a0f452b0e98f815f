"""Whether a node takes a pod."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.kubelet.admission.predicates import AdmissionFailure, admission_failure, pod_requests
from tests.conformance.kubelet.kit import (
    Object,
    container,
    pod,
    sidecar,
    static,
)


def node(**fields: Any) -> Object:
    allocatable = {"cpu": "2", "memory": "1Gi", "pods": "3", **fields.pop("allocatable", {})}
    return {
        "metadata": {"name": "n", "labels": {"disk": "ssd", "size": "5"}},
        "spec": fields,
        "status": {"allocatable": allocatable},
    }


def asking(name: str = "a", /, **requests: str) -> Object:
    return container(name, resources={"requests": requests})


def test_a_pod_that_fits_is_taken() -> None:
    assert (
        admission_failure(pod(asking(cpu="1500m", memory="1Gi")), node(), [pod(asking(cpu="500m"))]) is None
    )


@pytest.mark.parametrize(
    ("requests", "others", "expected"),
    [
        (
            {"cpu": "600m"},
            [pod(asking(cpu="1500m"))],
            ("cpu", "requested: 600, used: 1500, capacity: 2000"),
        ),
        ({"memory": "2Gi"}, [], ("memory", "requested: 2147483648, used: 0, capacity: 1073741824")),
        (
            {"ephemeral-storage": "1k"},
            [],
            ("ephemeral-storage", "requested: 1000, used: 0, capacity: 0"),
        ),
        ({}, [pod(), pod(), pod()], ("pods", "requested: 1, used: 3, capacity: 3")),
    ],
)
def test_a_full_node_says_of_what(
    requests: dict[str, str], others: list[Object], expected: tuple[str, str]
) -> None:
    resource, numbers = expected
    message = f"Node didn't have enough resource: {resource}, {numbers}"
    assert admission_failure(pod(asking(**requests)), node(), others) == AdmissionFailure(
        f"OutOf{resource}", message
    )


def test_pods_that_have_ended_take_nothing() -> None:
    ended = [pod(asking(cpu="2"), status={"phase": "Succeeded"}) for _ in range(5)]
    assert admission_failure(pod(asking(cpu="2")), node(), ended) is None


def test_a_resource_of_a_plugin_is_asked_only_of_a_node_that_has_it() -> None:
    wanting = pod(asking(**{"example.com/gpu": "2"}))
    assert admission_failure(wanting, node(), []) is None
    found = admission_failure(wanting, node(allocatable={"example.com/gpu": "1"}), [])
    assert found is not None
    assert found.reason == "OutOfexample.com/gpu"


def affine(*terms: Object) -> Object:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return pod(affinity={"nodeAffinity": required})


def expression(key: str, operator: str, *values: str) -> Object:
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("of_pod", "is_wanted"),
    [
        (pod(nodeSelector={"disk": "ssd"}), True),
        (pod(nodeSelector={"disk": "hdd"}), False),
        (affine({"matchExpressions": [expression("disk", "In", "ssd", "nvme")]}), True),
        (affine({"matchExpressions": [expression("disk", "NotIn", "ssd")]}), False),
        (affine({"matchExpressions": [expression("size", "Gt", "4")]}), True),
        (affine({"matchExpressions": [expression("size", "Gt", "five")]}), False),
        (affine({"matchExpressions": [expression("none", "DoesNotExist")]}), True),
        (affine({"matchFields": [expression("metadata.name", "In", "n")]}), True),
        (affine({"matchFields": [expression("metadata.name", "In", "m")]}), False),
        (
            affine(
                {"matchExpressions": [expression("none", "Exists")]},
                {"matchExpressions": [expression("disk", "Exists")]},
            ),
            True,
        ),
        (affine({}), False),
        (affine(), False),
    ],
)
def test_a_node_that_the_pod_does_not_ask_for_refuses_it(of_pod: Object, is_wanted: bool) -> None:
    expected = AdmissionFailure(
        "NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
    )
    assert admission_failure(of_pod, node(), []) == (None if is_wanted else expected)


def test_a_pod_of_another_node_is_refused() -> None:
    expected = AdmissionFailure(
        "NodeName", "Predicate NodeName failed: node(s) didn't match the requested node name"
    )
    assert admission_failure(pod(nodeName="m"), node(), []) == expected
    assert admission_failure(pod(nodeName="n"), node(), []) is None


def on_port(port: int, **fields: str) -> Object:
    return pod(container(ports=[{"containerPort": 80, "hostPort": port, **fields}]))


@pytest.mark.parametrize(
    ("mine", "is_free"),
    [
        (on_port(80), False),
        (on_port(81), True),
        (on_port(80, protocol="UDP"), True),
        (on_port(80, hostIP="192.0.2.1"), False),
    ],
)
def test_a_port_of_the_node_is_given_once(mine: Object, is_free: bool) -> None:
    found = admission_failure(mine, node(), [on_port(80)])
    assert (found is None) is is_free
    if found is not None:
        assert found.reason == "NodePorts"


GONE = {"key": "gone", "value": "yes", "effect": "NoExecute"}


@pytest.mark.parametrize(
    ("tolerations", "is_borne"),
    [
        ([], False),
        ([{"operator": "Exists"}], True),
        ([{"key": "gone", "operator": "Exists", "effect": "NoSchedule"}], False),
        ([{"key": "gone", "value": "yes"}], True),
        ([{"key": "gone", "value": "no"}], False),
    ],
)
def test_a_taint_that_the_pod_does_not_bear_keeps_it_away(tolerations: list[Object], is_borne: bool) -> None:
    expected = AdmissionFailure(
        "TaintToleration",
        "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate",
    )
    of_pod = pod(tolerations=tolerations)
    assert admission_failure(of_pod, node(taints=[GONE]), []) == (None if is_borne else expected)
    assert admission_failure(of_pod, node(taints=[{**GONE, "effect": "NoSchedule"}]), []) is None
    assert admission_failure(static(of_pod), node(taints=[GONE]), []) is None


def test_a_pod_of_another_system_is_refused() -> None:
    label = admission_failure(pod(metadata={"labels": {"kubernetes.io/os": "windows"}}), node(), [])
    assert label is not None
    assert label.reason == "PodOSSelectorNodeLabelDoesNotMatch"
    assert admission_failure(pod(os={"name": "windows"}), node(), []) == AdmissionFailure(
        "PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"
    )


def test_what_a_pod_takes_is_its_largest_moment() -> None:
    of_pod = pod(
        asking("a", cpu="300m"),
        asking("b", cpu="300m", memory="1k"),
        init=[
            asking("i", cpu="900m"),
            sidecar("x", resources={"requests": {"cpu": "200m"}}),
            asking("j", cpu="750m", memory="5k"),
        ],
        overhead={"cpu": "50m"},
    )
    assert pod_requests(of_pod) == {"cpu": 1000, "memory": 5000}


def test_requests_of_the_pod_as_a_whole_count_instead() -> None:
    of_pod = pod(asking(cpu="300m", memory="1k"), resources={"requests": {"cpu": "2"}})
    assert pod_requests(of_pod) == {"cpu": 2000, "memory": 1000}


def test_an_address_that_stands_for_all_clashes_with_each() -> None:
    for everywhere in ("0.0.0.0", "", "::"):
        assert (
            admission_failure(on_port(80, hostIP=everywhere), node(), [on_port(80, hostIP="192.0.2.1")])
            is not None
        )
    assert (
        admission_failure(on_port(80, hostIP="192.0.2.2"), node(), [on_port(80, hostIP="192.0.2.1")]) is None
    )

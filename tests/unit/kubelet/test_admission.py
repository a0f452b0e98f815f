"""Whether a node takes a pod, and which kernel parameters it may set."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.api.pod_requests import pod_requests
from podlife.kubelet.admission import (
    AdmissionFailure,
    AllocatedResources,
    admission_failure,
    sysctls_of,
)
from tests.conformance.kubelet.kit import Object, container, pod, sidecar, static


def node(**fields: Any) -> Object:
    allocatable = {"cpu": "2", "memory": "1Gi", "pods": "3", **fields.pop("allocatable", {})}
    return {
        "metadata": {"name": "n", "labels": {"disk": "ssd", "size": "5"}},
        "spec": fields,
        "status": {"allocatable": allocatable},
    }


def refusal(of_pod: Object, of_node: Object | None = None, *others: Object) -> AdmissionFailure | None:
    taken = AllocatedResources()
    for other in others:
        taken.add(other)
    return admission_failure(of_pod, of_node or node(), taken)


def asking(name: str = "a", /, **requests: str) -> Object:
    return container(name, resources={"requests": requests})


def test_a_pod_that_fits_is_taken() -> None:
    assert refusal(pod(asking(cpu="1500m", memory="1Gi")), node(), pod(asking(cpu="500m"))) is None


@pytest.mark.parametrize(
    ("requests", "others", "expected"),
    [
        ({"cpu": "600m"}, [pod(asking(cpu="1500m"))], "cpu, requested: 600, used: 1500, capacity: 2000"),
        ({"memory": "2Gi"}, [], "memory, requested: 2147483648, used: 0, capacity: 1073741824"),
        ({"ephemeral-storage": "1k"}, [], "ephemeral-storage, requested: 1000, used: 0, capacity: 0"),
        ({}, [pod(), pod(), pod()], "pods, requested: 1, used: 3, capacity: 3"),
    ],
)
def test_a_full_node_says_of_what(requests: dict[str, str], others: list[Object], expected: str) -> None:
    resource = expected.partition(",")[0]
    message = f"Node didn't have enough resource: {expected}"
    assert refusal(pod(asking(**requests)), node(), *others) == AdmissionFailure(f"OutOf{resource}", message)


def test_a_pod_with_resource_claims_is_refused() -> None:
    asked = pod()
    asked["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "c"}]
    message = "Failed to admit pod as this node cannot prepare devices for spec.resourceClaims"
    assert refusal(asked) == AdmissionFailure("ResourceClaimsNotSupported", message)


def test_a_resource_of_a_plugin_is_asked_only_of_a_node_that_has_it() -> None:
    wanting = pod(asking(**{"example.com/gpu": "2"}))
    assert refusal(wanting) is None
    found = refusal(wanting, node(allocatable={"example.com/gpu": "1"}))
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
    assert refusal(of_pod) == (None if is_wanted else expected)


def test_a_pod_of_another_node_is_refused() -> None:
    expected = AdmissionFailure(
        "NodeName", "Predicate NodeName failed: node(s) didn't match the requested node name"
    )
    assert refusal(pod(nodeName="m")) == expected
    assert refusal(pod(nodeName="n")) is None


def on_port(port: int, **fields: str) -> Object:
    return pod(container(ports=[{"containerPort": 80, "hostPort": port, **fields}]))


@pytest.mark.parametrize(
    ("mine", "other", "is_free"),
    [
        (on_port(80), on_port(80), False),
        (on_port(81), on_port(80), True),
        (on_port(80, protocol="UDP"), on_port(80), True),
        (on_port(80, hostIP="192.0.2.1"), on_port(80), False),
        *(
            (on_port(80, hostIP=each), on_port(80, hostIP="192.0.2.1"), False)
            for each in ("0.0.0.0", "", "::")
        ),
        (on_port(80, hostIP="192.0.2.2"), on_port(80, hostIP="192.0.2.1"), True),
    ],
)
def test_a_port_of_the_node_is_given_once(mine: Object, other: Object, is_free: bool) -> None:
    """An address that stands for all clashes with each."""
    found = refusal(mine, node(), other)
    assert (found.reason if found else None) == (None if is_free else "NodePorts")


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
        "TaintToleration", "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"
    )
    of_pod = pod(tolerations=tolerations)
    assert refusal(of_pod, node(taints=[GONE])) == (None if is_borne else expected)
    assert refusal(of_pod, node(taints=[{**GONE, "effect": "NoSchedule"}])) is None
    assert refusal(static(of_pod), node(taints=[GONE])) is None


def test_a_pod_of_another_system_is_refused() -> None:
    label = refusal(pod(metadata={"labels": {"kubernetes.io/os": "windows"}}))
    assert label is not None
    assert label.reason == "PodOSSelectorNodeLabelDoesNotMatch"
    assert refusal(pod(os={"name": "windows"})) == AdmissionFailure(
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


def setting(name: str, **spec: Any) -> Object:
    return pod(securityContext={"sysctls": [{"name": name, "value": "1"}]}, **spec)


@pytest.mark.parametrize("name", ["kernel.shm_rmid_forced", "kernel/shm_rmid_forced"])
def test_a_safe_sysctl_is_taken_however_it_is_written(name: str) -> None:
    assert refusal(setting(name)) is None
    assert sysctls_of(setting(name)) == {"kernel.shm_rmid_forced": "1"}


def test_a_dot_within_a_part_of_a_sysctl_is_no_separator() -> None:
    assert sysctls_of(setting("net/ipv4/conf/eth0.1/mtu")) == {"net.ipv4.conf.eth0/1.mtu": "1"}


@pytest.mark.parametrize(
    ("name", "spec", "said"),
    [
        ("kernel.msgmax", {}, "not allowlisted"),
        ("net.ipv4.tcp_syncookies", {"hostNetwork": True}, "not allowed with host Net enabled"),
        ("kernel.shm_rmid_forced", {"hostIPC": True}, "not allowed with host IPC enabled"),
    ],
)
def test_a_sysctl_that_is_not_the_pod_s_own_is_refused_in_a_kubelet_s_words(
    name: str, spec: dict[str, Any], said: str
) -> None:
    message = f'forbidden sysctl: "{name}" {said}'
    assert refusal(setting(name, **spec)) == AdmissionFailure("SysctlForbidden", message)

from __future__ import annotations

from typing import Any

import pytest

from podlife.apiserver.printers import LEASES, NODES

from .situation import ANY_AGE, NOW, Situation, named, with_any_age

NONE = "<none>"
UNKNOWN = "<unknown>"
NO_INFO = dict.fromkeys(
    (
        "architecture",
        "bootID",
        "containerRuntimeVersion",
        "kernelVersion",
        "kubeProxyVersion",
        "kubeletVersion",
        "machineID",
        "operatingSystem",
        "osImage",
        "systemUUID",
    ),
    "",
)


def node(name: str, *cells: str, ready: str = "", unschedulable: bool = False, **more: Any) -> Situation:
    status: dict[str, Any] = {
        "nodeInfo": NO_INFO | more.get("info", {}),
        "addresses": more.get("addresses", []),
    }
    if ready:
        status["conditions"] = [{"type": "Ready", "status": ready}]
    obj = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": named(name, labels=more.get("labels", {})),
        "spec": {"unschedulable": True} if unschedulable else {},
        "status": status,
    }
    return Situation(name, obj, [name, *cells])


def situations(now: float) -> list[Situation]:
    unknown = (NONE, NONE, UNKNOWN, UNKNOWN, UNKNOWN)
    return [
        node("silent", "Unknown", NONE, ANY_AGE, "", *unknown),
        node("well", "Ready", NONE, ANY_AGE, "", *unknown, ready="True"),
        node("ill", "NotReady", NONE, ANY_AGE, "", *unknown, ready="False"),
        node("gone", "NotReady", NONE, ANY_AGE, "", *unknown, ready="Unknown"),
        node(
            "cordoned",
            "Ready,SchedulingDisabled",
            NONE,
            ANY_AGE,
            "",
            *unknown,
            ready="True",
            unschedulable=True,
        ),
        node(
            "full",
            "Ready",
            "control-plane,infra,worker",
            ANY_AGE,
            "v1.36.0",
            "10.0.0.1",
            "192.0.2.1",
            "Debian",
            "6.1 (amd64)",
            "containerd://2.0",
            ready="True",
            labels={
                "node-role.kubernetes.io/worker": "",
                "node-role.kubernetes.io/control-plane": "x",
                "kubernetes.io/role": "infra",
            },
            info={
                "architecture": "amd64",
                "kernelVersion": "6.1",
                "osImage": "Debian",
                "kubeletVersion": "v1.36.0",
                "containerRuntimeVersion": "containerd://2.0",
            },
            addresses=[
                {"type": "Hostname", "address": "full"},
                {"type": "InternalIP", "address": "10.0.0.1"},
                {"type": "InternalIP", "address": "10.0.0.2"},
                {"type": "ExternalIP", "address": "192.0.2.1"},
            ],
        ),
    ]


@pytest.mark.parametrize("case", situations(NOW), ids=lambda case: case.name)
def test_node_is_shown_as_the_real_server_shows_it(case: Situation) -> None:
    assert with_any_age(NODES.cells(case.obj, NOW), NODES.columns) == case.cells


def leases(now: float) -> list[Situation]:
    def of(name: str, spec: dict[str, Any], holder: str) -> Situation:
        obj = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": named(name), "spec": spec}
        return Situation(name, obj, [name, holder, ANY_AGE])

    return [of("held", {"holderIdentity": "node-1"}, "node-1"), of("free", {}, "")]


@pytest.mark.parametrize("case", leases(NOW), ids=lambda case: case.name)
def test_lease_shows_who_holds_it(case: Situation) -> None:
    assert with_any_age(LEASES.cells(case.obj, NOW), LEASES.columns) == case.cells

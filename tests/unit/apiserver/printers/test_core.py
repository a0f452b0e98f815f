from __future__ import annotations

from typing import Any

import pytest

from .situation import ANY_AGE, NOW, Situation, at, named, shown

NONE, UNKNOWN = "<none>", "<unknown>"
NO_INFO = dict.fromkeys(
    ("architecture", "containerRuntimeVersion", "kernelVersion", "kubeletVersion", "osImage"), ""
)
PORTS = [{"name": "http", "port": 80, "protocol": "TCP"}]
OLD_CLASS = {"volume.beta.kubernetes.io/storage-class": "old"}


def kept(kind: str, name: str, cells: list[Any], *, deleting: bool = False, **fields: Any) -> Situation:
    obj = {"kind": kind, "metadata": named(name, deleting=deleting), **fields}
    return Situation(name, obj, [name, *cells, ANY_AGE])


def configuration() -> list[Situation]:
    return [
        kept("Namespace", "active", ["Active"], status={"phase": "Active"}),
        kept("Namespace", "ending", ["Terminating"], deleting=True, status={"phase": "Terminating"}),
        kept("ConfigMap", "empty", [0]),
        kept("ConfigMap", "both", [3], data={"a": "1", "b": "2"}, binaryData={"c": "AA=="}),
        kept("Secret", "opaque", ["Opaque", 2], type="Opaque", data={"a": "AA==", "b": "AA=="}),
        kept("Secret", "none", ["Opaque", 0], type="Opaque"),
        kept("ServiceAccount", "robot", []),
    ]


def node(name: str, *cells: str, ready: str = "", unschedulable: bool = False, **more: Any) -> Situation:
    status = {"nodeInfo": NO_INFO | more.get("info", {}), "addresses": more.get("addresses", [])}
    if ready:
        status["conditions"] = [{"type": "Ready", "status": ready}]
    obj = {
        "kind": "Node",
        "metadata": named(name, labels=more.get("labels", {})),
        "spec": {"unschedulable": True} if unschedulable else {},
        "status": status,
    }
    return Situation(name, obj, [name, *cells])


def nodes() -> list[Situation]:
    addresses = (
        ("Hostname", "full"),
        ("InternalIP", "10.0.0.1"),
        ("InternalIP", "10.0.0.2"),
        ("ExternalIP", "192.0.2.1"),
    )
    unknown = (NONE, NONE, UNKNOWN, UNKNOWN, UNKNOWN)
    return [
        node("silent", "Unknown", NONE, ANY_AGE, "", *unknown),
        node("well", "Ready", NONE, ANY_AGE, "", *unknown, ready="True"),
        node("ill", "NotReady", NONE, ANY_AGE, "", *unknown, ready="False"),
        node("gone", "NotReady", NONE, ANY_AGE, "", *unknown, ready="Unknown"),
        node(
            *("cordoned", "Ready,SchedulingDisabled", NONE, ANY_AGE, "", *unknown),
            ready="True",
            unschedulable=True,
        ),
        node(
            *("full", "Ready", "control-plane,infra,worker", ANY_AGE, "v1.36.0", "10.0.0.1", "192.0.2.1"),
            *("Debian", "6.1 (amd64)", "containerd://2.0"),
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
            addresses=[{"type": kind, "address": address} for kind, address in addresses],
        ),
    ]


def leases() -> list[Situation]:
    def of(name: str, spec: dict[str, Any], holder: str) -> Situation:
        obj = {"kind": "Lease", "metadata": named(name), "spec": spec}
        return Situation(name, obj, [name, holder, ANY_AGE])

    return [of("held", {"holderIdentity": "node-1"}, "node-1"), of("free", {}, "")]


def service(
    name: str, cells: list[str], *, ingress: list[dict[str, Any]] | None = None, **spec: Any
) -> Situation:
    obj = {
        "kind": "Service",
        "metadata": named(name),
        "spec": {"ports": PORTS, **spec},
        "status": {"loadBalancer": {"ingress": ingress} if ingress else {}},
    }
    *front, selector = cells
    return Situation(name, obj, [name, *front, ANY_AGE, selector])


def ip(address: str) -> dict[str, Any]:
    return {"clusterIP": address, "clusterIPs": [address]}


def services() -> list[Situation]:
    balanced = [{"ip": "192.0.2.9"}, {"hostname": "lb.example.com"}, {"ip": "192.0.2.10"}]
    balancers = "192.0.2.10,192.0.2.9,lb.example.com"
    two = [*PORTS, {"name": "dns", "port": 53, "protocol": "UDP", "nodePort": 30053}]
    return [
        service(
            "inside",
            ["ClusterIP", "10.0.0.21", "<none>", "80/TCP", "app=web,tier=front"],
            type="ClusterIP",
            selector={"tier": "front", "app": "web"},
            **ip("10.0.0.21"),
        ),
        service(
            "headless", ["ClusterIP", "None", "<none>", "80/TCP", "<none>"], type="ClusterIP", **ip("None")
        ),
        service(
            "outside",
            ["ClusterIP", "10.0.0.22", "198.51.100.1,198.51.100.2", "80/TCP", "<none>"],
            type="ClusterIP",
            externalIPs=["198.51.100.1", "198.51.100.2"],
            **ip("10.0.0.22"),
        ),
        service(
            "balanced",
            ["LoadBalancer", "10.0.0.23", f"{balancers},198.51.100.1", "53:30053/UDP", "<none>"],
            type="LoadBalancer",
            ingress=balanced,
            externalIPs=["198.51.100.1"],
            **(ip("10.0.0.23") | {"ports": two[1:]}),
        ),
        service(
            "unbalanced",
            ["LoadBalancer", "10.0.0.24", "<pending>", "53:30054/UDP", "<none>"],
            type="LoadBalancer",
            **(ip("10.0.0.24") | {"ports": [two[1] | {"nodePort": 30054}]}),
        ),
        service(
            "alias",
            ["ExternalName", "<none>", "db.example.com", "<none>", "<none>"],
            type="ExternalName",
            externalName="db.example.com",
            ports=[],
        ),
    ]


def endpoints() -> list[Situation]:
    def of(name: str, subsets: list[dict[str, Any]], shown: str) -> Situation:
        obj = {"kind": "Endpoints", "metadata": named(name), "subsets": subsets}
        return Situation(name, obj, [name, shown, ANY_AGE])

    def subset(*addresses: str, ports: tuple[int, ...] = ()) -> dict[str, Any]:
        return {
            "addresses": [{"ip": each} for each in addresses],
            "ports": [{"name": f"p{each}", "port": each, "protocol": "TCP"} for each in ports],
        }

    return [
        of("none", [], "<none>"),
        of("no-ports", [subset("10.1.0.1", "10.1.0.2")], "10.1.0.1,10.1.0.2"),
        of("two-ports", [subset("10.1.0.1", ports=(80, 443))], "10.1.0.1:80,10.1.0.1:443"),
        of(
            "three",
            [subset("10.1.0.1", "10.1.0.2", "10.1.0.3", ports=(80,))],
            "10.1.0.1:80,10.1.0.2:80,10.1.0.3:80",
        ),
        of(
            "many",
            [subset("10.1.0.1", "10.1.0.2", "10.1.0.3", "10.1.0.4", "10.1.0.5", ports=(80,))],
            "10.1.0.1:80,10.1.0.2:80,10.1.0.3:80 + 2 more...",
        ),
        of("six", [subset("fd00::1", ports=(80,))], "[fd00::1]:80"),
    ]


def volume(
    name: str, cells: list[str], status: dict[str, Any], metadata: dict[str, Any] | None = None, **spec: Any
) -> Situation:
    obj = {
        "kind": "PersistentVolume",
        "metadata": named(name, **(metadata or {})),
        "spec": {
            "capacity": {"storage": "5Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": {"path": "/data"},
            "volumeMode": "Filesystem",
            **spec,
        },
        "status": status,
    }
    return Situation(name, obj, [name, "5Gi", *cells, ANY_AGE, "Filesystem"])


def volumes() -> list[Situation]:
    bound = {"claimRef": {"kind": "PersistentVolumeClaim", "namespace": "team", "name": "disk"}}
    return [
        volume("free", ["RWO", "Retain", "Available", "", "", "<unset>", ""], {"phase": "Available"}),
        volume(
            "bound",
            ["RWO,ROX,RWX", "Delete", "Bound", "team/disk", "fast", "<unset>", ""],
            {"phase": "Bound"},
            persistentVolumeReclaimPolicy="Delete",
            accessModes=["ReadWriteMany", "ReadOnlyMany", "ReadWriteOnce"],
            storageClassName="fast",
            **bound,
        ),
        volume(
            "failed",
            ["RWO", "Retain", "Failed", "", "old", "<unset>", "NoSpace"],
            {"phase": "Failed", "reason": "NoSpace"},
            {"annotations": OLD_CLASS},
            storageClassName="fast",
        ),
        volume(
            "going",
            ["RWOP", "Retain", "Terminating", "", "", "<unset>", ""],
            {"phase": "Available"},
            {"deleting": True},
            accessModes=["ReadWriteOncePod"],
        ),
    ]


def claims() -> list[Situation]:
    def of(name: str, cells: list[str], status: dict[str, Any], **parts: Any) -> Situation:
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "volumeMode": "Block",
            **parts.get("spec", {}),
        }
        metadata = named(name, **parts.get("metadata", {}))
        obj = {"kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec, "status": status}
        return Situation(name, obj, [name, *cells, ANY_AGE, "Block"])

    bound = {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "2Gi"}}
    return [
        of("pending", ["Pending", "", "", "", "", "<unset>"], {"phase": "Pending"}),
        of(
            "bound",
            ["Bound", "disk-1", "2Gi", "RWO", "fast", "<unset>"],
            bound,
            spec={"volumeName": "disk-1", "storageClassName": "fast"},
        ),
        of(
            "promised",
            ["Pending", "disk-2", "0", "", "old", "<unset>"],
            {"phase": "Pending"},
            spec={"volumeName": "disk-2"},
            metadata={"annotations": OLD_CLASS},
        ),
        of(
            "going",
            ["Terminating", "", "", "", "", "<unset>"],
            {"phase": "Pending"},
            metadata={"deleting": True},
        ),
    ]


def event(name: str, cells: list[Any], *, involved: dict[str, Any] | None = None, **fields: Any) -> Situation:
    target = {"kind": "Pod", "name": "web", **(involved or {})}
    obj = {
        "kind": "Event",
        "metadata": named(name),
        "involvedObject": target,
        "type": "Normal",
        "reason": "Started",
        **fields,
    }
    return Situation(name, obj, [*cells, name])


def events() -> list[Situation]:
    first, last = at(NOW - 600), at(NOW - 300)
    exact = first.replace("Z", ".000000Z")
    report: dict[str, Any] = {
        "action": "Start",
        "reportingComponent": "podlife",
        "reportingInstance": "podlife-1",
    }
    return [
        event(
            "classic",
            [
                "5m",
                "Normal",
                "Started",
                "pod/web",
                "spec.containers{main}",
                "kubelet, node-1",
                "up",
                "10m",
                7,
            ],
            involved={"fieldPath": "spec.containers{main}"},
            firstTimestamp=first,
            lastTimestamp=last,
            count=7,
            source={"component": "kubelet", "host": "node-1"},
            message="  up\n",
        ),
        event(
            "nameless",
            ["10m", "Normal", "Started", "pod", "", "kubelet", "", "10m", 1],
            involved={"name": ""},
            firstTimestamp=first,
            source={"component": "kubelet"},
        ),
        event("timeless", ["<unknown>", "Normal", "Started", "pod/web", "", "", "", "<unknown>", 1]),
        event(
            "modern",
            ["10m", "Warning", "Failed", "pod/web", "", "podlife, podlife-1", "no", "10m", 1],
            type="Warning",
            reason="Failed",
            eventTime=exact,
            message="no",
            **report,
        ),
        event(
            "series",
            ["5m", "Normal", "Started", "pod/web", "", "podlife, podlife-1", "", "10m", 4],
            eventTime=exact,
            series={"count": 4, "lastObservedTime": last.replace("Z", ".000000Z")},
            **report,
        ),
    ]


SITUATIONS = [
    *configuration(),
    *nodes(),
    *leases(),
    *services(),
    *endpoints(),
    *volumes(),
    *claims(),
    *events(),
]


@pytest.mark.parametrize("case", SITUATIONS, ids=str)
def test_object_is_shown_as_the_real_server_shows_it(case: Situation) -> None:
    assert shown(case.obj) == case.cells


def test_event_of_the_newer_group_is_shown_like_that_of_the_older() -> None:
    obj = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": named("new"),
        "regarding": {"kind": "Pod", "name": "web", "fieldPath": "spec"},
        "type": "Normal",
        "reason": "Started",
        "note": "up",
        "deprecatedFirstTimestamp": at(NOW - 600),
        "deprecatedLastTimestamp": at(NOW - 300),
        "deprecatedCount": 3,
        "deprecatedSource": {"component": "kubelet"},
    }
    assert shown(obj) == ["5m", "Normal", "Started", "pod/web", "spec", "kubelet", "up", "10m", 3, "new"]

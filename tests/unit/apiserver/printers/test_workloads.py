from __future__ import annotations

from typing import Any

import pytest

from podlife.apiserver import printers

from .situation import ANY_AGE, NOW, Situation, named, with_any_age

LABELS = {"app": "web", "Tier": "front"}
SELECTOR = {
    "matchLabels": {"app": "web"},
    "matchExpressions": [
        {"key": "Tier", "operator": "In", "values": ["front", "back"]},
        {"key": "app", "operator": "Exists"},
        {"key": "legacy", "operator": "DoesNotExist"},
    ],
}
SELECTOR_TEXT = "Tier in (back,front),app=web,app,!legacy"
TEMPLATE = {
    "metadata": {"labels": LABELS},
    "spec": {
        "nodeSelector": {"disk": "ssd", "Arch": "arm"},
        "containers": [{"name": "web", "image": "nginx:1"}, {"name": "log", "image": "fluent"}],
    },
}
WIDE = ["web,log", "nginx:1,fluent"]


def workload(
    kind: str, name: str, cells: list[Any], *, api_version: str = "apps/v1", **parts: Any
) -> Situation:
    spec = {"selector": SELECTOR, "template": TEMPLATE, **parts.get("spec", {})}
    obj = {"apiVersion": api_version, "kind": kind, "metadata": named(name), "spec": spec}
    return Situation(name, obj | {"status": parts.get("status", {})}, [name, *cells])


def deployments(now: float) -> list[Situation]:
    status = {
        "observedGeneration": 1,
        "replicas": 4,
        "readyReplicas": 2,
        "updatedReplicas": 3,
        "availableReplicas": 1,
        "unavailableReplicas": 3,
    }
    return [
        workload("Deployment", "new", ["0/3", 0, 0, ANY_AGE, *WIDE, SELECTOR_TEXT], spec={"replicas": 3}),
        workload("Deployment", "none", ["0/0", 0, 0, ANY_AGE, *WIDE, SELECTOR_TEXT], spec={"replicas": 0}),
        workload(
            "Deployment",
            "rolling",
            ["2/4", 3, 1, ANY_AGE, *WIDE, SELECTOR_TEXT],
            spec={"replicas": 4},
            status=status,
        ),
    ]


def replica_sets(now: float) -> list[Situation]:
    return [
        workload(
            "ReplicaSet",
            "partly",
            [5, 4, 3, ANY_AGE, *WIDE, SELECTOR_TEXT],
            spec={"replicas": 5},
            status={"replicas": 4, "readyReplicas": 3},
        ),
        workload(
            "ReplicationController",
            "old",
            [2, 2, 1, ANY_AGE, *WIDE, "Tier=front,app=web"],
            api_version="v1",
            spec={"replicas": 2, "selector": LABELS},
            status={"replicas": 2, "readyReplicas": 1},
        ),
    ]


def sets(now: float) -> list[Situation]:
    daemons = {
        "desiredNumberScheduled": 5,
        "currentNumberScheduled": 4,
        "numberReady": 3,
        "updatedNumberScheduled": 2,
        "numberAvailable": 1,
        "numberMisscheduled": 0,
    }
    return [
        workload(
            "StatefulSet",
            "ordered",
            ["1/2", ANY_AGE, *WIDE],
            spec={"replicas": 2, "serviceName": "ordered"},
            status={"replicas": 2, "readyReplicas": 1},
        ),
        workload(
            "DaemonSet",
            "everywhere",
            [5, 4, 3, 2, 1, "Arch=arm,disk=ssd", ANY_AGE, *WIDE, SELECTOR_TEXT],
            status=daemons,
        ),
        workload(
            "DaemonSet",
            "anywhere",
            [0, 0, 0, 0, 0, "<none>", ANY_AGE, "web", "nginx", "app=web"],
            spec={
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": LABELS},
                    "spec": {"containers": [{"name": "web", "image": "nginx"}]},
                },
            },
        ),
    ]


def revisions(now: float) -> list[Situation]:
    def of(name: str, revision: int, owners: list[dict[str, Any]], controller: str) -> Situation:
        obj = {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": named(name, ownerReferences=owners),
            "revision": revision,
            "data": {"spec": {}},
        }
        return Situation(name, obj, [name, controller, revision, ANY_AGE])

    def owner(api_version: str, kind: str, *, controls: bool) -> dict[str, Any]:
        return {"apiVersion": api_version, "kind": kind, "name": "web", "uid": kind, "controller": controls}

    return [
        of("free", 1, [], "<none>"),
        of("owned", 2, [owner("apps/v1", "StatefulSet", controls=True)], "statefulset.apps/web"),
        of("core", 3, [owner("v1", "Node", controls=True)], "node/web"),
        of("kept", 4, [owner("apps/v1", "DaemonSet", controls=False)], "<none>"),
    ]


PRINTERS = {
    "Deployment": printers.DEPLOYMENTS,
    "ReplicaSet": printers.REPLICA_SETS,
    "ReplicationController": printers.REPLICATION_CONTROLLERS,
    "StatefulSet": printers.STATEFUL_SETS,
    "DaemonSet": printers.DAEMON_SETS,
    "ControllerRevision": printers.CONTROLLER_REVISIONS,
}


def situations(now: float) -> list[Situation]:
    return [*deployments(now), *replica_sets(now), *sets(now), *revisions(now)]


@pytest.mark.parametrize("case", situations(NOW), ids=lambda case: f"{case.obj['kind']}-{case.name}")
def test_workload_is_shown_as_the_real_server_shows_it(case: Situation) -> None:
    printer = PRINTERS[case.obj["kind"]]
    assert with_any_age(printer.cells(case.obj, NOW), printer.columns) == case.cells

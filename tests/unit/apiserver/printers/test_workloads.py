from __future__ import annotations

from typing import Any

import pytest

from .situation import ANY_AGE, NOW, Situation, at, named, shown

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


def workload(kind: str, name: str, cells: list[Any], **parts: Any) -> Situation:
    spec = {"selector": SELECTOR, "template": TEMPLATE, **parts.get("spec", {})}
    obj = {"kind": kind, "metadata": named(name), "spec": spec}
    return Situation(name, obj | {"status": parts.get("status", {})}, [name, *cells])


def deployments() -> list[Situation]:
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


def replica_sets() -> list[Situation]:
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
            spec={"replicas": 2, "selector": LABELS},
            status={"replicas": 2, "readyReplicas": 1},
        ),
    ]


def sets() -> list[Situation]:
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


def revisions() -> list[Situation]:
    def of(name: str, revision: int, owners: list[dict[str, Any]], controller: str) -> Situation:
        obj = {
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


JOB_LABELS = {"app": "sum"}
JOB_TEMPLATE = {
    "metadata": {"labels": JOB_LABELS},
    "spec": {"restartPolicy": "Never", "containers": [{"name": "sum", "image": "python"}]},
}
JOB_SPEC = {"template": JOB_TEMPLATE, "selector": {"matchLabels": JOB_LABELS}, "manualSelector": True}
JOB_WIDE = ["sum", "python", "app=sum"]


def job(
    name: str, cells: list[str], status: dict[str, Any], *, deleting: bool = False, **spec: Any
) -> Situation:
    obj = {
        "kind": "Job",
        "metadata": named(name, deleting=deleting),
        "spec": {**JOB_SPEC, **spec},
        "status": status,
    }
    return Situation(name, obj, [name, *cells, ANY_AGE, *JOB_WIDE])


def having(*conditions: str, **status: Any) -> dict[str, Any]:
    found = [{"type": each, "status": "True", "lastTransitionTime": at(NOW)} for each in conditions]
    return {"conditions": found, **status}


def jobs() -> list[Situation]:
    started = {"startTime": at(NOW - 3700)}
    complete = having("SuccessCriteriaMet", "Complete", **started, succeeded=1) | {
        "completionTime": at(NOW - 3550)
    }
    return [
        job("new", ["Running", "0/1", ""], {}, completions=1),
        job("running", ["Running", "1/3", "61m"], {**started, "succeeded": 1}, completions=3, parallelism=2),
        job("complete", ["Complete", "1/1", "2m30s"], complete, completions=1),
        job("failed", ["Failed", "0/1", "61m"], having("FailureTarget", "Failed", **started), completions=1),
        job("suspended", ["Suspended", "0/1", ""], having("Suspended"), completions=1, suspend=True),
        job("failing", ["FailureTarget", "0/1", "61m"], having("FailureTarget", **started), completions=1),
        job(
            "succeeding",
            ["SuccessCriteriaMet", "1/1", "61m"],
            having("SuccessCriteriaMet", **started, succeeded=1),
            completions=1,
        ),
        job("deleted", ["Terminating", "0/1", "61m"], started, deleting=True, completions=1),
        job("queue", ["Running", "0/1 of 4", "61m"], started, parallelism=4),
        job("single", ["Running", "0/1", "61m"], started, parallelism=1),
    ]


def cron_jobs() -> list[Situation]:
    def of(name: str, cells: list[Any], status: dict[str, Any], **spec: Any) -> Situation:
        obj = {
            "kind": "CronJob",
            "metadata": named(name),
            "spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": JOB_TEMPLATE}}, **spec},
            "status": status,
        }
        return Situation(name, obj, [name, "*/5 * * * *", *cells, ANY_AGE, "sum", "python", "<none>"])

    active = [{"kind": "Job", "name": "a"}, {"kind": "Job", "name": "b"}]
    return [
        of("waiting", ["<none>", "False", 0, "<none>"], {}, suspend=False),
        of(
            "busy",
            ["Europe/Zurich", "True", 2, "3h20m"],
            {"active": active, "lastScheduleTime": at(NOW - 12000)},
            suspend=True,
            timeZone="Europe/Zurich",
        ),
    ]


SITUATIONS = [*deployments(), *replica_sets(), *sets(), *revisions(), *jobs(), *cron_jobs()]


@pytest.mark.parametrize("case", SITUATIONS, ids=str)
def test_workload_is_shown_as_the_real_server_shows_it(case: Situation) -> None:
    assert shown(case.obj) == case.cells

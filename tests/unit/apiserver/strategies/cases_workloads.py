"""Controllers of pods to create, with the answers of kube-apiserver recorded in `golden/workloads.json`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.unit.apiserver.strategies.cases_pods import Case, box

LABELS = {"app": "a"}
SELECTOR = {"matchLabels": LABELS}


def template(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [box()], **spec}}


def workload(
    kind: str, group: str = "apps/v1", meta: dict[str, Any] | None = None, **spec: Any
) -> dict[str, Any]:
    metadata = {"name": "w", "namespace": "default", **(meta or {})}
    return {"apiVersion": group, "kind": kind, "metadata": metadata, "spec": spec}


def selectors(kind: str) -> Iterator[Case]:
    """Cases that deployments, replica sets, stateful sets and daemon sets share."""
    good: dict[str, Any] = {"selector": SELECTOR, "template": template()}
    yield f"{kind}", workload(kind, **good)
    yield f"{kind} with status", {**workload(kind, **good), "status": {"replicas": 3}}
    yield f"{kind} without anything", workload(kind)
    yield f"{kind} without a selector", workload(kind, template=template())
    by_expression: dict[str, Any] = {"key": "app", "operator": "In", "values": ["a", "b"]}
    choices: dict[str, dict[str, Any]] = {
        "with an empty selector": {},
        "with empty parts in its selector": {"matchLabels": LABELS, "matchExpressions": []},
        "selecting others": {"matchLabels": {"b": "c"}},
        "by expression": {"matchExpressions": [by_expression]},
        "by a bad expression": {"matchExpressions": [{"key": "app", "operator": "Is"}]},
    }
    for label, selector in choices.items():
        yield f"{kind} {label}", workload(kind, selector=selector, template=template())
    templates = {
        "whose pods end": template(restartPolicy="Never", activeDeadlineSeconds=3),
        "of bad pods": {"metadata": {"labels": {**LABELS, "-": "x"}}, "spec": {"containers": []}},
        "with ephemeral containers": template(ephemeralContainers=[box("e")]),
        "with limits": template(containers=[box(resources={"limits": {"cpu": 1}})]),
        "on the host network": template(hostNetwork=True, containers=[box(ports=[{"containerPort": 8}])]),
    }
    for label, pods in templates.items():
        yield f"{kind} {label}", workload(kind, selector=SELECTOR, template=pods)
    yield f"{kind} less than none", workload(kind, **good, minReadySeconds=-1, revisionHistoryLimit=-1)
    yield f"{kind} with a bad name", workload(kind, meta={"name": "A_b"}, **good)
    yield f"{kind} with a dotted name", workload(kind, meta={"name": "a.b"}, **good)


def deployments() -> Iterator[Case]:
    yield from selectors("Deployment")
    base: dict[str, Any] = {"selector": SELECTOR, "template": template()}
    yield "replicas -1", workload("Deployment", **base, replicas=-1)
    yield "replicas 0", workload("Deployment", **base, replicas=0, paused=False, minReadySeconds=0)
    yield "paused", workload("Deployment", **base, paused=True, minReadySeconds=5)
    yield "recreate", workload("Deployment", **base, strategy={"type": "Recreate"})
    both = {"type": "Recreate", "rollingUpdate": {}}
    yield "recreate rolling", workload("Deployment", **base, strategy=both)
    yield "unknown strategy", workload("Deployment", **base, strategy={"type": "X"})
    for unavailable, surge in ((0, 0), ("0%", 0), (1, "x"), ("101%", 1), (-1, -1), ("25%", "200%"), (0, 1)):
        rolling = {"rollingUpdate": {"maxUnavailable": unavailable, "maxSurge": surge}}
        yield f"rolling {unavailable} {surge}", workload("Deployment", **base, strategy=rolling)
    yield "short deadline", workload("Deployment", **base, progressDeadlineSeconds=5, minReadySeconds=5)


def replica_sets() -> Iterator[Case]:
    yield from selectors("ReplicaSet")
    yield "replicas -1", workload("ReplicaSet", selector=SELECTOR, template=template(), replicas=-1)


def daemon_sets() -> Iterator[Case]:
    yield from selectors("DaemonSet")
    base: dict[str, Any] = {"selector": SELECTOR, "template": template()}
    yield "on delete", workload("DaemonSet", **base, updateStrategy={"type": "OnDelete"})
    yield "unknown", workload("DaemonSet", **base, updateStrategy={"type": "X"})
    for unavailable, surge in ((0, 0), (1, 1), ("x", 0), ("101%", 0), (0, "10%"), (0, "101%"), (-1, 0)):
        rolling = {"rollingUpdate": {"maxUnavailable": unavailable, "maxSurge": surge}}
        yield f"rolling {unavailable} {surge}", workload("DaemonSet", **base, updateStrategy=rolling)


def stateful_sets() -> Iterator[Case]:
    yield from selectors("StatefulSet")
    base: dict[str, Any] = {"selector": SELECTOR, "template": template(), "serviceName": "s"}
    yield "replicas -1", workload("StatefulSet", **base, replicas=-1, ordinals={"start": -1})
    yield "parallel", workload("StatefulSet", **base, podManagementPolicy="Parallel", ordinals={"start": 0})
    yield "management unknown", workload("StatefulSet", **base, podManagementPolicy="X")
    for strategy in (
        {"type": "OnDelete"},
        {"type": "OnDelete", "rollingUpdate": {"partition": 1}},
        {"type": "RollingUpdate"},
        {"type": "RollingUpdate", "rollingUpdate": {"partition": -1}},
        {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}},
        {"rollingUpdate": {"partition": 2}},
        {"type": "X"},
    ):
        yield f"strategy {strategy}", workload("StatefulSet", **base, updateStrategy=strategy)
    for label, policy in (("retention", "Delete"), ("bad retention", "X")):
        retention: dict[str, Any] = {"persistentVolumeClaimRetentionPolicy": {"whenScaled": policy}}
        yield label, workload("StatefulSet", **base, **retention)
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}
    mounted = template(containers=[box(volumeMounts=[{"name": "d", "mountPath": "/d"}])])
    claims = [{"metadata": {"name": "d"}, "spec": claim}]
    yield "claims", workload("StatefulSet", **{**base, "template": mounted}, volumeClaimTemplates=claims)
    bad_claims = [{"metadata": {"name": "d"}, "spec": {"accessModes": ["X"]}}]
    yield "bad claims", workload("StatefulSet", **base, volumeClaimTemplates=bad_claims)
    yield "bad service name", workload("StatefulSet", **{**base, "serviceName": "A.b"})
    yield "hostname in the template", workload("StatefulSet", **{**base, "template": template(hostname="A")})
    yield "long name", workload("StatefulSet", meta={"name": "a" * 64}, **base)


def replication_controllers() -> Iterator[Case]:
    def controller(meta: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
        return workload("ReplicationController", "v1", meta, **spec)

    yield "plain", controller(template=template())
    yield "selector", controller(selector=LABELS, template=template(), replicas=0, minReadySeconds=0)
    yield "own labels", controller(meta={"labels": {"x": "y"}}, template=template())
    yield "selecting others", controller(selector={"b": "c"}, template=template())
    yield "nothing", controller()
    yield "no labels", controller(template={"spec": {"containers": [box()]}})
    yield "negative", controller(template=template(), replicas=-1, minReadySeconds=-1)
    yield "pods that end", controller(template=template(restartPolicy="Never"))


def jobs() -> Iterator[Case]:
    def job(
        meta: dict[str, Any] | None = None, pod: dict[str, Any] | None = None, **spec: Any
    ) -> dict[str, Any]:
        pods = {
            "metadata": {"labels": {"l": "v"}},
            "spec": {"containers": [box()], "restartPolicy": "Never", **(pod or {})},
        }
        return workload("Job", "batch/v1", meta, template=pods, **spec)

    yield "plain", job()
    yield "own labels", job(meta={"labels": {"x": "y"}})
    yield "no template", workload("Job", "batch/v1")
    for policy in ("Always", "", "OnFailure", "X"):
        yield f"restart {policy}", job(pod={"restartPolicy": policy})
    yield "parallel", job(parallelism=3)
    yield "completions", job(completions=3)
    counts = (
        "parallelism",
        "completions",
        "backoffLimit",
        "activeDeadlineSeconds",
        "ttlSecondsAfterFinished",
    )
    negative: dict[str, Any] = dict.fromkeys(counts, -1)
    yield "negative", job(**negative)
    yield "indexed", job(completionMode="Indexed", completions=3)
    yield "indexed without completions", job(completionMode="Indexed", parallelism=1)
    yield "mode unknown", job(completionMode="X")
    per_index: dict[str, Any] = {"backoffLimitPerIndex": 1, "maxFailedIndexes": 2}
    yield "per index", job(completionMode="Indexed", completions=3, **per_index)
    yield "per index without indexes", job(**per_index)
    yield "too many failed", job(completionMode="Indexed", completions=3, maxFailedIndexes=4)
    large: dict[str, Any] = {"completions": 200000, "parallelism": 100001}
    yield "too large", job(completionMode="Indexed", **large, backoffLimitPerIndex=1)
    yield "long indexed name", job(meta={"name": "a" * 63}, completionMode="Indexed", completions=3)
    yield "selector of its own", job(selector={"matchLabels": {"l": "v"}})
    yield "manual selector", job(manualSelector=True, selector={"matchLabels": {"l": "v"}})
    yield "manual selector of others", job(manualSelector=True, selector={"matchLabels": {"l": "w"}})
    yield "manual without selector", job(manualSelector=True)
    yield "suspended", job(suspend=True, managedBy="a.b/c")
    yield "bad manager", job(managedBy="abc")
    yield "replacement unknown", job(podReplacementPolicy="X")
    rules = [
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1, 2]}},
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
    ]
    yield "failure policy", job(podFailurePolicy={"rules": rules})
    on_failure: dict[str, Any] = {
        "podFailurePolicy": {"rules": rules},
        "podReplacementPolicy": "TerminatingOrFailed",
    }
    yield "failure policy on failure", job(pod={"restartPolicy": "OnFailure"}, **on_failure)
    bad_rules = [
        {"action": ""},
        {"action": "X", "onExitCodes": {"operator": "Is", "values": []}},
        {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [2, 0, 2], "containerName": "z"}},
        {
            "action": "Count",
            "onExitCodes": {"operator": "", "values": [1]},
            "onPodConditions": [{"type": "a b", "status": "X"}],
        },
    ]
    yield "bad failure policy", job(podFailurePolicy={"rules": bad_rules})
    indexed: dict[str, Any] = {"completionMode": "Indexed", "completions": 5}
    some = {"succeededIndexes": "0,2-4", "succeededCount": 2}
    yield "success policy", job(**indexed, successPolicy={"rules": [some]})
    yield "success without indexes", job(successPolicy={"rules": [{"succeededCount": 1}]})
    for rule in (
        {},
        {"succeededIndexes": "5"},
        {"succeededIndexes": "x"},
        {"succeededIndexes": "3-1"},
        {"succeededIndexes": "1-2-3"},
        {"succeededIndexes": "2,1"},
        {"succeededCount": -1},
        {"succeededCount": 6},
        {"succeededIndexes": "0-1", "succeededCount": 3},
    ):
        yield f"success {rule}", job(**indexed, successPolicy={"rules": [rule]})
    yield "success without rules", job(**indexed, successPolicy={"rules": []})


def cron_jobs() -> Iterator[Case]:
    def cron(
        meta: dict[str, Any] | None = None, job: dict[str, Any] | None = None, **spec: Any
    ) -> dict[str, Any]:
        pods = {"spec": {"containers": [box()], "restartPolicy": "Never"}}
        body = {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": pods, **(job or {})}}, **spec}
        return workload("CronJob", "batch/v1", meta, **body)

    yield "plain", cron()
    yield "nothing", workload("CronJob", "batch/v1")
    for schedule in (
        "",
        "*/5 0 1 jan MON",
        "@hourly",
        "@every 5m",
        "@every -0",
        "@every 2562047h",
        "@every 2562048h",
        "@every x",
        "@never",
        "* * *",
        "60 * * * *",
        "x * * * *",
        "5-1 * * * *",
        "*/0 * * * *",
        "1-2-3 * * * *",
        "1/2/3 * * * *",
        "* * 0 * *",
        "-1 * * * *",
        "* * * * 7",
        "TZ=UTC * * * * *",
        "1,2,30-40/5 ? * * ?",
    ):
        yield f"schedule {schedule}", cron(schedule=schedule)
    for zone in ("UTC", "Europe/Berlin", "", "Local", "No/Where", "../x", "a b"):
        yield f"zone {zone}", cron(timeZone=zone)
    yield "policy", cron(concurrencyPolicy="Forbid", suspend=True, successfulJobsHistoryLimit=0)
    yield "policy unknown", cron(concurrencyPolicy="X")
    counts = ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    negative: dict[str, Any] = dict.fromkeys(counts, -1)
    yield "negative", cron(**negative)
    yield "long name", cron(meta={"name": "a" * 53})
    yield "selector", cron(job={"selector": SELECTOR, "manualSelector": True})


def revisions() -> Iterator[Case]:
    def revision(**fields: Any) -> dict[str, Any]:
        meta = {"name": "r", "namespace": "default"}
        return {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": meta, **fields}

    yield "plain", revision(revision=1, data={"a": 1})
    yield "no data", revision(revision=1)
    yield "negative", revision(revision=-1, data={})
    yield "no revision", revision(data={})

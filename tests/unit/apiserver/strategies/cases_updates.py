"""Existing objects and updates of them; answers recorded in `golden/updates.json`.

A case is (label, resource, subresource, the object as created, its status if it has one, the change).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tests.unit.apiserver.strategies import cases_core as core
from tests.unit.apiserver.strategies import cases_pods as pods
from tests.unit.apiserver.strategies import cases_workloads as workloads

Object = dict[str, Any]


class Update(NamedTuple):
    label: str
    resource: str
    created: Object
    change: Callable[[Object], Any]
    status: Object | None = None
    subresource: str = ""


def put(*path: Any, value: Any) -> Callable[[Object], None]:
    def change(obj: Object) -> None:
        holder: Any = obj
        for step in path[:-1]:
            holder = holder.setdefault(step, {}) if isinstance(holder, dict) else holder[step]
        holder[path[-1]] = copy.deepcopy(value)

    return change


def drop(*path: Any) -> Callable[[Object], None]:
    def change(obj: Object) -> None:
        holder: Any = obj
        for step in path[:-1]:
            holder = holder[step]
        del holder[path[-1]]

    return change


def of_metadata() -> Iterator[Update]:
    pod = pods.pod(meta={"labels": {"a": "b"}, "annotations": {"c": "d"}})
    for label, change in (
        ("labels", put("metadata", "labels", value={"x": "y"})),
        ("bad label", put("metadata", "labels", value={"x y": "y"})),
        ("no labels", drop("metadata", "labels")),
        ("annotations", put("metadata", "annotations", "e", value="f")),
        ("bad annotation", put("metadata", "annotations", "e f", value="f")),
        ("finalizer", put("metadata", "finalizers", value=["a.b/c"])),
        ("unqualified finalizer", put("metadata", "finalizers", value=["abc"])),
        (
            "owner",
            put(
                "metadata",
                "ownerReferences",
                value=[{"apiVersion": "v1", "kind": "X", "name": "x", "uid": "u"}],
            ),
        ),
        (
            "bad owner",
            put(
                "metadata",
                "ownerReferences",
                value=[{"apiVersion": "v1", "kind": "X", "name": "", "uid": "u"}],
            ),
        ),
        ("creation time", put("metadata", "creationTimestamp", value="2001-01-01T00:00:00Z")),
        ("deletion time", put("metadata", "deletionTimestamp", value="2001-01-01T00:00:00Z")),
        ("deletion grace", put("metadata", "deletionGracePeriodSeconds", value=3)),
        ("generation", put("metadata", "generation", value=77)),
        ("no uid", drop("metadata", "uid")),
        ("generate name", put("metadata", "generateName", value="B_")),
        ("mirror", put("metadata", "annotations", value={"kubernetes.io/config.mirror": "x"})),
    ):
        yield Update(f"metadata: {label}", "pods", pod, change)


def of_pods() -> Iterator[Update]:
    toleration = {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    pod = pods.pod(activeDeadlineSeconds=100, initContainers=[pods.box("i")], tolerations=[toleration])
    gated = pods.pod(schedulingGates=[{"name": "g"}, {"name": "h"}], nodeSelector={"a": "b"})
    for label, created, change in (
        ("image", pod, put("spec", "containers", 0, "image", value="busybox:2")),
        ("init image", pod, put("spec", "initContainers", 0, "image", value="busybox:2")),
        ("no image", pod, put("spec", "containers", 0, "image", value="")),
        ("image with spaces", pod, put("spec", "containers", 0, "image", value=" x")),
        ("command", pod, put("spec", "containers", 0, "command", value=["x"])),
        ("one more container", pod, put("spec", "containers", value=[pods.box(), pods.box("d")])),
        ("shorter deadline", pod, put("spec", "activeDeadlineSeconds", value=50)),
        ("longer deadline", pod, put("spec", "activeDeadlineSeconds", value=500)),
        ("no deadline", pod, drop("spec", "activeDeadlineSeconds")),
        ("first deadline", pods.pod(), put("spec", "activeDeadlineSeconds", value=5)),
        ("negative deadline", pod, put("spec", "activeDeadlineSeconds", value=-5)),
        ("no tolerations", pod, drop("spec", "tolerations")),
        ("toleration seconds", pod, put("spec", "tolerations", 0, "tolerationSeconds", value=9)),
        ("grace", pod, put("spec", "terminationGracePeriodSeconds", value=5)),
        ("restart policy", pod, put("spec", "restartPolicy", value="Never")),
        ("node", pod, put("spec", "nodeName", value="n")),
        ("host name", pod, put("spec", "hostname", value="h")),
        ("ephemeral", pod, put("spec", "ephemeralContainers", value=[pods.box("e")])),
        ("status by the way", pod, put("status", "phase", value="Failed")),
        ("fewer gates", gated, put("spec", "schedulingGates", value=[{"name": "g"}])),
        ("no gates", gated, drop("spec", "schedulingGates")),
        ("more gates", gated, put("spec", "schedulingGates", value=[{"name": "g"}, {"name": "z"}])),
        ("narrower", gated, put("spec", "nodeSelector", "c", value="d")),
        ("wider", gated, put("spec", "nodeSelector", value={"c": "d"})),
        ("late gates", pod, put("spec", "schedulingGates", value=[{"name": "g"}])),
    ):
        yield Update(f"pod: {label}", "pods", created, change)


def of_pod_status() -> Iterator[Update]:
    ended = {
        "state": {"terminated": {"exitCode": 1}},
        "name": "c",
        "image": "i",
        "imageID": "",
        "ready": False,
    }
    done = {"phase": "Running", "containerStatuses": [{**ended, "restartCount": 0}]}
    running = [{**ended, "restartCount": 1, "state": {"running": {}}}]
    bound = pods.pod(nodeName="n")
    for label, created, status, change in (
        ("phase", bound, None, put("status", "phase", value="Running")),
        ("addresses", bound, None, put("status", "podIP", value="10.1.2.3")),
        (
            "two addresses",
            bound,
            None,
            put("status", "podIPs", value=[{"ip": "10.1.2.3"}, {"ip": "fd00::1"}]),
        ),
        (
            "two of a kind",
            bound,
            None,
            put("status", "podIPs", value=[{"ip": "10.1.2.3"}, {"ip": "10.1.2.4"}]),
        ),
        ("bad address", bound, None, put("status", "podIP", value="x")),
        ("host address", bound, None, put("status", "hostIPs", value=[{"ip": "1.2.3.4"}])),
        ("class", bound, None, put("status", "qosClass", value="Guaranteed")),
        ("no class", bound, None, drop("status", "qosClass")),
        ("condition", bound, None, put("status", "conditions", value=[{"type": "Ready", "status": "True"}])),
        (
            "bad condition",
            bound,
            None,
            put("status", "conditions", value=[{"type": "a b", "status": "True"}]),
        ),
        ("nominated", pods.pod(), None, put("status", "nominatedNodeName", value="n")),
        ("badly nominated", pods.pod(), None, put("status", "nominatedNodeName", value="N")),
        ("nominated when bound", bound, None, put("status", "nominatedNodeName", value="m")),
        ("observed", bound, None, put("status", "observedGeneration", value=-1)),
        ("spec by the way", bound, None, put("spec", "nodeName", value="m")),
        ("owner by the way", bound, None, put("metadata", "ownerReferences", value=[])),
        ("restarted", bound, done, put("status", "containerStatuses", value=running)),
        (
            "restarted although never",
            pods.pod(nodeName="n", restartPolicy="Never"),
            done,
            put("status", "containerStatuses", value=running),
        ),
        (
            "restarted on failure",
            pods.pod(nodeName="n", restartPolicy="OnFailure"),
            done,
            put("status", "containerStatuses", value=running),
        ),
    ):
        yield Update(f"pod status: {label}", "pods", created, change, status, "status")


def of_workloads() -> Iterator[Update]:
    def of(kind: str, **spec: Any) -> Object:
        return workloads.workload(kind, selector=workloads.SELECTOR, template=workloads.template(), **spec)

    other = {"matchLabels": {"app": "a", "b": "c"}}
    for kind, resource in (
        ("Deployment", "deployments.apps"),
        ("ReplicaSet", "replicasets.apps"),
        ("DaemonSet", "daemonsets.apps"),
        ("StatefulSet", "statefulsets.apps"),
    ):
        created = of(kind)
        yield Update(f"{kind}: selector", resource, created, put("spec", "selector", value=other))
        yield Update(f"{kind}: wait", resource, created, put("spec", "minReadySeconds", value=3))
        yield Update(
            f"{kind}: image",
            resource,
            created,
            put("spec", "template", "spec", "containers", 0, "image", value="x:1"),
        )
        yield Update(f"{kind}: annotation", resource, created, put("metadata", "annotations", "x", value="y"))
        yield Update(f"{kind}: status", resource, created, put("status", "replicas", value=5))
    created = of("StatefulSet")
    yield Update("StatefulSet: service", "statefulsets.apps", created, put("spec", "serviceName", value="z"))
    yield Update(
        "StatefulSet: policy",
        "statefulsets.apps",
        created,
        put("spec", "podManagementPolicy", value="Parallel"),
    )
    yield Update("StatefulSet: replicas", "statefulsets.apps", created, put("spec", "replicas", value=3))
    for kind, resource in (
        ("Deployment", "deployments.apps"),
        ("ReplicaSet", "replicasets.apps"),
        ("StatefulSet", "statefulsets.apps"),
    ):
        for label, status in (
            ("good", {"replicas": 3, "readyReplicas": 2, "availableReplicas": 1}),
            ("bad", {"replicas": 1, "readyReplicas": 2, "availableReplicas": 3}),
            ("negative", {"replicas": -1, "observedGeneration": -2}),
        ):
            yield Update(
                f"{kind} status: {label}", resource, of(kind), put("status", value=status), None, "status"
            )


def of_jobs() -> Iterator[Update]:
    pod = {"spec": {"containers": [pods.box()], "restartPolicy": "Never"}}
    job = workloads.workload("Job", "batch/v1", template=pod)
    indexed = workloads.workload(
        "Job", "batch/v1", template=pod, completionMode="Indexed", completions=3, parallelism=3
    )
    for label, created, change in (
        ("parallelism", job, put("spec", "parallelism", value=5)),
        ("completions", job, put("spec", "completions", value=5)),
        ("selector", job, put("spec", "selector", value={"matchLabels": {"a": "b"}})),
        ("mode", job, put("spec", "completionMode", value="Indexed")),
        ("suspend", job, put("spec", "suspend", value=True)),
        ("indexed alone", indexed, put("spec", "completions", value=5)),
        ("deadline", job, put("spec", "activeDeadlineSeconds", value=5)),
    ):
        yield Update(f"job: {label}", "jobs.batch", created, change)
    time = "2030-01-01T00:00:00Z"
    complete = [{"type": "SuccessCriteriaMet", "status": "True"}, {"type": "Complete", "status": "True"}]
    for label, status in (
        ("active", {"active": 1, "startTime": time, "ready": 1}),
        ("more ready than active", {"active": 1, "ready": 2}),
        ("complete", {"startTime": time, "completionTime": time, "succeeded": 1, "conditions": complete}),
        ("complete without times", {"conditions": complete}),
        (
            "complete without criteria",
            {"startTime": time, "completionTime": time, "conditions": complete[1:]},
        ),
        ("failed without target", {"startTime": time, "conditions": [{"type": "Failed", "status": "True"}]}),
        (
            "complete and active",
            {"active": 1, "startTime": time, "completionTime": time, "conditions": complete},
        ),
        ("time alone", {"completionTime": time}),
        ("indexes", {"completedIndexes": "0"}),
        ("negative", {"failed": -1}),
        ("uncounted", {"uncountedTerminatedPods": {"succeeded": ["a", "a"], "failed": [""]}}),
    ):
        yield Update(f"job status: {label}", "jobs.batch", job, put("status", value=status), None, "status")


def of_the_rest() -> Iterator[Update]:
    fixed = core.thing("ConfigMap", data={"a": "b"}, immutable=True)
    yield Update(
        "config map: data",
        "configmaps",
        core.thing("ConfigMap", data={"a": "b"}),
        put("data", "a", value="c"),
    )
    yield Update("config map: fixed", "configmaps", fixed, put("data", "a", value="c"))
    yield Update("config map: freed", "configmaps", fixed, drop("immutable"))
    secret = core.thing("Secret", data={"a": "AAA="}, immutable=True)
    yield Update("secret: fixed", "secrets", secret, put("data", "a", value="AQA="))
    yield Update("secret: type", "secrets", core.thing("Secret"), put("type", value="x"))
    namespace = core.cluster_thing("Namespace", name="of-updates")
    yield Update("namespace: finalizers", "namespaces", namespace, put("spec", "finalizers", value=[]))
    yield Update("namespace: labels", "namespaces", namespace, drop("metadata", "labels"))
    yield Update(
        "namespace status",
        "namespaces",
        namespace,
        put("status", "phase", value="Terminating"),
        None,
        "status",
    )
    node = core.cluster_thing("Node", spec={"podCIDR": "10.1.0.0/24", "providerID": "a://b"})
    yield Update("node: range", "nodes", node, put("spec", "podCIDRs", value=["10.2.0.0/24"]))
    yield Update("node: provider", "nodes", node, put("spec", "providerID", value="c://d"))
    yield Update("node: cordon", "nodes", node, put("spec", "unschedulable", value=True))
    yield Update("node: taint", "nodes", node, put("spec", "taints", value=[{"key": "a", "effect": "X"}]))
    address = {"type": "InternalIP", "address": "1.2.3.4"}
    yield Update(
        "node status: addresses", "nodes", node, put("status", "addresses", value=[address]), None, "status"
    )
    yield Update(
        "node status: twice",
        "nodes",
        node,
        put("status", "addresses", value=[address, address]),
        None,
        "status",
    )
    yield Update(
        "node status: capacity",
        "nodes",
        node,
        put("status", "capacity", value={"cpu": "1000m"}),
        None,
        "status",
    )
    claim = core.thing(
        "PersistentVolumeClaim",
        spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}},
    )
    yield Update(
        "claim: size",
        "persistentvolumeclaims",
        claim,
        put("spec", "resources", "requests", "storage", value="3Gi"),
    )
    yield Update("claim: volume", "persistentvolumeclaims", claim, put("spec", "volumeName", value="v"))
    yield Update("claim: mode", "persistentvolumeclaims", claim, put("spec", "volumeMode", value="Block"))
    volume = core.cluster_thing(
        "PersistentVolume",
        spec={"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}},
    )
    yield Update("volume: path", "persistentvolumes", volume, put("spec", "hostPath", "path", value="/y"))
    yield Update("volume: size", "persistentvolumes", volume, put("spec", "capacity", "storage", value="2Gi"))
    budget = core.thing("PodDisruptionBudget", "policy/v1", spec={"minAvailable": 1})
    yield Update("budget: spec", "poddisruptionbudgets.policy", budget, put("spec", "minAvailable", value=2))
    yield Update(
        "budget status",
        "poddisruptionbudgets.policy",
        budget,
        put("status", "disruptionsAllowed", value=-1),
        None,
        "status",
    )
    revision = {**core.thing("ControllerRevision", "apps/v1"), "data": {"a": 1}, "revision": 1}
    yield Update("revision: data", "controllerrevisions.apps", revision, put("data", value={"a": 2}))
    yield Update("revision: number", "controllerrevisions.apps", revision, put("revision", value=2))


def updates() -> Iterator[Update]:
    for part in (of_metadata, of_pods, of_pod_status, of_workloads, of_jobs, of_the_rest):
        yield from part()

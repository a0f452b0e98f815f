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
    owner = {"apiVersion": "v1", "kind": "X", "name": "x", "uid": "u"}
    for label, change in (
        ("labels", put("metadata", "labels", value={"x": "y"})),
        ("bad label", put("metadata", "labels", value={"x y": "y"})),
        ("no labels", drop("metadata", "labels")),
        ("annotations", put("metadata", "annotations", "e", value="f")),
        ("bad annotation", put("metadata", "annotations", "e f", value="f")),
        ("finalizer", put("metadata", "finalizers", value=["a.b/c"])),
        ("unqualified finalizer", put("metadata", "finalizers", value=["abc"])),
        ("owner", put("metadata", "ownerReferences", value=[owner])),
        ("bad owner", put("metadata", "ownerReferences", value=[{**owner, "name": ""}])),
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
    for label, created, change in (
        ("phase", bound, put("status", "phase", value="Running")),
        ("addresses", bound, put("status", "podIP", value="10.1.2.3")),
        ("two addresses", bound, put("status", "podIPs", value=[{"ip": "10.1.2.3"}, {"ip": "fd00::1"}])),
        ("two of a kind", bound, put("status", "podIPs", value=[{"ip": "10.1.2.3"}, {"ip": "10.1.2.4"}])),
        ("bad address", bound, put("status", "podIP", value="x")),
        ("host address", bound, put("status", "hostIPs", value=[{"ip": "1.2.3.4"}])),
        ("class", bound, put("status", "qosClass", value="Guaranteed")),
        ("no class", bound, drop("status", "qosClass")),
        ("condition", bound, put("status", "conditions", value=[{"type": "Ready", "status": "True"}])),
        ("bad condition", bound, put("status", "conditions", value=[{"type": "a b", "status": "True"}])),
        ("nominated", pods.pod(), put("status", "nominatedNodeName", value="n")),
        ("badly nominated", pods.pod(), put("status", "nominatedNodeName", value="N")),
        ("nominated when bound", bound, put("status", "nominatedNodeName", value="m")),
        ("observed", bound, put("status", "observedGeneration", value=-1)),
        ("spec by the way", bound, put("spec", "nodeName", value="m")),
        ("owner by the way", bound, put("metadata", "ownerReferences", value=[])),
    ):
        yield Update(f"pod status: {label}", "pods", created, change, subresource="status")
    for label, created in (
        ("restarted", bound),
        ("restarted although never", pods.pod(nodeName="n", restartPolicy="Never")),
        ("restarted on failure", pods.pod(nodeName="n", restartPolicy="OnFailure")),
    ):
        change = put("status", "containerStatuses", value=running)
        yield Update(f"pod status: {label}", "pods", created, change, done, "status")


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
        for label, change in (
            ("selector", put("spec", "selector", value=other)),
            ("wait", put("spec", "minReadySeconds", value=3)),
            ("image", put("spec", "template", "spec", "containers", 0, "image", value="x:1")),
            ("annotation", put("metadata", "annotations", "x", value="y")),
            ("status", put("status", "replicas", value=5)),
        ):
            yield Update(f"{kind}: {label}", resource, of(kind), change)
    for label, change in (
        ("service", put("spec", "serviceName", value="z")),
        ("policy", put("spec", "podManagementPolicy", value="Parallel")),
        ("replicas", put("spec", "replicas", value=3)),
    ):
        yield Update(f"StatefulSet: {label}", "statefulsets.apps", of("StatefulSet"), change)
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
            change = put("status", value=status)
            yield Update(f"{kind} status: {label}", resource, of(kind), change, subresource="status")


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
    times = {"startTime": time, "completionTime": time}
    complete = [{"type": "SuccessCriteriaMet", "status": "True"}, {"type": "Complete", "status": "True"}]
    for label, status in (
        ("active", {"active": 1, "startTime": time, "ready": 1}),
        ("more ready than active", {"active": 1, "ready": 2}),
        ("complete", {**times, "succeeded": 1, "conditions": complete}),
        ("complete without times", {"conditions": complete}),
        ("complete without criteria", {**times, "conditions": complete[1:]}),
        ("failed without target", {"startTime": time, "conditions": [{"type": "Failed", "status": "True"}]}),
        ("complete and active", {"active": 1, **times, "conditions": complete}),
        ("time alone", {"completionTime": time}),
        ("indexes", {"completedIndexes": "0"}),
        ("negative", {"failed": -1}),
        ("uncounted", {"uncountedTerminatedPods": {"succeeded": ["a", "a"], "failed": [""]}}),
    ):
        change = put("status", value=status)
        yield Update(f"job status: {label}", "jobs.batch", job, change, subresource="status")


def of_the_rest() -> Iterator[Update]:
    config = core.thing("ConfigMap", data={"a": "b"})
    fixed = {**config, "immutable": True}
    secret = core.thing("Secret", data={"a": "AAA="}, immutable=True)
    namespace = core.cluster_thing("Namespace", name="of-updates")
    node = core.cluster_thing("Node", spec={"podCIDR": "10.1.0.0/24", "providerID": "a://b"})
    claim = core.thing(
        "PersistentVolumeClaim",
        spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}},
    )
    volume = core.cluster_thing(
        "PersistentVolume",
        spec={"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}},
    )
    budget = core.thing("PodDisruptionBudget", "policy/v1", spec={"minAvailable": 1})
    revision = {**core.thing("ControllerRevision", "apps/v1"), "data": {"a": 1}, "revision": 1}
    claims, volumes, budgets = "persistentvolumeclaims", "persistentvolumes", "poddisruptionbudgets.policy"
    for label, resource, created, change in (
        ("config map: data", "configmaps", config, put("data", "a", value="c")),
        ("config map: fixed", "configmaps", fixed, put("data", "a", value="c")),
        ("config map: freed", "configmaps", fixed, drop("immutable")),
        ("secret: fixed", "secrets", secret, put("data", "a", value="AQA=")),
        ("secret: type", "secrets", core.thing("Secret"), put("type", value="x")),
        ("namespace: finalizers", "namespaces", namespace, put("spec", "finalizers", value=[])),
        ("namespace: labels", "namespaces", namespace, drop("metadata", "labels")),
        ("node: range", "nodes", node, put("spec", "podCIDRs", value=["10.2.0.0/24"])),
        ("node: provider", "nodes", node, put("spec", "providerID", value="c://d")),
        ("node: cordon", "nodes", node, put("spec", "unschedulable", value=True)),
        ("node: taint", "nodes", node, put("spec", "taints", value=[{"key": "a", "effect": "X"}])),
        ("claim: size", claims, claim, put("spec", "resources", "requests", "storage", value="3Gi")),
        ("claim: volume", claims, claim, put("spec", "volumeName", value="v")),
        ("claim: mode", claims, claim, put("spec", "volumeMode", value="Block")),
        ("volume: path", volumes, volume, put("spec", "hostPath", "path", value="/y")),
        ("volume: size", volumes, volume, put("spec", "capacity", "storage", value="2Gi")),
        ("budget: spec", budgets, budget, put("spec", "minAvailable", value=2)),
        ("revision: data", "controllerrevisions.apps", revision, put("data", value={"a": 2})),
        ("revision: number", "controllerrevisions.apps", revision, put("revision", value=2)),
    ):
        yield Update(label, resource, created, change)
    address = {"type": "InternalIP", "address": "1.2.3.4"}
    for label, resource, created, change in (
        ("namespace status", "namespaces", namespace, put("status", "phase", value="Terminating")),
        ("node status: addresses", "nodes", node, put("status", "addresses", value=[address])),
        ("node status: twice", "nodes", node, put("status", "addresses", value=[address, address])),
        ("node status: capacity", "nodes", node, put("status", "capacity", value={"cpu": "1000m"})),
        ("budget status", budgets, budget, put("status", "disruptionsAllowed", value=-1)),
    ):
        yield Update(label, resource, created, change, subresource="status")


def updates() -> Iterator[Update]:
    for part in (of_metadata, of_pods, of_pod_status, of_workloads, of_jobs, of_the_rest):
        yield from part()

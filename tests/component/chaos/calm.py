"""What must hold once a cluster is calm again: all that is wanted is there, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from podlife.client import DAEMON_SETS, DEPLOYMENTS, JOBS, NODES, PODS, REPLICA_SETS, STATEFUL_SETS
from podlife.testing import Cluster
from tests.component.chaos.watching import is_active, is_terminating, owner_of

Object = dict[str, Any]

_GOOD = ("Running", "Succeeded")
# Replaced, and kept for somebody to look at until there are too many of them.
_KEPT = (("Failed", "ReplicaSet"), ("Failed", "Job"))
_OWNERS = (REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS, JOBS)


async def complaints(cluster: Cluster) -> list[str]:
    """What is not as it should be, one line each."""
    client = cluster.client
    pods = (await client.list(PODS, "default")).items
    nodes = {each["metadata"]["name"]: each for each in (await client.list(NODES)).items}
    owners = {
        each["metadata"]["uid"]: {**each, "kind": ref.kind}
        for ref in _OWNERS
        for each in (await client.list(ref, "default")).items
    }
    deployments = (await client.list(DEPLOYMENTS, "default")).items
    kinds = {each["kind"] for each in owners.values()}
    return [
        *(f"there is no {ref.kind}" for ref in _OWNERS if ref.kind not in kinds),
        *_of_nodes(nodes),
        *_of_pods(pods, nodes, owners),
        *_of_owners(pods, nodes, owners),
        *_of_deployments(deployments),
        *_of_containers(cluster, pods),
    ]


def _of_nodes(nodes: dict[str, Object]) -> Iterator[str]:
    for name, node in nodes.items():
        ready: Object = next((each for each in node["status"]["conditions"] if each["type"] == "Ready"), {})
        if ready.get("status") != "True":
            yield f"node {name} is not ready: {ready.get('message')}"
        if taints := node["spec"].get("taints"):
            yield f"node {name} is tainted: {[each['key'] for each in taints]}"


def _of_pods(pods: list[Object], nodes: dict[str, Object], owners: dict[str, Object]) -> Iterator[str]:
    for pod in pods:
        name, phase = pod["metadata"]["name"], pod["status"].get("phase")
        if is_terminating(pod):
            yield f"pod {name} is stuck in its end"
        elif owner_of(pod).get("uid") not in owners:
            yield f"pod {name} is there without an owner"
        elif pod["spec"].get("nodeName") not in nodes:
            yield f"pod {name} is on the node {pod['spec'].get('nodeName')}, which is not there"
        elif phase == "Running" and not _is_ready(pod):
            yield f"pod {name} runs and is not ready: {pod['status'].get('conditions')}"
        elif phase not in _GOOD and (phase, owner_of(pod)["kind"]) not in _KEPT:
            yield f"pod {name} is {phase}: {pod['status'].get('reason')}"


def _of_owners(pods: list[Object], nodes: dict[str, Object], owners: dict[str, Object]) -> Iterator[str]:
    for uid, owner in owners.items():
        name = f"{owner['kind']} {owner['metadata']['name']}"
        if is_terminating(owner):
            yield f"{name} is stuck in its end"
        active = [each for each in pods if owner_of(each).get("uid") == uid and is_active(each)]
        if owner["kind"] == "Job":
            succeeded = (owner.get("status") or {}).get("succeeded", 0)
            if succeeded != owner["spec"]["completions"]:
                yield f"{name} has succeeded {succeeded} times: {owner.get('status')}"
            if active:
                yield f"{name} is done and has {len(active)} pods at work"
            continue
        wanted = len(nodes) if owner["kind"] == "DaemonSet" else owner["spec"]["replicas"]
        if len(active) != wanted:
            yield f"{name} has {len(active)} pods and wants {wanted}"
        if owner["kind"] == "StatefulSet":
            names = sorted(each["metadata"]["name"] for each in active)
            if names != [f"{owner['metadata']['name']}-{number}" for number in range(wanted)]:
                yield f"{name} has the pods {names}"


def _of_deployments(deployments: list[Object]) -> Iterator[str]:
    if [each["metadata"]["name"] for each in deployments] != ["web"]:
        yield f"there are {len(deployments)} Deployments"
    for web in deployments:
        status, wanted = web.get("status") or {}, web["spec"]["replicas"]
        if is_terminating(web):
            yield "Deployment web is stuck in its end"
        elif (status.get("updatedReplicas", 0), status.get("availableReplicas", 0)) != (wanted, wanted):
            yield f"Deployment web is not through: {status}"


def _of_containers(cluster: Cluster, pods: list[Object]) -> Iterator[str]:
    by_uid = {each["metadata"]["uid"]: each for each in pods}
    seen: set[str] = set()
    for node in cluster.nodes.values():
        for container in node.containers:
            pod = by_uid.get(container.pod_uid)
            seen.add(container.pod_uid)
            if pod is None:
                yield f"{container.pod}/{container.name} runs on {node.name}, and there is no such pod"
            elif pod["spec"].get("nodeName") != node.name:
                yield f"{container.pod} runs on {node.name}, though it is of {pod['spec'].get('nodeName')}"
    for uid, pod in by_uid.items():
        if pod["status"].get("phase") == "Running" and uid not in seen:
            yield f"pod {pod['metadata']['name']} is Running, and nothing of it runs"


def _is_ready(pod: Object) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)

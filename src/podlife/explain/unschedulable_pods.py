"""Why a pod has no node: parses the scheduler's message; each reason has its own remedy. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from podlife.api.codec import Object
from podlife.api.node_requirement import NodeRequirement, tolerates
from podlife.explain import kubectl_commands as commands
from podlife.explain.cluster_snapshot import ClusterSnapshot, is_ready, taints_of
from podlife.explain.explanation import Cause, Remedy, UpcomingAction
from podlife.explain.objects import (
    condition,
    condition_since,
    is_terminating,
    items,
    label,
    metadata,
    moment,
    spec,
    status,
    text,
)
from podlife.explain.volumes import claim_causes

# A scheduler says something about every pod within seconds.
_SILENCE_SECONDS = 15.0
_AGAIN = UpcomingAction("the scheduler", "tries again when a node or a pod changes, and every few minutes")
# Of the cluster itself: they go when the state goes that they tell of.
_OF_STATES = "node.kubernetes.io/"


def scheduling_causes(world: ClusterSnapshot, pod: Object) -> Iterator[Cause]:
    told = condition(pod, "PodScheduled")
    if gates := items(spec(pod), "schedulingGates"):
        yield from _gates(pod, gates)
    elif text(told, "status") == "False":
        yield from _unschedulable(world, pod, text(told, "message"))
    elif not told and world.seconds_since(_created_at(pod)) > _SILENCE_SECONDS:
        yield _no_scheduler(world, pod)


def _created_at(pod: Object) -> datetime | None:
    return moment(metadata(pod).get("creationTimestamp"))


def _gates(pod: Object, gates: Sequence[Object]) -> Iterator[Cause]:
    for place, gate in enumerate(gates):
        name = text(gate, "name")
        command = commands.remove_from_list("pod", pod, "/spec/schedulingGates", place, gate)
        risk = "The pod is scheduled before whoever set the gate was ready for it."
        said = f"scheduling gate {name} keeps it from being scheduled until its controller takes it off"
        yield Cause("scheduling-gate", said, _created_at(pod), (Remedy(command, risk),))


def _no_scheduler(world: ClusterSnapshot, pod: Object) -> Cause:
    name = text(spec(pod), "schedulerName") or "default-scheduler"
    said = f"no scheduler has said anything about it: does {name}, which it asks for, run?"
    fitting = [_name(node) for node in _nodes(world) if is_ready(node) and not _refusals(pod, node)]
    risk = "Nobody looks whether the node has room: a pod too many is refused by the node and fails."
    remedies = tuple(Remedy(commands.bind(pod, node), risk) for node in fitting[:1])
    return Cause("no-scheduler", said, _created_at(pod), remedies)


# Why not, in the words of kube-scheduler's filters, and what is found out about it.
_Look = Callable[[ClusterSnapshot, Object], Iterator[tuple[str, str, tuple[Remedy, ...]]]]


def _unschedulable(world: ClusterSnapshot, pod: Object, message: str) -> Iterator[Cause]:
    since = condition_since(pod, "PodScheduled")
    if nominated := text(status(pod), "nominatedNodeName"):
        said = f"node {nominated} makes room for it: pods of lower priority are ending there"
        yield Cause("preempting", said, since, (), (_AGAIN,), is_stuck=False)
        return
    found = [
        Cause(name, said, since, remedies, (_AGAIN,))
        for words, look in _LOOKS
        if words in message
        for name, said, remedies in look(world, pod)
    ]
    found += claim_causes(world, pod)
    yield from found or [Cause("unschedulable", message or "no node can take it", since, (), (_AGAIN,))]


def _cordoned(world: ClusterSnapshot, pod: Object) -> Iterator[tuple[str, str, tuple[Remedy, ...]]]:
    names = [_name(node) for node in _nodes(world) if spec(node).get("unschedulable")]
    risk = "Other pods may come to the node as well: look first why it was cordoned."
    remedies = tuple(Remedy(commands.kubectl("uncordon", name), risk) for name in names)
    if names:
        yield "cordoned", f"cordoned: {_some(names)}", remedies[:3]


def _tainted(world: ClusterSnapshot, pod: Object) -> Iterator[tuple[str, str, tuple[Remedy, ...]]]:
    found = [
        (_name(node), taint)
        for node in _nodes(world)
        for taint in _not_borne(pod, node)
        if not _tells_the_truth(taint, node)
    ]
    risk = (
        "Other pods may come to the node as well; to let only this one there, give it a toleration instead."
    )
    remedies = tuple(Remedy(commands.remove_taint(name, taint), risk) for name, taint in found)
    if found:
        shown = [f"{text(taint, 'key')}:{text(taint, 'effect')} on {name}" for name, taint in found]
        yield "untolerated-taint", f"it does not tolerate {_some(shown)}", remedies[:3]
    unready = [_name(node) for node in _nodes(world) if not is_ready(node)]
    if unready:
        yield "no-ready-node", f"not ready: {_some(unready)}; see `podlife explain node {unready[0]}`", ()


def _tells_the_truth(taint: Object, node: Object) -> bool:
    """Such a taint goes with its state; on a node that is ready, whoever looks after nodes has forgotten it."""
    key = text(taint, "key")
    is_stale = key in (f"{_OF_STATES}not-ready", f"{_OF_STATES}unreachable") and is_ready(node)
    return key.startswith(_OF_STATES) and not is_stale


def _mismatched(world: ClusterSnapshot, pod: Object) -> Iterator[tuple[str, str, tuple[Remedy, ...]]]:
    wanted = spec(pod).get("nodeSelector") or {}
    ready = [node for node in _nodes(world) if is_ready(node) and not _not_borne(pod, node)]
    if not wanted:
        yield "node-affinity", "no node has what its node affinity requires", ()
        return
    labels = [f"{key}={value}" for key, value in wanted.items()]
    risk = "Whatever else selects this label comes to the node as well."
    remedies = tuple(
        Remedy(commands.kubectl("label", "node", _name(node), *labels, "--overwrite"), risk) for node in ready
    )
    yield "node-selector", f"no node it could go to has the labels {', '.join(labels)}", remedies[:1]


def _ports(world: ClusterSnapshot, pod: Object) -> Iterator[tuple[str, str, tuple[Remedy, ...]]]:
    wanted = _host_ports(pod)
    holders = [each for each in world.pods if not is_terminating(each) and wanted & _host_ports(each)]
    risk = "Its containers end; a controller may make it again on the same node, and faster."
    remedies = tuple(Remedy(commands.delete(each), risk) for each in holders)
    ports = ", ".join(str(port) for port, _ in sorted(wanted))
    whose = f": held by {_some([label(each) for each in holders])}" if holders else ""
    yield "host-port", f"host port {ports} is taken on every node it could go to{whose}", remedies[:3]


def _insufficient(world: ClusterSnapshot, pod: Object) -> Iterator[tuple[str, str, tuple[Remedy, ...]]]:
    message = text(condition(pod, "PodScheduled"), "message")
    # cpu, memory, or a device by its whole name.
    words = message.split("Insufficient ")[1:]
    for resource in dict.fromkeys(word.split(",")[0].split(" ")[0].rstrip(".") for word in words):
        requests = _most_wanting(pod, resource)
        said = (
            f"no node has as much {resource} left as it requests ({requests[1] or 'in all its containers'})"
        )
        yield "insufficient-resources", said, (_smaller(world, pod, requests[0], resource),)


def _most_wanting(pod: Object, resource: str) -> tuple[str, str]:
    """A container that requests it, and how much."""
    for container in items(spec(pod), "containers"):
        requests = (container.get("resources") or {}).get("requests") or {}
        if resource in requests:
            return text(container, "name"), text(requests, resource)
    return text(next(iter(items(spec(pod), "containers")), {}), "name"), ""


def _smaller(world: ClusterSnapshot, pod: Object, container: str, resource: str) -> Remedy:
    target = commands.workload_target(pod, world.workload_of(pod))
    if target.startswith("pod/"):
        resources = {"requests": {resource: "<AMOUNT>"}}
        body = {"spec": {"containers": [{"name": container, "resources": resources}]}}
        command = commands.patch("pod", pod, body, subresource="resize")
    else:
        words = ["set", "resources", target, *commands.namespace_flag(pod), "-c", container]
        command = commands.kubectl(*words, f"--requests={resource}=<AMOUNT>")
    return Remedy(command, "It may get less than it needs. Or add a node, or make room on one.")


def _no_nodes(world: ClusterSnapshot, pod: Object) -> Iterator[tuple[str, str, tuple[Remedy, ...]]]:
    yield "no-nodes", "there is no node in the cluster: add one", ()


# The last filter of the scheduler first: a node that fails it has passed the others, and is nearest to taking the pod.
_LOOKS: tuple[tuple[str, _Look], ...] = (
    ("no nodes available", _no_nodes),
    ("Insufficient ", _insufficient),
    ("didn't have free ports", _ports),
    ("didn't match Pod's node affinity/selector", _mismatched),
    ("untolerated taint", _tainted),
    ("were unschedulable", _cordoned),
)


def _nodes(world: ClusterSnapshot) -> Sequence[Object]:
    return list((world.nodes or {}).values())


def _name(node: Object) -> str:
    return text(metadata(node), "name")


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _not_borne(pod: Object, node: Object) -> list[Object]:
    tolerations = items(spec(pod), "tolerations")
    return [
        taint
        for taint in taints_of(node, "NoSchedule", "NoExecute")
        if not any(
            tolerates(each, key=text(taint, "key"), effect=text(taint, "effect"), value=text(taint, "value"))
            for each in tolerations
        )
    ]


def _refusals(pod: Object, node: Object) -> bool:
    labels = metadata(node).get("labels") or {}
    return (
        bool(spec(node).get("unschedulable"))
        or bool(_not_borne(pod, node))
        or not NodeRequirement(spec(pod)).matches(_name(node), labels)
    )


def _host_ports(pod: Object) -> set[tuple[int, str]]:
    if text(status(pod), "phase") in ("Succeeded", "Failed"):
        return set()
    return {
        (int(port["hostPort"]), text(port, "protocol") or "TCP")
        for container in items(spec(pod), "containers")
        for port in items(container, "ports")
        if port.get("hostPort")
    }

"""Explains a node: is it alive, does it accept pods, what happens to its pods, what blocks it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from podlife.api.codec import Object
from podlife.clock import add_seconds
from podlife.explain import kubectl_commands as commands
from podlife.explain.cluster_snapshot import (
    OUT_OF_SERVICE,
    ClusterSnapshot,
    is_out_of_service,
    is_ready,
    taints_of,
)
from podlife.explain.deleted_by import why_gone
from podlife.explain.explanation import (
    Cause,
    Explanation,
    Remedy,
    UpcomingAction,
)
from podlife.explain.finalizers import causes_of_finalizers
from podlife.explain.node_state import describe_unready, eviction
from podlife.explain.objects import (
    condition,
    condition_since,
    has_ended,
    is_terminating,
    items,
    label,
    metadata,
    moment,
    spec,
    status,
    text,
)
from podlife.explain.out_of_service import out_of_service_history, who_tainted
from podlife.explain.pods import pod_causes
from podlife.explain.risks import TAINTED
from podlife.explain.timeline import timeline_of, told_of_node_by_audit

_PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure")
_UNINITIALIZED = "node.cloudprovider.kubernetes.io/uninitialized"


def explain_node(world: ClusterSnapshot, node: Object) -> Explanation:
    """`world.pods` are those that are on it."""
    found = metadata(node)
    return Explanation(
        "Node",
        text(found, "name"),
        uid=text(found, "uid"),
        stage=_stage(world, node),
        causes=(*_causes(world, node), *_pods_held(world)),
        timeline=timeline_of(
            node,
            world.events_of(node),
            (*out_of_service_history(node), *told_of_node_by_audit(world.audited, text(found, "name"))),
        ),
        upcoming=tuple(_leaving(world, node)),
        unread=world.unread,
    )


def explain_gone_node(world: ClusterSnapshot, name: str, events: Sequence[Object]) -> Explanation:
    """Nobody has a node of this name; pods may still say that they are on it."""
    causes = tuple(_pods_held(world))
    return Explanation(
        "Node", name, stage="not there", deletion=why_gone(events), causes=causes, unread=world.unread
    )


def _stage(world: ClusterSnapshot, node: Object) -> str:
    parts = [
        "ready" if is_ready(node) else f"not ready ({text(condition(node, 'Ready'), 'status') or 'not told'})"
    ]
    if spec(node).get("unschedulable"):
        parts.append("cordoned")
    if is_out_of_service(node):
        parts.append("out of service")
    if is_terminating(node):
        parts.append("deleted, held by finalizers")
    alive = [pod for pod in world.pods if not has_ended(pod)]
    parts.append(f"{len(alive)} pod{'' if len(alive) == 1 else 's'}")
    return ", ".join(parts)


def _causes(world: ClusterSnapshot, node: Object) -> Iterator[Cause]:
    if is_terminating(node):
        yield from causes_of_finalizers("node", node)
    if not is_ready(node):
        yield _not_ready(world, node)
    elif world.is_silent(node):
        yield _silent(world, node)
    elif is_out_of_service(node):
        yield _back(world, node)
    yield from _unfit(node)
    yield from _pressed(node)
    if spec(node).get("unschedulable"):
        yield _cordoned(world, node)


def _not_ready(world: ClusterSnapshot, node: Object) -> Cause:
    name = text(metadata(node), "name")
    message = text(condition(node, "Ready"), "message")
    said = f"{describe_unready(world, node)}{f': {message}' if message else ''}"
    back = UpcomingAction("the node's agent", "makes it ready again when it is back; its pods go on")
    if is_out_of_service(node):
        said += f"; it was set out of service by {who_tainted(node, world.audited)}"
        drop = commands.remove_taint(name, _taint(node, OUT_OF_SERVICE))
        remedy = Remedy(drop, "Only when the machine is back: its pods are not collected from then on.")
    else:
        remedy = Remedy(commands.out_of_service(name), TAINTED)
    return Cause("not-ready", said, condition_since(node, "Ready"), (remedy,), (back,))


def _silent(world: ClusterSnapshot, node: Object) -> Cause:
    heard_at = world.heard_at(node)
    heard = "never" if heard_at is None else f"{heard_at:%Y-%m-%d %H:%M:%SZ}"
    at = None if heard_at is None else max(world.now, add_seconds(heard_at, 60))
    marks = UpcomingAction("node monitor", "marks it not ready", at)
    said = f"its agent is silent: its lease was last renewed at {heard}, and it still counts as ready"
    name = text(metadata(node), "name")
    remedy = Remedy(
        commands.kubectl("cordon", name), "No pod comes to it any more; those that are there stay."
    )
    return Cause("kubelet-silent", said, heard_at, (remedy,), (marks,))


def _back(world: ClusterSnapshot, node: Object) -> Cause:
    """Ready and out of service: nothing is collected, and nothing comes."""
    name, taint = text(metadata(node), "name"), _taint(node, OUT_OF_SERVICE)
    said = (
        "it is ready again and still out of service: no pod comes to it, and none of its own are collected; the taint "
        f"was set by {who_tainted(node, world.audited)}"
    )
    remedy = Remedy(commands.remove_taint(name, taint), "Pods come to it again.")
    return Cause("still-out-of-service", said, moment(taint.get("timeAdded")), (remedy,))


def _unfit(node: Object) -> Iterator[Cause]:
    network = condition(node, "NetworkUnavailable")
    if text(network, "status") == "True":
        said = f"its network is not set up ({text(network, 'reason')}): does the network plugin run on it?"
        body = {"status": {"conditions": [{"type": "NetworkUnavailable", "status": "False"}]}}
        risk = "Pods come to a node whose network may not work."
        remedy = Remedy(commands.patch("node", node, body, subresource="status"), risk)
        since = condition_since(node, "NetworkUnavailable")
        yield Cause("network-unavailable", said, since, (remedy,))
    if taint := _taint(node, _UNINITIALIZED):
        said = "no cloud controller has initialised it: no pod comes to it"
        remedy = Remedy(
            commands.remove_taint(text(metadata(node), "name"), taint),
            "It lacks addresses, zone and providerID.",
        )
        yield Cause("uninitialized", said, moment(metadata(node).get("creationTimestamp")), (remedy,))


def _pressed(node: Object) -> Iterator[Cause]:
    for type_ in _PRESSURES:
        found = condition(node, type_)
        if text(found, "status") == "True":
            what = type_.removesuffix("Pressure").lower()
            said = f"it is short of {what}: its agent evicts pods, and none come ({text(found, 'message')})"
            name = text(metadata(node), "name")
            drain = commands.kubectl("drain", name, "--ignore-daemonsets", "--delete-emptydir-data")
            risk = "All its pods move, and what is in their emptyDirs is lost."
            yield Cause("pressure", said, condition_since(node, type_), (Remedy(drain, risk),))


def _cordoned(world: ClusterSnapshot, node: Object) -> Cause:
    name = text(metadata(node), "name")
    left = [label(pod) for pod in world.pods if not has_ended(pod) and not _stays(pod)]
    many = f"; {len(left)} of its pods would still have to go, first {left[0]}" if left else ""
    remedy = Remedy(
        commands.kubectl("uncordon", name), "Pods come to it again: look first why it was cordoned."
    )
    since = moment(_taint(node, "node.kubernetes.io/unschedulable").get("timeAdded"))
    return Cause("cordoned", f"it is cordoned: no pod comes to it{many}", since, (remedy,), is_stuck=False)


def _stays(pod: Object) -> bool:
    """A drain leaves what would be made again on the same node, and what only mirrors a file of it."""
    kinds = {text(owner, "kind") for owner in items(metadata(pod), "ownerReferences")}
    return bool(kinds & {"DaemonSet", "Node"})


def _pods_held(world: ClusterSnapshot) -> Iterator[Cause]:
    for pod in world.pods:
        first = next((cause for cause in pod_causes(world, pod) if cause.is_stuck), None)
        if first is not None:
            said = f"pod {label(pod)}: {first.text}"
            yield Cause(f"pod-{first.name}", said, first.since, first.remedies, first.upcoming)


def _leaving(world: ClusterSnapshot, node: Object) -> Iterator[UpcomingAction]:
    """The next pod that has to go for the node's taints, and how many there are."""
    going = [
        each
        for pod in world.pods
        if not is_terminating(pod)
        for each in eviction(world, pod, node)
        if each.at is not None
    ]
    if going:
        first = min(going, key=lambda each: each.at or world.now)
        yield UpcomingAction(first.who, f"deletes {len(going)} of its pods, the first then", first.at)
    if status(node).get("conditions") and not taints_of(node) and not is_ready(node):
        yield UpcomingAction(
            "node monitor", "taints it, at the rate of its zone; its pods go when their toleration ends"
        )


def _taint(node: Object, key: str) -> Object:
    return next((each for each in taints_of(node) if each.get("key") == key), {})

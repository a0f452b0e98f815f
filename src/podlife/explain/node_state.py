"""The effect of a pod's node on it: whether an agent runs or terminates it, and when it is evicted. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime

from podlife.api.codec import Object
from podlife.clock import add_seconds
from podlife.explain import kubectl_commands as commands
from podlife.explain.audit_deletion import taint_setter
from podlife.explain.audit_text import who_asked
from podlife.explain.cluster_snapshot import (
    OUT_OF_SERVICE,
    ClusterSnapshot,
    is_out_of_service,
    is_ready,
    taints_of,
)
from podlife.explain.explanation import Cause, Remedy, UpcomingAction
from podlife.explain.objects import (
    condition,
    condition_since,
    metadata,
    moment,
    spec,
    text,
)
from podlife.explain.risks import FORCED, TAINTED

_COLLECTOR = "pod GC"
_EVICTION = "taint eviction"


def describe_unready(world: ClusterSnapshot, node: Object) -> str:
    ready = condition(node, "Ready")
    name, state = text(metadata(node), "name"), text(ready, "status") or "not told"
    heard_at = world.heard_at(node)
    heard = f", its agent was last heard at {heard_at:%Y-%m-%d %H:%M:%SZ}" if heard_at is not None else ""
    why = f" ({text(ready, 'reason')})" if text(ready, "reason") else ""
    return f"node {name} is not ready: Ready is {state}{why}{heard}"


def collecting(world: ClusterSnapshot, pod: Object) -> tuple[UpcomingAction, ...]:
    """What the pod collector will do about it, by its own rules."""
    if text(spec(pod), "nodeName") and world.nodes is None:
        return ()
    found = world.rules.collect(pod, world.node_of(pod))
    if found is None:
        return ()
    at = add_seconds(world.now, found.seconds)
    return (UpcomingAction(_COLLECTOR, f"deletes it ({found.reason}): {found.why}", at, is_from_now=True),)


def eviction(world: ClusterSnapshot, pod: Object, node: Object) -> tuple[UpcomingAction, ...]:
    """When it has to leave for the taints of its node; nothing where there are none or it bears them."""
    taints = taints_of(node, "NoExecute")
    if not taints:
        return ()
    names = ", ".join(text(taint, "key") for taint in taints)
    seconds = world.rules.bears(pod, node)
    if seconds is not None and math.isinf(seconds):
        return (UpcomingAction(_EVICTION, f"leaves it: it tolerates {names} for ever"),)
    # Taint eviction counts from when it saw both: of a pod that came later, from then on.
    added = [moment(taint.get("timeAdded")) for taint in taints]
    added.append(condition_since(pod, "PodScheduled"))
    began = max((each for each in added if each is not None), default=world.now)
    at = add_seconds(began, seconds or 0.0)
    borne = "it does not tolerate" if seconds is None else f"it tolerates for {seconds:g} s"
    return (UpcomingAction(_EVICTION, f"deletes it: {borne} {names}", max(at, world.now)),)


def live_pod_causes(world: ClusterSnapshot, pod: Object) -> Iterator[Cause]:
    """Of a pod that nobody has deleted yet."""
    if world.is_node_gone(pod):
        yield _gone(world, pod)
    elif (node := world.node_of(pod)) is not None:
        if not is_ready(node):
            yield _unready(world, pod, node)
        elif world.is_silent(node):
            yield silent(world, pod, node)
        elif moved := eviction(world, pod, node):
            yield from _tainted(world, pod, node, moved)


def _gone(world: ClusterSnapshot, pod: Object) -> Cause:
    name = text(spec(pod), "nodeName")
    remedy = Remedy(commands.delete(pod, 0), f"None if the machine of {name} is gone for good. {FORCED}")
    return Cause(
        "node-gone", f"its node {name} does not exist any more", None, (remedy,), collecting(world, pod)
    )


def _unready(world: ClusterSnapshot, pod: Object, node: Object) -> Cause:
    moved = eviction(world, pod, node)
    then = (
        ""
        if is_out_of_service(node)
        else "; once deleted it stays Terminating until the node is back or out of service"
    )
    return Cause(
        "node-not-ready",
        f"{describe_unready(world, node)}{then}",
        condition_since(node, "Ready"),
        _ways_out(world, pod, node),
        (*moved, *collecting(world, pod)),
    )


def _ways_out(world: ClusterSnapshot, pod: Object, node: Object) -> tuple[Remedy, ...]:
    """The taint moves only a pod that does not bear it: one that bears every taint would stay for ever."""
    taint = Remedy(commands.out_of_service(text(metadata(node), "name")), TAINTED)
    force = Remedy(commands.delete(pod, 0), FORCED)
    if is_out_of_service(node):
        return (force,)
    tainted = {"spec": {"taints": [{"key": OUT_OF_SERVICE, "value": "nodeshutdown", "effect": "NoExecute"}]}}
    seconds = world.rules.bears(pod, tainted)
    return (taint, force) if seconds is None or not math.isinf(seconds) else (force,)


def silent(world: ClusterSnapshot, pod: Object, node: Object) -> Cause:
    name, heard_at = text(metadata(node), "name"), world.heard_at(node)
    heard = "never" if heard_at is None else f"{heard_at:%Y-%m-%d %H:%M:%SZ}"
    return Cause(
        "kubelet-silent",
        f"the agent of node {name} is silent: its lease was last renewed at {heard}, and it still counts as ready",
        heard_at,
        (Remedy(commands.delete(pod, 0), FORCED),),
        (_marking(world, heard_at),),
    )


def _marking(world: ClusterSnapshot, heard_at: datetime | None) -> UpcomingAction:
    what = "marks the node not ready, which taints it; its pods go when their toleration ends"
    at = None if heard_at is None else max(world.now, add_seconds(heard_at, 60))
    return UpcomingAction("node monitor", what, at)


def _tainted(
    world: ClusterSnapshot, pod: Object, node: Object, moved: tuple[UpcomingAction, ...]
) -> Iterator[Cause]:
    """On a node that is well: somebody wants it empty."""
    taints, at = taints_of(node, "NoExecute"), moved[0].at
    if at is None:
        return
    name, keys = text(metadata(node), "name"), ", ".join(text(taint, "key") for taint in taints)
    setter = taint_setter(world.audited, name, effect="NoExecute")
    by = "" if setter is None else f" by {who_asked(setter)} at {setter.at:%Y-%m-%d %H:%M:%SZ}"
    risk = f"Pods may run on {name} again, which somebody did not want."
    yield Cause(
        "taint-eviction",
        f"node {name} is tainted NoExecute ({keys}){by}: the pod has to leave it",
        moment(taints[0].get("timeAdded")),
        (
            *(Remedy(commands.remove_taint(name, taint), risk) for taint in taints),
            Remedy(
                commands.delete(pod), "The pod ends now, with its grace, and not when its toleration ends."
            ),
        ),
        moved,
        is_stuck=False,
    )

"""A pod or a node as a life: what one look at it adds to the record. Pure.

`explain` says the stage, the causes and what comes; the states before the first look are concluded from conditions and
containers, as far as they tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Any

from podlife.api.codec import Object
from podlife.explain import ClusterSnapshot, Explanation, Happening, explain_node, explain_pod
from podlife.explain.cluster_snapshot import is_ready, taints_of
from podlife.explain.finished_pods import ended_at
from podlife.explain.objects import (
    all_statuses,
    condition,
    condition_since,
    deleted_at,
    grace_ends_at,
    has_ended,
    items,
    metadata,
    moment,
    spec,
    status,
    text,
)
from podlife.ui.life import Facts, NodeLife, Owner, PodLife, brief, milliseconds

_MOST_LABELS = 64
# How soon after the end of the grace an agent kills and removes a pod; later it was not there.
_KILL_SECONDS = 5.0
_STATES = {
    "waiting for a node": "pending",
    "initialising": "init",
    "starting": "starting",
    "running, not ready": "unready",
    "running and ready": "ready",
    "terminating": "terminating",
    "deleted, held by finalizers": "held",
    "ended (Succeeded)": "succeeded",
    "ended (Failed)": "failed",
}


def draw_pod(life: PodLife, pod: Object, world: ClusterSnapshot, seen_at: int) -> Explanation:
    """`seen_at` is when the pod came to be as it is now, in milliseconds."""
    found = explain_pod(world, pod)
    if not life.segs:
        for at, state in _history(pod, life.start):
            life.enter(state, at)
    life.enter(_STATES.get(found.stage, "pending"), seen_at)
    life.node = text(spec(pod), "nodeName")
    life.labels = dict(islice((metadata(pod).get("labels") or {}).items(), _MOST_LABELS))
    owner = world.workload_of(pod)
    life.owner = None if owner is None else Owner(*map(brief, owner))
    statuses = [each for each, is_init in all_statuses(pod) if not is_init]
    life.ready = f"{sum(bool(each.get('ready')) for each in statuses)}/{len(items(spec(pod), 'containers'))}"
    life.restarts = sum(int(each.get("restartCount") or 0) for each in statuses)
    asked_at = deleted_at(pod)
    life.deleted = None if asked_at is None else milliseconds(asked_at)
    # The node's final DELETE sets it to 0; what counts is how long the pod was given.
    life.grace = (
        metadata(pod).get("deletionGracePeriodSeconds") or life.grace or (0 if life.deleted else None)
    )
    life.mark(found.timeline)
    _judge(life, found, world.now)
    return found


def draw_node(life: NodeLife, node: Object, world: ClusterSnapshot, seen_at: int) -> Explanation:
    found = explain_node(world, node)
    state = {"True": "ready", "False": "not-ready"}.get(text(condition(node, "Ready"), "status"), "unknown")
    if not life.segs:
        turned_at = condition_since(node, "Ready")
        since = life.start if turned_at is None else max(life.start, milliseconds(turned_at))
        if since > life.start:
            life.enter("not-ready" if state == "ready" else "ready", life.start)
        life.enter(state, since)
    life.enter("silent" if state == "ready" and world.is_silent(node) else state, seen_at)
    taints = [_taint(each) for each in taints_of(node)]
    life.mark((*found.timeline, *_taint_changes(life.taints, node, world.now)))
    life.taints = taints
    life.conditions = conditions_of(node)
    life.cordoned = bool(spec(node).get("unschedulable"))
    # Its pods are lives of their own, and the page counts them.
    found = replace(found, stage=found.stage.rpartition(", ")[0])
    _judge(life, found, world.now)
    return found


def _judge(life: PodLife | NodeLife, found: Explanation, now: datetime) -> None:
    life.stage, life.waits = found.stage, brief(found.causes[0].text) if found.causes else ""
    life.get_stuck(next((cause.name for cause in found.causes if cause.is_stuck), ""), milliseconds(now))


def unseen_kill(life: PodLife, pod: Object, world: ClusterSnapshot) -> Iterator[Happening]:
    """Of a pod that is gone: what still ran when its grace ended was killed, even if it was not reported. Only an agent
    that is there kills."""
    now, ends_at, running = world.now, grace_ends_at(pod), _running(pod)
    if ends_at is None or now < ends_at or not running or any(mark[1] == "kill" for mark in life.marks):
        return
    if not pod_facts(pod, world).is_node_ready:
        return
    at = ends_at if (now - ends_at).total_seconds() < _KILL_SECONDS else now
    yield Happening(at, f"the grace is over: {', '.join(running)} is killed", kind="kill")


def pod_facts(pod: Object, world: ClusterSnapshot) -> Facts:
    node = world.node_of(pod)
    return Facts(
        is_deleted=deleted_at(pod) is not None,
        has_ended=has_ended(pod),
        is_running=bool(_running(pod)),
        # Where nodes may not be read, nothing speaks against them.
        is_node_ready=world.nodes is None or (node is not None and is_ready(node)),
    )


def node_facts(node: Object) -> Facts:
    return Facts(is_node_ready=is_ready(node), is_node_tainted=bool(taints_of(node)))


def conditions_of(node: Object) -> dict[str, str]:
    return {text(each, "type"): text(each, "status") for each in items(status(node), "conditions")}


def what_pods_depend_on(node: Object) -> tuple[Any, ...]:
    ready = condition(node, "Ready")
    return (
        ready.get("status"),
        ready.get("reason"),
        spec(node).get("unschedulable"),
        spec(node).get("taints"),
        metadata(node).get("deletionTimestamp"),
    )


def _history(pod: Object, created: int) -> Iterator[tuple[int, str]]:
    """The states of a pod before it was seen, in order."""
    times: list[tuple[datetime | None, str]] = []
    if text(condition(pod, "PodScheduled"), "status") == "True":
        begins = "init" if items(spec(pod), "initContainers") else "starting"
        times.append((condition_since(pod, "PodScheduled"), begins))
        if begins == "init" and text(condition(pod, "Initialized"), "status") == "True":
            times.append((condition_since(pod, "Initialized"), "starting"))
    started_at, turned_at = _started_at(pod), condition_since(pod, "Ready")
    if text(condition(pod, "Ready"), "status") == "True":
        times.append((turned_at, "ready"))
    elif started_at is not None and turned_at is not None:
        # Not ready since a time after its start: until then it was.
        times.append((started_at, "ready" if turned_at > started_at else "unready"))
        if not has_ended(pod) and deleted_at(pod) is None:
            times.append((turned_at, "unready"))
    if has_ended(pod):
        times.append((ended_at(pod), text(status(pod), "phase").lower()))
    times.append((deleted_at(pod), "terminating"))
    yield created, "pending"
    known = sorted(
        (milliseconds(at), place, state) for place, (at, state) in enumerate(times) if at is not None
    )
    for at, _, state in known:
        yield max(at, created), state


def _started_at(pod: Object) -> datetime | None:
    """When the last of its containers started."""
    times = []
    for each, is_init in all_statuses(pod):
        state = each.get("state") or {}
        started = (state.get("running") or state.get("terminated") or {}).get("startedAt")
        times += [] if is_init else [moment(started)]
    return max((each for each in times if each is not None), default=None)


def _running(pod: Object) -> list[str]:
    return [text(each, "name") for each, _ in all_statuses(pod) if (each.get("state") or {}).get("running")]


def _taint(taint: Object) -> str:
    value = f"={text(taint, 'value')}" if text(taint, "value") else ""
    return f"{text(taint, 'key')}{value}:{text(taint, 'effect')}"


def _taint_changes(old: list[str], node: Object, now: datetime) -> Iterator[Happening]:
    new = {_taint(each): moment(each.get("timeAdded")) for each in taints_of(node)}
    for name, added_at in new.items():
        if name not in old:
            yield Happening(added_at or now, f"taint {name} added", kind="taint")
    for name in old:
        if name not in new:
            yield Happening(now, f"taint {name} removed", kind="taint")

"""Held pods as text: for people, and for programs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from podlife.api.codec import format_time
from podlife.api.durations import format_duration
from podlife.cli.commands.gc.output import where_of
from podlife.cli.connection import ConnectionOptions, connected, load_connection
from podlife.cli.output import as_json, counted, table
from podlife.clock import SystemClock
from podlife.daemons import event_loop as loop
from podlife.podgc.finalizers.held_pods import HeldPod, NodeState, held_pods


def show_held(options: ConnectionOptions, namespace: str, output: str) -> None:
    """Raises PodlifeError when it cannot be read."""
    connection, clock = load_connection(options), SystemClock()

    async def read() -> list[HeldPod]:
        async with connected(options, connection) as client:
            return await held_pods(client, clock.now(), namespace)

    sys.stdout.write(format_held(loop.run(read()), output, clock.now(), namespace))


def format_held(held: Sequence[HeldPod], output: str, now: datetime, namespace: str = "") -> str:
    if output == "json":
        return as_json({"pods": [_as_dict(pod, now) for pod in held]})
    if not held:
        return f"No pod is held by a finalizer {where_of(namespace)}.\n"
    rows = [("NAMESPACE", "NAME", "HELD FOR", "NODE", "FINALIZER", "SET BY", "LAST WRITTEN")]
    for pod in held:
        for number, each in enumerate(pod.finalizers):
            # A pod's own columns stand once.
            own = (pod.namespace, pod.name, _age(pod.since, now), _node(pod)) if number == 0 else ("",) * 4
            written = "<unknown>" if each.set_at is None else f"{_age(each.set_at, now)} ago"
            rows.append((*own, each.name, each.manager or "<unknown>", written))
    gone = sum(pod.node_state is NodeState.GONE for pod in held)
    told = f"{counted(len(held))} held by finalizers, {gone} of them of nodes that are gone."
    return f"{table(rows)}\n{told}\n"


def _node(pod: HeldPod) -> str:
    if pod.node_state is NodeState.NONE:
        return "<none>"
    return f"{pod.node} ({pod.node_state})"


def _age(since: datetime, now: datetime) -> str:
    return format_duration((now - since).total_seconds())


def _as_dict(pod: HeldPod, now: datetime) -> dict[str, Any]:
    return {
        "namespace": pod.namespace,
        "name": pod.name,
        "uid": pod.uid,
        "heldSince": format_time(pod.since),
        "heldSeconds": round((now - pod.since).total_seconds(), 3),
        "nodeName": pod.node,
        "node": str(pod.node_state),
        "owner": pod.owner,
        "finalizers": [
            {
                "name": each.name,
                "manager": each.manager,
                "lastWritten": None if each.set_at is None else format_time(each.set_at),
            }
            for each in pod.finalizers
        ],
    }

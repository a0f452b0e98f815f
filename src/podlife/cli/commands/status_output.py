"""What `podlife status` finds out, and how it shows it: parts from `podlife up` itself, the rest from its server."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from podlife.api.durations import format_duration
from podlife.cli.commands.up.lines import in_order, states_of
from podlife.cli.connection import ConnectionOptions, connected, load_connection
from podlife.cli.output import STRUCTURED, structured
from podlife.cli.printable import printable
from podlife.client import NODES, PODS
from podlife.clock import SystemClock
from podlife.daemons import event_loop as loop
from podlife.errors import PodlifeError
from podlife.localcluster.cluster_state import World, why_terminating
from podlife.localcluster.control_socket import ask
from podlife.localcluster.state_dir import UpFolder
from podlife.localcluster.views import NodeView, PodView

__all__ = ["show_status", "table_of"]

_ANSWER_SECONDS = 10.0

_Rows = list[tuple[str, ...]]


def show_status(folder: UpFolder, output: str) -> None:
    """Raises ConfigError where none runs."""
    parts = ask(folder, {"do": "status"})["parts"]
    holder = folder.holder()
    found = {"url": "" if holder is None else holder.url, "data": str(folder.path), "components": parts}
    try:
        world = loop.run(_look(folder))
    except PodlifeError as error:
        world, found["error"] = None, str(error)
    facts = found | (_facts(world) if world is not None else {})
    if output in STRUCTURED:
        print(structured(facts, output), end="")
        return
    print(f"{found['url']} (data: {folder.path})\n\n{table_of(_part_rows(parts))}")
    if world is None:
        print(f"podlife: the API server does not answer: {found['error']}", file=sys.stderr)
        return
    print(f"\n{table_of(_node_rows(world))}\n\n{table_of(_pod_rows(world))}")


async def _look(folder: UpFolder) -> World:
    options = ConnectionOptions(kubeconfig=str(folder.kubeconfig), request_timeout=_ANSWER_SECONDS)
    world = World(SystemClock())
    async with connected(options, load_connection(options)) as client:
        for node in (await client.list_all(NODES, view=NodeView)).items:
            world.of_nodes.on_add(node)
        for pod in (await client.list_all(PODS, view=PodView)).items:
            world.of_pods.on_add(pod)
    return world


def _facts(world: World) -> dict[str, Any]:
    return {
        "nodes": [
            {"name": name, "state": node.state, "pods": dict(world.on_node(name))}
            for name, node in sorted(world.nodes.items())
        ],
        "pods": dict(world.states),
        "terminating": [
            {"pod": pod.name, "node": pod.spec.node_name, "why": why_terminating(pod, world)}
            for pod in world.terminating.values()
        ],
    }


def _part_rows(parts: Iterable[dict[str, Any]]) -> _Rows:
    rows: _Rows = [("COMPONENT", "STATE", "PROCESS", "RESTARTS", "SINCE")]
    for part in parts:
        since = format_duration(part["seconds"]) if part["pid"] else ""
        rows.append((part["name"], part["state"], str(part["pid"] or ""), str(part["restarts"]), since))
    return rows


def _node_rows(world: World) -> _Rows:
    rows: _Rows = [("NODE", "STATE", "PODS")]
    rows += [
        (name, node.state, states_of(world.on_node(name)) or "none")
        for name, node in sorted(world.nodes.items(), key=lambda each: in_order(each[0]))
    ]
    return rows


def _pod_rows(world: World) -> _Rows:
    rows: _Rows = [("PODS", "", ""), ("all", states_of(world.states) or "none", "")]
    rows += [
        (pod.name, "Terminating", why_terminating(pod, world))
        for pod in sorted(world.terminating.values(), key=lambda each: each.name)
    ]
    return rows


def table_of(rows: Sequence[tuple[str, ...]]) -> str:
    """Columns as wide as they must be."""
    rows = [tuple(map(printable, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)

"""The output of `podlife status`: components from `podlife up` itself, the rest from its API server."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from podlife.api.durations import format_duration
from podlife.cli.commands.up.lines import in_order, states_of
from podlife.cli.connection import ConnectionOptions, connected, load_connection
from podlife.cli.output import STRUCTURED, structured, table
from podlife.client import NODES, PODS
from podlife.clock import SystemClock
from podlife.daemons import event_loop
from podlife.errors import PodlifeError
from podlife.localcluster.cluster_state import ClusterState, why_terminating
from podlife.localcluster.control_socket import ask
from podlife.localcluster.state_dir import StateDir
from podlife.localcluster.views import DisplayedNode, DisplayedPod

_ANSWER_SECONDS = 10.0

_Rows = list[tuple[str, ...]]


def show_status(state_dir: StateDir, output: str) -> None:
    """Raises ConfigError when none runs."""
    answer = ask(state_dir, {"do": "status"})
    parts = answer["parts"]
    holder = state_dir.holder()
    found = {"url": "" if holder is None else holder.url, "data": str(state_dir.path), "components": parts}
    found["page"] = answer.get("page", "")
    try:
        state = event_loop.run(_read_state(state_dir))
    except PodlifeError as error:
        state, found["error"] = None, str(error)
    facts = found | (_facts(state) if state is not None else {})
    if output in STRUCTURED:
        print(structured(facts, output), end="")
        return
    page = f"\nIn a browser: {found['page']}" if found["page"] else ""
    print(f"{found['url']} (data: {state_dir.path}){page}\n\n{table(_component_rows(parts))}", end="")
    if state is None:
        print(f"podlife: the API server does not answer: {found['error']}", file=sys.stderr)
        return
    print(f"\n{table(_node_rows(state))}\n{table(_pod_rows(state))}", end="")


async def _read_state(state_dir: StateDir) -> ClusterState:
    options = ConnectionOptions(kubeconfig=str(state_dir.kubeconfig), request_timeout=_ANSWER_SECONDS)
    state = ClusterState(SystemClock())
    async with connected(options, load_connection(options)) as client:
        for node in (await client.list_all(NODES, view=DisplayedNode)).items:
            state.of_nodes.on_add(node)
        for pod in (await client.list_all(PODS, view=DisplayedPod)).items:
            state.of_pods.on_add(pod)
    return state


def _facts(state: ClusterState) -> dict[str, Any]:
    return {
        "nodes": [
            {"name": name, "state": node.state, "pods": dict(state.on_node(name))}
            for name, node in sorted(state.nodes.items())
        ],
        "pods": dict(state.states),
        "terminating": [
            {"pod": pod.name, "node": pod.spec.node_name, "why": why_terminating(pod, state)}
            for pod in state.terminating.values()
        ],
    }


def _component_rows(parts: Iterable[dict[str, Any]]) -> _Rows:
    rows: _Rows = [("COMPONENT", "STATE", "PROCESS", "RESTARTS", "SINCE")]
    for part in parts:
        since = format_duration(part["seconds"]) if part["pid"] else ""
        rows.append((part["name"], part["state"], str(part["pid"] or ""), str(part["restarts"]), since))
    return rows


def _node_rows(state: ClusterState) -> _Rows:
    rows: _Rows = [("NODE", "STATE", "PODS")]
    rows += [
        (name, node.state, states_of(state.on_node(name)) or "none")
        for name, node in sorted(state.nodes.items(), key=lambda each: in_order(each[0]))
    ]
    return rows


def _pod_rows(state: ClusterState) -> _Rows:
    rows: _Rows = [("PODS", "", ""), ("all", states_of(state.states) or "none", "")]
    rows += [
        (pod.name, "Terminating", why_terminating(pod, state))
        for pod in sorted(state.terminating.values(), key=lambda each: each.name)
    ]
    return rows

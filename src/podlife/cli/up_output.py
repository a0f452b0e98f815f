"""What `podlife up` says: how to begin, what has changed, how it ends. Lines for whoever reads a file or a pipe; on a
terminal they stand above the view (`up_screen`)."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from podlife.cli.up_world import World

__all__ = ["Lines", "states_of", "summary_of", "welcome"]


def welcome(url: str, kubeconfig: Path, nodes: int, seconds: float) -> str:
    many = f"{nodes} nodes are" if nodes != 1 else "1 node is"
    return f"""\
The cluster is up after {seconds:.1f} s: {url}, {many} ready.

  export KUBECONFIG={shlex.quote(str(kubeconfig))}

  kubectl create deployment hello --image=demo --replicas=3 -- sh -c 'while echo hello; do sleep 5; done'
  kubectl get pods -o wide
  kubectl logs deployment/hello

Ctrl-C stops it, and its pods with it; everything is there again at the next `up`."""


def states_of(states: Counter[str]) -> str:
    return ", ".join(f"{count} {state}" for state, count in sorted(states.items()))


def summary_of(states: Counter[str], gone: int) -> str:
    return f"pods: {states_of(states) or 'none'}{f'; {gone} gone' if gone else ''}"


class Lines:
    """What has changed since the last look, as lines."""

    def __init__(self, world: World, say: Callable[[str], None]) -> None:
        self._world = world
        self._say = say
        self._nodes: dict[str, str] = {}
        self._summary = ""
        self._is_live = True

    def look(self) -> None:
        world = self._world
        if world.is_live != self._is_live:
            self._is_live = world.is_live
            self._say("the API server answers again" if self._is_live else "the API server does not answer")
        states = {name: node.state for name, node in world.nodes.items()}
        for name in sorted(states.keys() | self._nodes.keys()):
            if states.get(name) != self._nodes.get(name):
                self._say(_describe_node(name, world))
        self._nodes = states
        summary = summary_of(world.states, world.gone_by_reason.total())
        if summary != self._summary:
            self._say(summary)
        self._summary = summary


def _describe_node(name: str, world: World) -> str:
    node = world.nodes.get(name)
    if node is None:
        return f"node {name} is gone"
    why = f": {node.ready.message}" if not node.is_ready and node.ready.message else ""
    return f"node {name} is {node.state}{why}"

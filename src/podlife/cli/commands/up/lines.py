"""What `podlife up` says: how to begin, what has changed, how it ends. Lines for whoever reads a file or a pipe; on a
terminal they stand above the view (`up_screen`)."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from podlife.localcluster.cluster_state import World

__all__ = ["LAST_WORDS", "Lines", "Welcome", "in_order", "states_of", "summary_of"]

# How the welcome ends, for who reads it to know that it is complete.
LAST_WORDS = "Ctrl-C stops it"
# So many looks at numbers that keep changing, then they are told all the same.
_PATIENCE_LOOKS = 5


_FIRST = """\
  kubectl create deployment hello --image=demo --replicas=3 -- sh -c 'while echo hello; do sleep 5; done'
  kubectl get pods -o wide
  kubectl logs deployment/hello"""
_RESTARTED = "  kubectl get pods --all-namespaces -o wide"


@dataclass(frozen=True, slots=True)
class Welcome:
    url: str
    kubeconfig: Path
    join_file: Path
    nodes: int
    program: str = "podlife"
    # Whether it has objects of an earlier run.
    is_restart: bool = False

    def text(self, seconds: float) -> str:
        many = f"{self.nodes} nodes are" if self.nodes != 1 else "1 node is"
        return f"""\
The cluster is up after {seconds:.1f} s: {self.url}, {many} ready.

  export KUBECONFIG={shlex.quote(str(self.kubeconfig))}

{_RESTARTED if self.is_restart else _FIRST}

Another node: {self.program} node --name more --join {shlex.quote(str(self.join_file))}
{LAST_WORDS}, and its pods with it; everything is there again at the next `up`."""


def in_order(name: str) -> tuple[str, int]:
    """node-2 before node-10."""
    stem, _, number = name.rpartition("-")
    return (stem, int(number)) if stem and number.isdecimal() else (name, -1)


def states_of(states: Counter[str]) -> str:
    return ", ".join(f"{count} {state}" for state, count in sorted(states.items()))


def summary_of(states: Counter[str], gone: int) -> str:
    return f"pods: {states_of(states) or 'none'}{f'; {gone} gone' if gone else ''}"


class Lines:
    """What has changed since the last look, as lines. While much changes, numbers are told only now and then."""

    def __init__(self, world: World, say: Callable[[str], None]) -> None:
        self._world = world
        self._say = say
        # Those that are ready now were told of already.
        self._nodes = {name: node.state for name, node in world.nodes.items() if node.is_ready}
        self._told = self._seen = ""
        self._looks = 0
        self._is_live = True

    def look(self) -> None:
        world = self._world
        if world.is_live != self._is_live:
            self._is_live = world.is_live
            self._say("the API server answers again" if self._is_live else "the API server does not answer")
        states = {name: node.state for name, node in world.nodes.items()}
        for name in sorted(states.keys() | self._nodes.keys(), key=in_order):
            if states.get(name) != self._nodes.get(name):
                self._say(_describe_node(name, world))
        self._nodes = states
        self._tell_pods(summary_of(world.states, world.gone_count))

    def _tell_pods(self, summary: str) -> None:
        is_calm, self._seen = summary == self._seen, summary
        self._looks += 1
        if summary != self._told and (is_calm or self._looks >= _PATIENCE_LOOKS):
            self._say(summary)
            self._told, self._looks = summary, 0


def _describe_node(name: str, world: World) -> str:
    node = world.nodes.get(name)
    if node is None:
        return f"node {name} is gone"
    why = f": {node.ready.message}" if not node.is_ready and node.ready.message else ""
    return f"node {name} is {node.state}{why}"

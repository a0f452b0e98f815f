"""What `podlife up` prints: how to begin, and what has changed. On a terminal these lines are above the live view."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from podlife.daemons.xdg import default_data_dir
from podlife.localcluster.cluster_state import ClusterState
from podlife.localcluster.state_dir import StateDir

if TYPE_CHECKING:
    from podlife.localcluster.session import StartedCluster

# How the welcome ends: its reader knows then that it is complete.
LAST_WORDS = "Ctrl-C stops it"
# Numbers that keep changing are printed after so many looks.
_PATIENCE_LOOKS = 5


_FIRST = """\
  kubectl create deployment hello --image=demo --replicas=3 -- sh -c 'while echo hello; do sleep 5; done'
  kubectl get pods -o wide
  kubectl logs deployment/hello"""
_RESTARTED = "  kubectl get pods --all-namespaces -o wide"


@dataclass(frozen=True, slots=True)
class Welcome:
    cluster: StartedCluster
    # The command that runs this program.
    program: str = "podlife"

    def text(self, seconds: float) -> str:
        cluster, nodes = self.cluster, self.cluster.ready_nodes
        many = f"{nodes} nodes are" if nodes != 1 else "1 node is"
        page = f"In a browser: {cluster.page}\n" if cluster.page else ""
        return f"""\
The cluster is up after {seconds:.1f} s: {cluster.url}, {many} ready.

  export KUBECONFIG={shlex.quote(str(cluster.kubeconfig))}

{_RESTARTED if cluster.is_restart else _FIRST}

{page}Another node: {self.program} node --name more --join {shlex.quote(str(cluster.join_file))}
{LAST_WORDS}, and its pods with it; everything is there again at the next `up`."""


def in_order(name: str) -> tuple[str, int]:
    """node-2 before node-10."""
    stem, _, number = name.rpartition("-")
    return (stem, int(number)) if stem and number.isdecimal() else (name, -1)


def states_of(states: Counter[str]) -> str:
    return ", ".join(f"{count} {state}" for state, count in sorted(states.items()))


def summary_of(states: Counter[str], gone: int) -> str:
    return f"pods: {states_of(states) or 'none'}{f'; {gone} gone' if gone else ''}"


class ChangeLines:
    """Prints what has changed since the last look. While much changes, numbers are printed only now and then."""

    def __init__(self, state: ClusterState, say: Callable[[str], None]) -> None:
        self._state = state
        self._say = say
        # Nodes that are ready now have been announced.
        self._nodes = {name: node.state for name, node in state.nodes.items() if node.is_ready}
        self._told = self._seen = ""
        self._looks = 0
        self._is_live = True

    def look(self) -> None:
        state = self._state
        if state.is_live != self._is_live:
            self._is_live = state.is_live
            self._say("the API server answers again" if self._is_live else "the API server does not answer")
        states = {name: node.state for name, node in state.nodes.items()}
        for name in sorted(states.keys() | self._nodes.keys(), key=in_order):
            if states.get(name) != self._nodes.get(name):
                self._say(_describe_node(name, state))
        self._nodes = states
        self._tell_pods(summary_of(state.states, state.gone_count))

    def _tell_pods(self, summary: str) -> None:
        is_calm, self._seen = summary == self._seen, summary
        self._looks += 1
        if summary != self._told and (is_calm or self._looks >= _PATIENCE_LOOKS):
            self._say(summary)
            self._told, self._looks = summary, 0


def _describe_node(name: str, state: ClusterState) -> str:
    node = state.nodes.get(name)
    if node is None:
        return f"node {name} is gone"
    why = f": {node.ready.message}" if not node.is_ready and node.ready.message else ""
    return f"node {name} is {node.state}{why}"


# How a user calls this program again, for messages that say what to do next.


def command_for(state_dir: StateDir, verb: str) -> str:
    """A command for the cluster of this state directory and no other."""
    is_default = state_dir.path.resolve() == default_data_dir().resolve()
    data = "" if is_default else f" --data {shlex.quote(str(state_dir.path))}"
    return f"{program()} {verb}{data}"


def program() -> str:
    """`podlife` if the shell finds this program under that name; otherwise its path. After `make up` it is in a virtual
    environment that is not on PATH, or another podlife is."""
    script = Path(sys.executable).with_name("podlife")
    if not script.exists():
        return f"{shlex.quote(sys.executable)} -m podlife"
    found = shutil.which("podlife")
    if found is not None and Path(found).samefile(script):
        return "podlife"
    here = os.path.relpath(script)
    return shlex.quote(str(script) if here.startswith("..") else here)

"""The test kit: a whole cluster in your test's own process, and a clock that you hold in your hand.

    async with Cluster(nodes=3) as cluster:
        await cluster.node("n1").stop()
        await cluster.advance(minutes=5, seconds=40)

With pytest the fixture `podlife_cluster` does the first line and the virtual time; without it, `@virtual_time` does the
latter. See docs/testing.md.
A name is imported from its module when it is first used: who only turns the time loads no cluster.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podlife.kubelet.runtime import ExecResult
    from podlife.kubelet.runtimes.sim import Behaviour
    from podlife.testing.cluster import Cluster
    from podlife.testing.controllers import DEFAULT, Controllers, function, node_lifecycle, pod_gc
    from podlife.testing.fault_injection import Disturbance, Way
    from podlife.testing.in_thread import ClusterInThread, cluster_in_thread
    from podlife.testing.node import Node, NodeSpec, RunningContainer
    from podlife.testing.request_log import Audit, Entry
    from podlife.testing.timeline import Change, Timeline, is_gone, is_terminating
    from podlife.testing.virtual_loop import LoopClock, VirtualTimeLoop, run_virtually, virtual_time
    from podlife.testing.wait import NotSettledError

__all__ = [
    "DEFAULT",
    "Audit",
    "Behaviour",
    "Change",
    "Cluster",
    "ClusterInThread",
    "Controllers",
    "Disturbance",
    "Entry",
    "ExecResult",
    "LoopClock",
    "Node",
    "NodeSpec",
    "NotSettledError",
    "RunningContainer",
    "Timeline",
    "VirtualTimeLoop",
    "Way",
    "cluster_in_thread",
    "function",
    "is_gone",
    "is_terminating",
    "node_lifecycle",
    "pod_gc",
    "run_virtually",
    "virtual_time",
]

_MODULES = {
    "ExecResult": "podlife.kubelet.runtime",
    "Behaviour": "podlife.kubelet.runtimes.sim",
    "Audit": "podlife.testing.request_log",
    "Entry": "podlife.testing.request_log",
    "Cluster": "podlife.testing.cluster",
    "NotSettledError": "podlife.testing.wait",
    "DEFAULT": "podlife.testing.controllers",
    "Controllers": "podlife.testing.controllers",
    "function": "podlife.testing.controllers",
    "node_lifecycle": "podlife.testing.controllers",
    "pod_gc": "podlife.testing.controllers",
    "ClusterInThread": "podlife.testing.in_thread",
    "cluster_in_thread": "podlife.testing.in_thread",
    "Node": "podlife.testing.node",
    "NodeSpec": "podlife.testing.node",
    "RunningContainer": "podlife.testing.node",
    "Change": "podlife.testing.timeline",
    "Timeline": "podlife.testing.timeline",
    "is_gone": "podlife.testing.timeline",
    "is_terminating": "podlife.testing.timeline",
    "LoopClock": "podlife.testing.virtual_loop",
    "VirtualTimeLoop": "podlife.testing.virtual_loop",
    "run_virtually": "podlife.testing.virtual_loop",
    "virtual_time": "podlife.testing.virtual_loop",
    "Disturbance": "podlife.testing.fault_injection",
    "Way": "podlife.testing.fault_injection",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, getattr(importlib.import_module(_MODULES[name]), name))

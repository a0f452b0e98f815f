"""Test kit: a whole cluster in the test's process, under a clock that the test advances.

    async with Cluster(nodes=3) as cluster:
        await cluster.node("n1").stop()
        await cluster.advance(minutes=5, seconds=40)

With pytest, the fixture `podlife_cluster` provides the cluster and virtual time; without it, use `@virtual_time`. See
docs/testing.md.

Names are imported from their modules on first use: a test that only needs virtual time loads no cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podlife.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from podlife.kubelet.runtime import ExecResult
    from podlife.kubelet.runtimes.sim import Behaviour
    from podlife.testing.cluster import Cluster, NotSettledError
    from podlife.testing.controllers import DEFAULT, Controllers, function, node_lifecycle, pod_gc
    from podlife.testing.fake_podcontrol import FakePodControl
    from podlife.testing.fault_injection import Disturbance, FaultInjection
    from podlife.testing.in_thread import ClusterInThread, cluster_in_thread
    from podlife.testing.node import ClusterNode, ClusterNodeSpec, RunningContainer
    from podlife.testing.request_log import LoggedRequest, RequestLog
    from podlife.testing.timeline import ObservedChange, Timeline, is_gone, is_terminating
    from podlife.testing.virtual_loop import LoopClock, VirtualTimeLoop, run_virtually, virtual_time

__all__ = [
    "DEFAULT",
    "Behaviour",
    "Cluster",
    "ClusterInThread",
    "ClusterNode",
    "ClusterNodeSpec",
    "Controllers",
    "Disturbance",
    "ExecResult",
    "FakePodControl",
    "FaultInjection",
    "LoggedRequest",
    "LoopClock",
    "NotSettledError",
    "ObservedChange",
    "RequestLog",
    "RunningContainer",
    "Timeline",
    "VirtualTimeLoop",
    "cluster_in_thread",
    "function",
    "is_gone",
    "is_terminating",
    "node_lifecycle",
    "pod_gc",
    "run_virtually",
    "virtual_time",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "podlife.kubelet.runtime": ("ExecResult",),
        "podlife.kubelet.runtimes.sim": ("Behaviour",),
        "podlife.testing.cluster": ("Cluster", "NotSettledError"),
        "podlife.testing.controllers": ("DEFAULT", "Controllers", "function", "node_lifecycle", "pod_gc"),
        "podlife.testing.fake_podcontrol": ("FakePodControl",),
        "podlife.testing.fault_injection": ("Disturbance", "FaultInjection"),
        "podlife.testing.in_thread": ("ClusterInThread", "cluster_in_thread"),
        "podlife.testing.node": ("ClusterNode", "ClusterNodeSpec", "RunningContainer"),
        "podlife.testing.request_log": ("RequestLog", "LoggedRequest"),
        "podlife.testing.timeline": ("ObservedChange", "Timeline", "is_gone", "is_terminating"),
        "podlife.testing.virtual_loop": ("LoopClock", "VirtualTimeLoop", "run_virtually", "virtual_time"),
    },
)

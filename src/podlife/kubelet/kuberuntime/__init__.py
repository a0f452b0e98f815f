"""All operations on sandboxes and containers through the runtime, and the decisions behind them.

`compute_pod_actions` decides what a sync has to do and `KubeRuntimeManager` does it; grace periods, restart backoff,
termination order and the labels that a restarted kubelet reads are pure modules. `ContainerGC` removes what pods leave
behind. `handler_runner` runs lifecycle hooks; import it separately, since it brings an HTTP client.
"""

from podlife.kubelet.kuberuntime.backoff import Backoff, crash_loop_backoff
from podlife.kubelet.kuberuntime.container_config import ContainerConfigs
from podlife.kubelet.kuberuntime.container_gc import ContainerGC
from podlife.kubelet.kuberuntime.log_directory import LogDirectory
from podlife.kubelet.kuberuntime.manager import KubeRuntimeManager
from podlife.kubelet.kuberuntime.reason_cache import ReasonCache, StartFailure
from podlife.kubelet.kuberuntime.start_container import ContainerStartError

__all__ = [
    "Backoff",
    "ContainerConfigs",
    "ContainerGC",
    "ContainerStartError",
    "KubeRuntimeManager",
    "LogDirectory",
    "ReasonCache",
    "StartFailure",
    "crash_loop_backoff",
]

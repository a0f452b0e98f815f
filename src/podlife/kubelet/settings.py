"""Settings of a kubelet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from podlife.api.codec import Object
from podlife.kubelet.constants import CRASH_LOOP_MAX_SECONDS
from podlife.kubelet.node_status import NodeSettings

if TYPE_CHECKING:
    # Imports an HTTP server, which simulated nodes do not need.
    from podlife.kubelet.server import ServerSettings


def _no_check(pod: Object) -> Sequence[str]:
    return ()


@dataclass(frozen=True, slots=True)
class KubeletSettings:
    """Without `data` nothing is stored on disk: no logs, no volumes. `static_pods` is a directory of manifests. Without
    `follows_pods` the caller puts the pods into `Kubelet.api_pods`."""

    node: NodeSettings
    data: Path | None = None
    static_pods: Path | None = None
    # Returns the problems of a static pod, as an API server would report them.
    check_static_pod: Callable[[Object], Sequence[str]] = _no_check
    follows_pods: bool = True
    # The HTTPS server for logs and exec; None for none.
    endpoint: ServerSettings | None = None
    # URL by which the node reaches the API server: pods are told it unless the server says another.
    api_server: str = ""
    crash_loop_max_seconds: float = CRASH_LOOP_MAX_SECONDS

    @property
    def logs(self) -> Path | None:
        return None if self.data is None else self.data / "logs" / "pods"

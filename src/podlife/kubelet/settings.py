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
    # It brings an HTTP server with it, which a simulated node has no use for.
    from podlife.kubelet.server import ServerSettings


def _no_check(pod: Object) -> Sequence[str]:
    return ()


@dataclass(frozen=True, slots=True)
class KubeletSettings:
    """Without `data` nothing is on the disk: no logs, no volumes. `static_pods` is a folder of manifests. Pods are
    followed unless somebody else hands them in (`Agent.api_pods`)."""

    node: NodeSettings
    data: Path | None = None
    static_pods: Path | None = None
    # What is wrong with a pod of theirs, one text each: for who knows what an API server would refuse.
    check_static_pod: Callable[[Object], Sequence[str]] = _no_check
    follows_pods: bool = True
    # Where the node serves logs and commands; None for nowhere.
    endpoint: ServerSettings | None = None
    crash_loop_max_seconds: float = CRASH_LOOP_MAX_SECONDS

    @property
    def logs(self) -> Path | None:
        return None if self.data is None else self.data / "logs" / "pods"

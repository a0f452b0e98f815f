"""Parts that an agent may be without: no volumes, no hooks, no probes. A pod that asks for one is told so."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from podlife.kubelet.lifecycle.objects import Container, Pod
from podlife.kubelet.lifecycle.probes import ProbeResult, ProbeType
from podlife.kubelet.ports import HookError, VolumeError
from podlife.kubelet.runtime import Mount

__all__ = ["NoHooks", "NoProbes", "NoVolumes"]


class NoVolumes:
    """For nodes that only pretend to run containers: what is in a volume nobody reads."""

    def __init__(self, *, refuses: bool = False) -> None:
        self._refuses = refuses

    async def mount(self, pod: Pod) -> None:
        volumes = pod["spec"].get("volumes") or ()
        if self._refuses and volumes:
            names = ", ".join(each["name"] for each in volumes)
            raise VolumeError(f"volumes are not supported on this node: {names}")

    def mounts(self, pod: Pod, container: Container) -> tuple[Mount, ...]:
        return ()

    async def unmount(self, uid: str) -> None:
        """There is nothing."""

    def mounted(self) -> Collection[str]:
        return ()


class NoHooks:
    async def run(
        self, pod: Pod, container: Container, container_id: str, handler: Mapping[str, Any], *, pod_ip: str
    ) -> None:
        raise HookError("hooks are not supported on this node")


class NoProbes:
    def verdict(self, type_: ProbeType, container_id: str) -> ProbeResult | None:
        return None

    def set_verdict(self, type_: ProbeType, container_id: str, uid: str, result: ProbeResult) -> None:
        """Nobody asks for it."""

    def add(self, pod: Pod) -> None:
        """Nobody is probed."""

    def status_changed(self, uid: str) -> None:
        """Nobody is probed."""

    def stop_for_termination(self, pod: Pod) -> None:
        """Nobody is probed."""

    def remove(self, uid: str) -> None:
        """Nobody is probed."""

    def keep_only(self, uids: Collection[str]) -> None:
        """Nobody is probed."""

"""Parts that a node may be without, where nobody looks: volumes and probes."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from podlife.kubelet.pod_fields import Container, Pod
from podlife.kubelet.prober_state import ProbeResult, ProbeType
from podlife.kubelet.runtime import Mount

__all__ = ["NoProbes", "NoVolumes"]


class NoVolumes:
    """For nodes that only pretend to run containers: what is in a volume nobody reads."""

    async def mount(self, pod: Pod) -> None:
        """Everything is there."""

    def mounts(self, pod: Pod, container: Container) -> tuple[Mount, ...]:
        return ()

    def hosts_file(self, pod: Pod, container: Container, ips: Sequence[str]) -> Mount | None:
        return None

    async def unmount(self, uid: str) -> None:
        """There is nothing."""

    def mounted(self) -> Collection[str]:
        return ()


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

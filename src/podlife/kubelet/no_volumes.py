"""The volumes of a node without a data directory: none is mounted."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from podlife.kubelet.pod_fields import Container, Pod
from podlife.kubelet.runtime import Mount


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

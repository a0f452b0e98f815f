"""Interfaces of the parts that the kubelet's core uses: volumes, hooks, probes, and the objects that pods refer to.

Each part has its own package and does not know the core. All take pods as plain API objects, and every call is
idempotent.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from podlife.api.codec import Object
from podlife.errors import PodlifeError
from podlife.kubelet.pod_fields import Container, Pod
from podlife.kubelet.prober.state import ProbeResult, ProbeType
from podlife.kubelet.runtime import Mount


class VolumeError(PodlifeError):
    """A volume is not available, at least for now; the message is that of the FailedMount event."""


class VolumeLimitError(VolumeError):
    """The node cannot attach more volumes of this type: the pod is rejected (ST-04)."""


class HookError(PodlifeError):
    """A hook failed. The message is only logged, because it may quote the container's output (KC-10, KC-17)."""


class ObjectCache(Protocol):
    """Config maps, secrets and services that the node's pods refer to, as fresh as the kubelet needs them. None is an
    object that does not exist; any other failure is raised as the client's error."""

    async def config_map(self, namespace: str, name: str) -> Object | None: ...

    async def secret(self, namespace: str, name: str) -> Object | None: ...

    async def token(self, pod: Pod, *, audience: str, expiration_seconds: int) -> str:
        """A token of the pod's service account, bound to the pod; the same one until it should be renewed."""

    async def service_environment(self, pod: Pod) -> Mapping[str, str]:
        """Service variables for the pod's containers; {} if the pod opts out."""

    def register(self, pod: Pod) -> None:
        """A pod arrived or changed: the objects it refers to are read again."""

    def unregister(self, uid: str) -> None: ...


class Volumes(Protocol):
    async def mount(self, pod: Pod) -> None:
        """Set up all volumes of the pod, and update those that contain API objects. Raises `VolumeError`."""

    def mounts(self, pod: Pod, container: Container) -> tuple[Mount, ...]:
        """The mounts of a container of a mounted pod. Raises `ContainerConfigError`."""

    def hosts_file(self, pod: Pod, container: Container, ips: Sequence[str]) -> Mount | None:
        """The container's managed /etc/hosts, if it has one; raises `VolumeError`."""

    async def unmount(self, uid: str) -> None:
        """Remove all volumes of the pod; files of the node (hostPath) are not touched."""

    def mounted(self) -> Collection[str]:
        """UIDs of pods with volumes on disk, including those of an earlier kubelet."""


class NoVolumes:
    """For simulated nodes without a data directory: nothing is mounted."""

    async def mount(self, pod: Pod) -> None:
        """Nothing to do."""

    def mounts(self, pod: Pod, container: Container) -> tuple[Mount, ...]:
        return ()

    def hosts_file(self, pod: Pod, container: Container, ips: Sequence[str]) -> Mount | None:
        return None

    async def unmount(self, uid: str) -> None:
        """Nothing to do."""

    def mounted(self) -> Collection[str]:
        return ()


class Hooks(Protocol):
    async def run(
        self, pod: Pod, container: Container, container_id: str, handler: Mapping[str, Any], *, pod_ip: str
    ) -> None:
        """Run a lifecycle handler until it completes. Raises `HookError`. The caller cancels it on timeout."""


class Probes(Protocol):
    """Runs the probes of pods and stores their results, by runtime ID of the container."""

    def result(self, type_: ProbeType, container_id: str) -> ProbeResult | None: ...

    def set_result(self, type_: ProbeType, container_id: str, uid: str, result: ProbeResult) -> None: ...

    def add(self, pod: Pod) -> None:
        """Start probing its containers; of a newer version of the pod only its deletion matters (PR-16)."""

    def status_changed(self, uid: str) -> None:
        """The pod's status was set: run readiness probes that have not succeeded yet now, not after their period."""

    def stop_for_termination(self, pod: Pod) -> None:
        """Termination begins: from now on only readiness is probed (PR-17)."""

    def remove(self, uid: str) -> None: ...

    def keep_only(self, uids: Collection[str]) -> None: ...

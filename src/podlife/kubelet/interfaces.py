"""What the kubelet's core needs of its parts: volumes, hooks, probes, and the objects that pods refer to.

Each part has a package of its own and does not know the core. All take pods as plain API objects, and every call may be
repeated.
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
    """A volume is not there yet, or never will be; the text is what a FailedMount event says."""


class VolumeLimitError(VolumeError):
    """The node can hold no more volumes of this sort: the pod is refused (ST-04)."""


class HookError(PodlifeError):
    """A hook failed. The text is only logged: it may quote the container, which no event does (KC-10, KC-17)."""


class ObjectCache(Protocol):
    """Config maps, secrets and services that pods of the node refer to, as new as the kubelet cares for. None is an
    object that there is not; whatever else went wrong is raised as the client's error."""

    async def config_map(self, namespace: str, name: str) -> Object | None: ...

    async def secret(self, namespace: str, name: str) -> Object | None: ...

    async def token(self, pod: Pod, *, audience: str, expiration_seconds: int) -> str:
        """A token of the pod's service account, bound to the pod; the same one until it should be renewed."""

    async def service_environment(self, pod: Pod) -> Mapping[str, str]:
        """The variables that tell of services, {} where the pod does not want them."""

    def register(self, pod: Pod) -> None:
        """A pod came or changed: what it refers to is asked for again."""

    def unregister(self, uid: str) -> None: ...


class Volumes(Protocol):
    async def mount(self, pod: Pod) -> None:
        """Make every volume of the pod ready, and bring those that show objects up to date. Raises `VolumeError`."""

    def mounts(self, pod: Pod, container: Container) -> tuple[Mount, ...]:
        """What a container of a mounted pod is shown. Raises `ContainerConfigError`."""

    def hosts_file(self, pod: Pod, container: Container, ips: Sequence[str]) -> Mount | None:
        """The container's managed /etc/hosts, if it has one; raises `VolumeError`."""

    async def unmount(self, uid: str) -> None:
        """Leave nothing of the pod's volumes behind; what belongs to the node (hostPath) is not touched."""

    def mounted(self) -> Collection[str]:
        """UIDs of which there is something on the disk, also from before the kubelet was started."""


class NoVolumes:
    """For nodes without a data directory, which only pretend to run containers: nothing is mounted."""

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


class Hooks(Protocol):
    async def run(
        self, pod: Pod, container: Container, container_id: str, handler: Mapping[str, Any], *, pod_ip: str
    ) -> None:
        """Run a lifecycle handler to its end; raises `HookError`. The caller bounds it, by cancelling."""


class Probes(Protocol):
    """Runs the probes of pods and keeps what they found, by the runtime's own IDs of containers."""

    def result(self, type_: ProbeType, container_id: str) -> ProbeResult | None: ...

    def set_result(self, type_: ProbeType, container_id: str, uid: str, result: ProbeResult) -> None: ...

    def add(self, pod: Pod) -> None:
        """Probe its containers from now on; a newer pod of the same UID changes nothing but its deletion (PR-16)."""

    def status_changed(self, uid: str) -> None:
        """The pod's status was set: a readiness that is not given yet is asked for now, not after its period."""

    def stop_for_termination(self, pod: Pod) -> None:
        """The pod is to end: only its readiness is still looked at (PR-17)."""

    def remove(self, uid: str) -> None: ...

    def keep_only(self, uids: Collection[str]) -> None: ...

"""Implements `podlife.kubelet.interfaces.Volumes` on the node's disk.

Everything is read from the API server first; then each volume is written independently of the others' failures.
Operations on a pod are serialized, so that nothing is written to a volume being removed. A volume that was ready stays
ready when a later update fails: its readers keep the old contents.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from podlife.api.codec import Object
from podlife.client import Client
from podlife.clock import Clock
from podlife.errors import PodlifeError
from podlife.kubelet.envvars import DownwardContext, EnvironmentSources, environment
from podlife.kubelet.interfaces import ObjectCache, VolumeError
from podlife.kubelet.object_cache import named_config_maps, named_secrets
from podlife.kubelet.pod_fields import Container, Pod, hostname_of, long_name
from podlife.kubelet.runtime import Mount
from podlife.kubelet.volumemanager.claims import Claims
from podlife.kubelet.volumemanager.container_mounts import (
    MountSource,
    all_containers,
    container_mounts,
    has_expressions,
    used_volumes,
)
from podlife.kubelet.volumemanager.hosts_file import PATH as HOSTS_PATH
from podlife.kubelet.volumemanager.hosts_file import has_own_file, node_hosts_file, own_hosts_file
from podlife.kubelet.volumemanager.layout import Layout, SetUpError
from podlife.kubelet.volumemanager.pod_locks import PodLocks
from podlife.kubelet.volumemanager.volume_setup import Volume, VolumeSetup, VolumeSetups

log = logging.getLogger(__name__)

_MOUNT_SECONDS = 123.0
_UNMOUNT_SECONDS = 600.0
# Stored beside the volumes and removed with them.
_HOSTS_PLUGIN = "podlife.dev~hosts"
# Pods from manifest files were not validated by an API server.
_MALFORMED = (AttributeError, KeyError, TypeError, ValueError)


def context_of_status(pod: Pod) -> DownwardContext:
    """The context from a pod's status, without values of the node."""
    status = pod.get("status") or {}
    ips, host_ips = ([each["ip"] for each in status.get(name) or ()] for name in ("podIPs", "hostIPs"))
    return DownwardContext(host_ips=tuple(host_ips), pod_ips=tuple(ips))


def _log(pod: Pod, text: str) -> None:
    log.warning("pod %s: %s", long_name(pod), text)


@dataclass(frozen=True, slots=True)
class VolumeSettings:
    """Hooks into the kubelet: the downward-API context of a pod, the Node, and a callback for a mounted volume that
    could not be updated (a FailedMount event)."""

    context: Callable[[Pod], DownwardContext] = context_of_status
    node: Callable[[], Object | None] = lambda: None
    report: Callable[[Pod, str], None] = _log
    # False under virtual time, which does not wait for threads.
    in_threads: bool = True
    # Whether pods without hostNetwork have their own addresses.
    is_network_own: bool = False


@dataclass(slots=True)
class _Mounted:
    ready: dict[str, MountSource] = field(default_factory=dict)
    # For containers with subPathExpr.
    sources: EnvironmentSources = field(default_factory=EnvironmentSources)


class VolumeManager:
    def __init__(
        self,
        client: Client,
        objects: ObjectCache,
        clock: Clock,
        root: Path,
        settings: VolumeSettings | None = None,
    ) -> None:
        self._settings = settings = settings or VolumeSettings()
        self._objects = objects
        self._layout = Layout(root)
        claims = Claims(client, settings.node)
        self._steps = VolumeSetups(self._layout, claims, objects, clock, settings.context)
        self._locks = PodLocks(in_threads=settings.in_threads)
        self._pods: dict[str, _Mounted] = {}

    async def mount(self, pod: Pod) -> None:
        uid = str(pod["metadata"]["uid"])
        wanted = used_volumes(pod)
        volumes = [each for each in (pod.get("spec") or {}).get("volumes") or () if each["name"] in wanted]
        if not volumes:
            return
        try:
            async with asyncio.timeout(_MOUNT_SECONDS), self._locks.take(uid) as lock:
                mounted = self._pods.setdefault(uid, _Mounted())
                steps, failures = await self._prepare(pod, volumes, mounted)
                failures |= await lock.run(partial(_set_up, steps))
                mounted.ready |= {step.name: step.source for step in steps if step.name not in failures}
                mounted.sources = await self._sources(pod)
        except TimeoutError:
            names = ", ".join(each["name"] for each in volumes)
            raise VolumeError(
                f"Unable to attach or mount volumes: unmounted volumes=[{names}]: "
                f"not ready within {_MOUNT_SECONDS:.0f} s"
            ) from None
        self._report(pod, mounted, failures)

    def mounts(self, pod: Pod, container: Container) -> tuple[Mount, ...]:
        uid = str(pod["metadata"]["uid"])
        mounted = self._pods.get(uid) or _Mounted()
        env: Mapping[str, str] = {}
        if has_expressions(container):
            known, context = mounted.sources, self._settings.context(pod)
            env = environment(
                pod, container, EnvironmentSources(known.config_map, known.secret, known.services, context)
            )
        return tuple(container_mounts(self._layout, uid, container, mounted.ready, env))

    def hosts_file(self, pod: Pod, container: Container, ips: Sequence[str]) -> Mount | None:
        """Written in place, so that running containers see a changed address of their pod."""
        spec = pod["spec"]
        is_own = self._settings.is_network_own and not spec.get("hostNetwork")
        if has_own_file(container) or not (ips if is_own else spec.get("hostAliases")):
            return None
        path = self._layout.volume(str(pod["metadata"]["uid"]), _HOSTS_PLUGIN, "etc-hosts")
        try:
            if is_own:
                text = own_hosts_file(pod, hostname_of(pod), ips)
            else:
                text = node_hosts_file(pod, Path(HOSTS_PATH).read_text(errors="replace"))
            self._layout.make_parents(path)
            if not path.exists() or path.read_text() != text:
                path.write_text(text)
            path.chmod(0o644)
        except (OSError, SetUpError) as error:
            raise VolumeError(f"cannot write the hosts file {path}: {error}") from None
        return Mount(HOSTS_PATH, str(path))

    async def unmount(self, uid: str) -> None:
        """Raises `VolumeError` if something is left; call again."""
        if uid not in self._pods and not self._layout.has(uid):
            # Most pods have no volumes and need no lock.
            return
        try:
            async with asyncio.timeout(_UNMOUNT_SECONDS), self._locks.take(uid) as lock:
                self._pods.pop(uid, None)
                await lock.run(partial(self._layout.remove, uid))
        except TimeoutError:
            raise VolumeError(f"the volumes of pod {uid} are still being removed") from None
        except OSError as error:
            raise VolumeError(f"the volumes of pod {uid} could not be removed: {error}") from None

    def mounted(self) -> Collection[str]:
        return self._layout.uids()

    async def _prepare(
        self, pod: Pod, volumes: Sequence[Volume], mounted: _Mounted
    ) -> tuple[list[VolumeSetup], dict[str, str]]:
        """Also returns error messages, by volume name."""
        steps, failures = [], {}
        for volume in volumes:
            name = volume["name"]
            try:
                steps.append(await self._steps.prepare(pod, volume, is_ready=name in mounted.ready))
            except SetUpError as error:
                failures[name] = _failed(name, error)
            except VolumeError as error:
                failures[name] = str(error)
            except _MALFORMED as error:
                failures[name] = _failed(name, f"the volume cannot be understood: {error!r}")
        return steps, failures

    async def _sources(self, pod: Pod) -> EnvironmentSources:
        """Read ahead for containers with subPathExpr: creating a container must not wait."""
        containers = [each for each in all_containers(pod) if has_expressions(each)]
        if not containers:
            return EnvironmentSources()
        only_these: Pod = {"spec": {"containers": containers}}
        namespace, read = str(pod["metadata"]["namespace"]), self._objects
        try:
            config_maps = {
                name: await read.config_map(namespace, name) for name in named_config_maps(only_these)
            }
            secrets = {name: await read.secret(namespace, name) for name in named_secrets(only_these)}
            services = await read.service_environment(pod)
        except PodlifeError as error:
            raise VolumeError(f"the environment that paths of volumes are made of: {error}") from None
        return EnvironmentSources(config_maps.get, secrets.get, services)

    def _report(self, pod: Pod, mounted: _Mounted, failures: Mapping[str, str]) -> None:
        for name, text in failures.items():
            if name in mounted.ready:
                self._settings.report(pod, text)
        if missing := [text for name, text in failures.items() if name not in mounted.ready]:
            raise VolumeError("; ".join(missing))


def _set_up(steps: Sequence[VolumeSetup]) -> dict[str, str]:
    failures = {}
    for step in steps:
        try:
            step.set_up()
        except (OSError, ValueError, SetUpError) as error:
            failures[step.name] = _failed(step.name, error)
    return failures


def _failed(name: str, why: object) -> str:
    return f'MountVolume.SetUp failed for volume "{name}" : {why}'

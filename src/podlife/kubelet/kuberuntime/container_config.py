"""The runtime configuration of a sandbox or container: environment, mounts, user, limits, labels.

Raises `ContainerConfigError` for a container that cannot be created as specified. The contents of volumes, config maps
and secrets come from the injected managers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from podlife.api.codec import Object
from podlife.errors import PodlifeError
from podlife.kubelet.admission import sysctls_of
from podlife.kubelet.envvars import (
    ContainerConfigError,
    DownwardContext,
    EnvironmentSources,
    command_and_args,
    environment,
)
from podlife.kubelet.interfaces import ObjectCache, VolumeError, Volumes
from podlife.kubelet.kuberuntime.compute_pod_actions import spec_hash
from podlife.kubelet.kuberuntime.labels import annotations_of, labels_of, pod_labels
from podlife.kubelet.kuberuntime.log_directory import LogDirectory, log_path
from podlife.kubelet.kuberuntime.resources import resources_of
from podlife.kubelet.pod_fields import Container, Pod, hostname_of, long_name
from podlife.kubelet.runtime import ContainerConfig, SandboxConfig, User


@dataclass(frozen=True, slots=True)
class ContainerInstance:
    """The instance to create: attempt number, image, and values for downward-API fields."""

    attempt: int
    image_ref: str
    context: DownwardContext


@dataclass(eq=False)
class ContainerConfigs:
    """`default_uid` is the user of containers that do not set one; None leaves it to the image."""

    volumes: Volumes
    objects: ObjectCache
    log_directory: LogDirectory
    default_uid: int | None = None

    def sandbox(self, pod: Pod, attempt: int) -> SandboxConfig:
        metadata, spec = pod["metadata"], pod["spec"]
        folder = self.log_directory.of(pod)
        return SandboxConfig(
            pod_uid=metadata["uid"],
            namespace=metadata.get("namespace") or "",
            name=metadata["name"],
            attempt=attempt,
            hostname=hostname_of(pod),
            log_directory=None if folder is None else os.fspath(folder),
            host_network=bool(spec.get("hostNetwork")),
            sysctls=sysctls_of(pod),
            labels={**(metadata.get("labels") or {}), **pod_labels(pod)},
            annotations=dict(metadata.get("annotations") or {}),
        )

    async def container(self, pod: Pod, container: Container, instance: ContainerInstance) -> ContainerConfig:
        env = await self._environment(pod, container, instance.context)
        command, args = command_and_args(container, env)
        security = _Security(pod, container, self.default_uid)
        try:
            mounts = self.volumes.mounts(pod, container)
            hosts = self.volumes.hosts_file(pod, container, instance.context.pod_ips)
        except VolumeError as error:
            raise ContainerConfigError(str(error)) from error
        return ContainerConfig(
            name=container["name"],
            image=container.get("image") or "",
            attempt=instance.attempt,
            command=tuple(command),
            args=tuple(args),
            env=tuple(env.items()),
            working_dir=container.get("workingDir") or "",
            log_path=log_path(container["name"], instance.attempt),
            tty=bool(container.get("tty")),
            stdin=bool(container.get("stdin")),
            stdin_once=bool(container.get("stdinOnce")),
            user=security.user(),
            allow_privilege_escalation=security.allows_escalation,
            mounts=mounts if hosts is None else (*mounts, hosts),
            resources=resources_of(container),
            stop_signal=(container.get("lifecycle") or {}).get("stopSignal") or "SIGTERM",
            termination_message_path=container.get("terminationMessagePath") or "/dev/termination-log",
            labels=labels_of(pod, container),
            annotations=annotations_of(
                pod, container, spec_hash=spec_hash(container), restart_count=instance.attempt
            ),
        )

    async def _environment(self, pod: Pod, container: Container, context: DownwardContext) -> dict[str, str]:
        namespace = pod["metadata"].get("namespace") or ""
        config_maps: dict[str, Object | None] = {}
        secrets: dict[str, Object | None] = {}
        try:
            for kind, name in _references(container):
                if kind == "configMap":
                    config_maps[name] = await self.objects.config_map(namespace, name)
                else:
                    secrets[name] = await self.objects.secret(namespace, name)
            services = await self.objects.service_environment(pod)
        except PodlifeError as error:
            raise ContainerConfigError(str(error)) from error
        return environment(
            pod, container, EnvironmentSources(config_maps.get, secrets.get, services, context)
        )


def _references(container: Container) -> Iterator[tuple[str, str]]:
    """Config maps and secrets referenced by the environment: kinds and names."""
    for source in container.get("envFrom") or ():
        yield from _reference(source, "Ref")
    for variable in container.get("env") or ():
        yield from _reference(variable.get("valueFrom") or {}, "KeyRef")


def _reference(source: Mapping[str, Any], suffix: str) -> Iterator[tuple[str, str]]:
    for kind in ("configMap", "secret"):
        if (ref := source.get(f"{kind}{suffix}")) is not None:
            yield kind, ref.get("name") or ""


class _Security:
    """The container's security context takes precedence over the pod's."""

    def __init__(self, pod: Pod, container: Container, default_uid: int | None) -> None:
        self._pod = pod
        self._container = container
        self._pod_level: Mapping[str, Any] = pod["spec"].get("securityContext") or {}
        self._own: Mapping[str, Any] = container.get("securityContext") or {}
        self._default_uid = default_uid

    @property
    def allows_escalation(self) -> bool:
        return self._own.get("allowPrivilegeEscalation") is not False

    def user(self) -> User | None:
        uid, gid = self._value("runAsUser"), self._value("runAsGroup")
        self._check_non_root(uid)
        groups = [*(self._pod_level.get("supplementalGroups") or ())]
        if (fs_group := self._pod_level.get("fsGroup")) is not None:
            groups.append(fs_group)
        if uid is None and gid is None and not groups:
            return None
        if uid is None:
            uid = self._default_uid
        return None if uid is None else User(uid, gid, tuple(dict.fromkeys(groups)))

    def _value(self, key: str) -> Any:
        own = self._own.get(key)
        return self._pod_level.get(key) if own is None else own

    def _check_non_root(self, uid: int | None) -> None:
        if not self._value("runAsNonRoot"):
            return
        where = f'(pod: "{long_name(self._pod)}", container: {self._container["name"]})'
        if uid == 0:
            raise ContainerConfigError(f"container's runAsUser breaks non-root policy {where}")
        if uid is None and self._default_uid == 0:
            raise ContainerConfigError(f"container has runAsNonRoot and image will run as root {where}")

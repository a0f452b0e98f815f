"""The mounts of a container: volumes of its pod and their subPaths; and which volumes a pod's containers use."""

from __future__ import annotations

import logging
import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podlife.kubelet.envvars import ContainerConfigError, expand
from podlife.kubelet.pod_fields import Container, Pod
from podlife.kubelet.runtime import Mount
from podlife.kubelet.volumemanager.layout import Layout, SetUpError
from podlife.kubelet.volumemanager.subpath import mount_sub_path, opened_beneath

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MountSource:
    """A volume that is set up: its path on the node, and whether it is read-only."""

    path: str
    readonly: bool


def all_containers(pod: Pod) -> Iterator[Container]:
    for field in ("initContainers", "containers", "ephemeralContainers"):
        yield from (pod.get("spec") or {}).get(field) or ()


def used_volumes(pod: Pod) -> frozenset[str]:
    """Names of volumes that a container uses; others are not set up."""
    return frozenset(
        each["name"]
        for container in all_containers(pod)
        for field in ("volumeMounts", "volumeDevices")
        for each in container.get(field) or ()
    )


def _container_path(path: str) -> str:
    return path if path.startswith("/") else f"/{path}"


def mounted_inside(pod: Pod, volume: str) -> list[str]:
    """Relative paths in a volume at which a container mounts another volume. A volume that containers cannot write to
    must contain these folders. Mounts nested inside such a mount are ignored."""
    inside: set[str] = set()
    for container in all_containers(pod):
        paths = {
            posixpath.normpath(_container_path(each["mountPath"])): each["name"]
            for each in container.get("volumeMounts") or ()
        }
        for top in (path for path, name in paths.items() if name == volume):
            below = sorted(path for path in paths if path.startswith(f"{top}/"))
            inside |= {
                path.removeprefix(f"{top}/")
                for path in below
                if not any(path.startswith(f"{other}/") for other in below)
            }
    return sorted(inside)


def has_expressions(container: Container) -> bool:
    return any(each.get("subPathExpr") for each in container.get("volumeMounts") or ())


def container_mounts(
    layout: Layout, uid: str, container: Container, sources: Mapping[str, MountSource], env: Mapping[str, str]
) -> Iterator[Mount]:
    """`env` is the container's environment, for subPathExpr. Raises `ContainerConfigError`."""
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        name = mount["name"]
        if (volume := sources.get(name)) is None:
            raise ContainerConfigError(
                f'cannot find volume "{name}" to mount into container "{container["name"]}"'
            )
        _check_recursive_read_only(mount)
        path = volume.path
        if sub_path := _sub_path(mount, env):
            path = _mount_sub_path(layout, uid, container, mount, volume, sub_path, index)
        yield Mount(
            container_path=_container_path(mount["mountPath"]),
            host_path=path,
            readonly=bool(mount.get("readOnly")) or volume.readonly,
        )


def _sub_path(mount: Mapping[str, Any], env: Mapping[str, str]) -> str:
    path = str(mount.get("subPath") or "")
    if expression := mount.get("subPathExpr"):
        values = _RecordingEnv(env)
        path = expand(str(expression), values)
        if values.missing:
            raise ContainerConfigError(f"missing value for {', '.join(sorted(values.missing))}")
    if path.startswith("/"):
        raise ContainerConfigError(f"error SubPath `{path}` must not be an absolute path")
    if ".." in path.split("/"):
        raise ContainerConfigError(f"unable to provision SubPath `{path}`: must not contain '..'")
    return path


class _RecordingEnv(dict[str, str]):
    """An environment that records undefined variables."""

    def __init__(self, env: Mapping[str, str]) -> None:
        super().__init__(env)
        self.missing: set[str] = set()

    def __contains__(self, name: object) -> bool:
        return True

    def __getitem__(self, name: str) -> str:
        value = self.get(name, "")
        if not value:
            self.missing.add(name)
        return value


def _mount_sub_path(
    layout: Layout,
    uid: str,
    container: Container,
    mount: Mapping[str, Any],
    volume: MountSource,
    sub_path: str,
    index: int,
) -> str:
    name = mount["name"]
    try:
        target = layout.sub_path(uid, name, container["name"], index)
        with opened_beneath(Path(volume.path), sub_path) as found:
            layout.make_parents(target)
            return str(mount_sub_path(found, target))
    except (OSError, ValueError, SetUpError) as error:
        # The reason could reveal files of the node to a user, so it is only logged.
        log.warning("subPath %r of volume %r of pod %s: %s", sub_path, name, uid, error)
        raise ContainerConfigError(
            f'failed to prepare subPath for volumeMount "{name}" of container "{container["name"]}"'
        ) from None


def _check_recursive_read_only(mount: Mapping[str, Any]) -> None:
    mode, name = mount.get("recursiveReadOnly"), mount["name"]
    if mode in (None, "Disabled"):
        return
    why = ""
    if not mount.get("readOnly"):
        why = "it is not read-only"
    elif mode == "Enabled":
        why = "it is not supported by the runtime"
    if why:
        raise ContainerConfigError(
            "failed to resolve recursive read-only mode: "
            f'volume "{name}" requested recursive read-only mode, but {why}'
        )

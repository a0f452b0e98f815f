"""Which containers mount what, and what they mount inside of it. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from podlife.kubelet.pod_fields import Container, Pod


def all_containers(pod: Pod) -> Iterator[Container]:
    for field in ("initContainers", "containers", "ephemeralContainers"):
        yield from (pod.get("spec") or {}).get(field) or ()


def used_volumes(pod: Pod) -> frozenset[str]:
    """Names of those that some container asks for: others are not set up at all."""
    return frozenset(
        each["name"]
        for container in all_containers(pod)
        for field in ("volumeMounts", "volumeDevices")
        for each in container.get(field) or ()
    )


def container_path(path: str) -> str:
    return path if path.startswith("/") else f"/{path}"


def mounted_inside(pod: Pod, volume: str) -> list[str]:
    """Relative paths in a volume at which a container mounts another one. A volume that containers cannot write to
    must have these folders. What is mounted inside of such a one is not its concern."""
    inside: set[str] = set()
    for container in all_containers(pod):
        paths = {
            posixpath.normpath(container_path(each["mountPath"])): each["name"]
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

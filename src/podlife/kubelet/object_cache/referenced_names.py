"""The names of config maps and secrets that a pod refers to, in any of its fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from podlife.kubelet.pod_fields import Pod

_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")


def named_config_maps(pod: Pod) -> frozenset[str]:
    names = (each.get("name") for each in _sources(pod, "configMap", "configMapRef", "configMapKeyRef"))
    return frozenset(name for name in names if name)


def named_secrets(pod: Pod) -> frozenset[str]:
    """Also those with which images are pulled."""
    sources = [*_sources(pod, "secret", "secretRef", "secretKeyRef"), *_spec(pod, "imagePullSecrets")]
    # A volume says secretName, everything else says name.
    names = (each.get("secretName") or each.get("name") for each in sources)
    return frozenset(name for name in names if name)


def _spec(pod: Pod, field: str) -> list[Mapping[str, Any]]:
    return (pod.get("spec") or {}).get(field) or []


def _sources(pod: Pod, volume: str, from_all: str, from_key: str) -> Iterator[Mapping[str, Any]]:
    for field in _CONTAINERS:
        for container in _spec(pod, field):
            for each in container.get("envFrom") or ():
                yield each.get(from_all) or {}
            for each in container.get("env") or ():
                yield (each.get("valueFrom") or {}).get(from_key) or {}
    for each in _spec(pod, "volumes"):
        yield each.get(volume) or {}
        for source in (each.get("projected") or {}).get("sources") or ():
            yield source.get(volume) or {}

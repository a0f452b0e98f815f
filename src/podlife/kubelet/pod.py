"""A pod in the kubelet: a plain API object, with the few fields that the workers read as attributes.

Immutable: each state of a pod is another `NodePod`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sized
from typing import Any

import msgspec


class _Metadata(msgspec.Struct, frozen=True):
    name: str
    namespace: str
    uid: str
    annotations: Mapping[str, str]
    deletion_timestamp: str | None
    deletion_grace_period_seconds: int | None


class _Spec(msgspec.Struct, frozen=True):
    termination_grace_period_seconds: int | None
    containers: Sized


class _Status(msgspec.Struct, frozen=True):
    phase: str


class NodePod(dict[str, Any]):
    """Shares everything below its first level with `obj`. Raises KeyError if that has no name or UID."""

    __slots__ = ("metadata", "spec", "status")

    metadata: _Metadata
    spec: _Spec
    status: _Status

    def __init__(self, obj: Mapping[str, Any]) -> None:
        super().__init__(obj)
        metadata, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
        self.metadata = _Metadata(
            metadata["name"],
            metadata.get("namespace") or "",
            metadata["uid"],
            metadata.get("annotations") or {},
            metadata.get("deletionTimestamp"),
            metadata.get("deletionGracePeriodSeconds"),
        )
        self.spec = _Spec(spec.get("terminationGracePeriodSeconds"), spec.get("containers") or ())
        self.status = _Status(status.get("phase") or "")

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def key(self) -> tuple[str, str]:
        return self.metadata.namespace, self.metadata.name


class RunningPod(msgspec.Struct, frozen=True):
    """A pod known only from the runtime."""

    uid: str
    namespace: str = ""
    name: str = ""

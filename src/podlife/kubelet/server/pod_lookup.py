"""What the node's endpoint asks of the agent it belongs to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from podlife.kubelet.pod_fields import Pod

__all__ = ["ServedPods"]


class ServedPods(Protocol):
    """The pods of the node as the agent knows them, each with the newest status that it has."""

    def find_pod(self, namespace: str, name: str) -> Pod | None: ...

    def pods(self) -> Iterable[Pod]: ...

"""Why containers could not be started, by pod and container; shown in their waiting states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StartFailure:
    """Reason and message of a container's waiting state."""

    reason: str
    message: str = ""


class ReasonCache:
    """Keeps the reason of the last failed start until the container starts or its pod is forgotten."""

    def __init__(self) -> None:
        self._failures: dict[str, dict[str, StartFailure]] = {}

    def __len__(self) -> int:
        return len(self._failures)

    def get(self, uid: str) -> Mapping[str, StartFailure]:
        """By container name."""
        return self._failures.get(uid, {})

    def add(self, uid: str, container_name: str, failure: StartFailure) -> None:
        self._failures.setdefault(uid, {})[container_name] = failure

    def remove(self, uid: str, container_name: str) -> None:
        failures = self._failures.get(uid)
        if failures is not None:
            failures.pop(container_name, None)
            if not failures:
                del self._failures[uid]

    def forget(self, uid: str) -> None:
        self._failures.pop(uid, None)

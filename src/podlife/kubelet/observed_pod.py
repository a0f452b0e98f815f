"""A pod's sandboxes and containers in the runtime, the newest first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from podlife.kubelet.runtime import ContainerState, ContainerStatus, SandboxState, SandboxStatus


@dataclass(frozen=True)
class ObservedPod:
    """Create it with `of`, which sorts."""

    sandboxes: tuple[SandboxStatus, ...] = ()
    containers: tuple[ContainerStatus, ...] = ()

    @classmethod
    def of(cls, sandboxes: Iterable[SandboxStatus], containers: Iterable[ContainerStatus]) -> ObservedPod:
        return cls(
            tuple(sorted(sandboxes, key=lambda each: (each.created_at, each.config.attempt), reverse=True)),
            tuple(sorted(containers, key=lambda each: (each.created_at, each.config.attempt), reverse=True)),
        )

    @cached_property
    def newest(self) -> dict[str, ContainerStatus]:
        return {each.config.name: each for each in reversed(self.containers)}

    def instances(self, name: str) -> list[ContainerStatus]:
        return [each for each in self.containers if each.config.name == name]

    def last_exited(self, name: str) -> ContainerStatus | None:
        return next((each for each in self.instances(name) if each.state is ContainerState.EXITED), None)

    @property
    def ready_sandboxes(self) -> list[SandboxStatus]:
        return [each for each in self.sandboxes if each.state is SandboxState.READY]

    @property
    def ips(self) -> tuple[str, ...]:
        """The addresses of its ready sandbox."""
        return next((each.ips for each in self.ready_sandboxes if each.ips), ())

    @property
    def is_stopped(self) -> bool:
        """No container or sandbox of the pod runs, or the runtime has none (PW-13)."""
        return not any(each.is_running for each in self.containers) and not any(
            each.is_ready for each in self.sandboxes
        )

    def is_in_newest_sandbox(self, container: ContainerStatus) -> bool:
        return bool(self.sandboxes) and container.sandbox_id == self.sandboxes[0].id

"""What the controller keeps of pods, services and volume claims: the fields by which their usage changes."""

from __future__ import annotations

from typing import Any

import msgspec

from podlife.api.views import Metadata


class _Port(msgspec.Struct, rename="camel", frozen=True, gc=False):
    node_port: int = 0


class _Resources(msgspec.Struct, frozen=True, gc=False):
    resources: dict[str, Any] | None = None


class _Spec(msgspec.Struct, rename="camel", frozen=True, gc=False):
    active_deadline_seconds: int | None = None
    resources: dict[str, Any] | None = None
    containers: tuple[_Resources, ...] = ()
    type: str = ""
    ports: tuple[_Port, ...] = ()
    volume_attributes_class_name: str | None = None


class _Status(msgspec.Struct, rename="camel", frozen=True, gc=False):
    phase: str = ""
    container_statuses: tuple[_Resources, ...] | None = ()
    init_container_statuses: tuple[_Resources, ...] | None = ()
    allocated_resources: dict[str, Any] | None = None
    current_volume_attributes_class_name: str | None = None
    modify_volume_status: dict[str, Any] | None = None


class Consumer(msgspec.Struct, gc=False):
    """A pod, a service or a volume claim."""

    metadata: Metadata
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def uses(self) -> object:
        """Whatever its usage and scopes depend on, but for time."""
        is_ended = self.status.phase in ("Failed", "Succeeded")
        return self.spec, is_ended, msgspec.structs.replace(self.status, phase="")

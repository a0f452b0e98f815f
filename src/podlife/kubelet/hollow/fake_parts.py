"""Fakes for the parts that a hollow node does not need: probes succeed, hooks only sleep, objects are empty."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from podlife.api.codec import Object
from podlife.kubelet.pod_fields import Container, Pod
from podlife.kubelet.prober.state import ProbeResult, ProbeType


class NoProbes:
    def result(self, type_: ProbeType, container_id: str) -> ProbeResult | None:
        return None

    def _ignored(self, *_: Any, **__: Any) -> None:
        """No container is probed."""

    set_result = add = status_changed = stop_for_termination = remove = keep_only = _ignored


class HollowProbes(NoProbes):
    """Every probe of a running container succeeds."""

    def result(self, type_: ProbeType, container_id: str) -> ProbeResult | None:
        return ProbeResult.SUCCESS


class HollowHooks:
    """Runs sleep handlers; all others succeed at once."""

    async def run(
        self, pod: Pod, container: Container, container_id: str, handler: Mapping[str, Any], *, pod_ip: str
    ) -> None:
        await asyncio.sleep(float((handler.get("sleep") or {}).get("seconds") or 0))


class NoObjects:
    """Every config map and secret exists, with an empty value for every key."""

    async def config_map(self, namespace: str, name: str) -> Object | None:
        return {"data": _Anything()}

    secret = config_map

    async def token(self, pod: Pod, *, audience: str, expiration_seconds: int) -> str:
        return ""

    async def service_environment(self, pod: Pod) -> Mapping[str, str]:
        return {}

    def _ignored(self, _: object) -> None:
        """Nothing is cached."""

    register = unregister = _ignored


class _Anything(dict[str, str]):
    """Has every key, but iterates over none."""

    def __bool__(self) -> bool:
        return True

    def __contains__(self, key: object) -> bool:
        return True

    def __missing__(self, key: str) -> str:
        return ""

    def get(self, key: str, default: Any = None) -> str:
        return ""


class NoMirrors:
    """A hollow node has no static pods."""

    async def ensure(self, pod: Pod, mirror: Pod | None) -> Object | None:
        return None

    async def delete(self, full_name: str, uid: str) -> bool:
        return False


class NoEvents:
    def event(self, regarding: Mapping[str, Any], type_: str, reason: str, message: str) -> None:
        """Events are dropped: those of thousands of pods would flood the API server."""

"""Fakes for what a hollow node does not need: no volumes are read, probes succeed, hooks do nothing but sleep."""

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
        """Nobody is probed."""

    set_result = add = status_changed = stop_for_termination = remove = keep_only = _ignored


class HollowProbes(NoProbes):
    """A container that runs is well."""

    def result(self, type_: ProbeType, container_id: str) -> ProbeResult | None:
        return ProbeResult.SUCCESS


class HollowHooks:
    """Only a handler that sleeps takes time."""

    async def run(
        self, pod: Pod, container: Container, container_id: str, handler: Mapping[str, Any], *, pod_ip: str
    ) -> None:
        await asyncio.sleep(float((handler.get("sleep") or {}).get("seconds") or 0))


class NoObjects:
    """Config maps and secrets are as empty as the containers that would read them."""

    async def config_map(self, namespace: str, name: str) -> Object | None:
        return {"data": _Anything()}

    secret = config_map

    async def token(self, pod: Pod, *, audience: str, expiration_seconds: int) -> str:
        return ""

    async def service_environment(self, pod: Pod) -> Mapping[str, str]:
        return {}

    def _ignored(self, _: object) -> None:
        """Nothing is asked for."""

    register = unregister = _ignored


class _Anything(dict[str, str]):
    """Has whatever key is asked for, and none to go through."""

    def __contains__(self, key: object) -> bool:
        return True

    def __missing__(self, key: str) -> str:
        return ""

    def get(self, key: str, default: Any = None) -> str:
        return ""


class NoMirrors:
    """A simulated node has no pods of its own."""

    async def ensure(self, pod: Pod, mirror: Pod | None) -> Object | None:
        return None

    async def delete(self, full_name: str, uid: str) -> bool:
        return False


class NoEvents:
    def event(self, regarding: Mapping[str, Any], type_: str, reason: str, message: str) -> None:
        """Thousands of pods would tell the API server more of themselves than it is asked to hold."""

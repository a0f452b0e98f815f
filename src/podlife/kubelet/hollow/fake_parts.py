"""Fakes for what a hollow node does not need: no volumes are read, probes succeed, hooks do nothing but sleep."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any

from podlife.api.codec import Object
from podlife.kubelet.pod_fields import Container, Pod
from podlife.kubelet.prober.state import ProbeResult, ProbeType


class NoProbes:
    def result(self, type_: ProbeType, container_id: str) -> ProbeResult | None:
        return None

    def set_result(self, type_: ProbeType, container_id: str, uid: str, result: ProbeResult) -> None:
        """Nobody asks for it."""

    def add(self, pod: Pod) -> None:
        """Nobody is probed."""

    def status_changed(self, uid: str) -> None:
        """Nobody is probed."""

    def stop_for_termination(self, pod: Pod) -> None:
        """Nobody is probed."""

    def remove(self, uid: str) -> None:
        """Nobody is probed."""

    def keep_only(self, uids: Collection[str]) -> None:
        """Nobody is probed."""


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

    async def secret(self, namespace: str, name: str) -> Object | None:
        return {"data": _Anything()}

    async def token(self, pod: Pod, *, audience: str, expiration_seconds: int) -> str:
        return ""

    async def service_environment(self, pod: Pod) -> Mapping[str, str]:
        return {}

    def register(self, pod: Pod) -> None:
        """Nothing is asked for."""

    def unregister(self, uid: str) -> None:
        """Nothing was asked for."""


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

"""Pods for simulated nodes: network probes and hooks are answered by the container's script.

A simulated container has no address, and under virtual time sockets are not waited for. HTTP, TCP and gRPC probes and
hooks become commands with the same words (`httpGet /healthz`), which `Behaviour.exec` answers; without an answer they
succeed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from podlife.api.codec import Object
from podlife.kubelet.config.pod_source import PodSource

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HOOKS = ("postStart", "preStop")
_OVER_NETWORK = {"httpGet": "path", "tcpSocket": "port", "grpc": "service"}


class OfflineSource(PodSource):
    """Wraps an agent's source of pods."""

    def __init__(self, source: PodSource) -> None:
        super().__init__(asyncio.Event())
        self._source = source

    @property
    def uids(self) -> frozenset[str]:
        return self._source.uids

    def put(self, pod: Mapping[str, Any]) -> None:
        self._source.put(_offline(pod))

    def remove(self, pod: Mapping[str, Any]) -> None:
        self._source.remove(_offline(pod))

    def remove_uid(self, uid: str) -> None:
        self._source.remove_uid(uid)

    def complete(self) -> None:
        self._source.complete()


def _offline(pod: Mapping[str, Any]) -> Object:
    spec = {
        **pod["spec"],
        **{
            kind: [_container(each) for each in pod["spec"][kind]]
            for kind in ("initContainers", "containers")
            if pod["spec"].get(kind)
        },
    }
    return {**pod, "spec": spec}


def _container(container: Object) -> Object:
    probes = {name: _by_command(container[name]) for name in _PROBES if container.get(name)}
    lifecycle = container.get("lifecycle")
    if lifecycle:
        hooks = {name: _by_command(lifecycle[name]) for name in _HOOKS if lifecycle.get(name)}
        return {**container, **probes, "lifecycle": {**lifecycle, **hooks}}
    return {**container, **probes}


def _by_command(handler: Mapping[str, Any]) -> Object:
    for kind, field in _OVER_NETWORK.items():
        if (action := handler.get(kind)) is not None:
            rest = {key: value for key, value in handler.items() if key != kind}
            return {**rest, "exec": {"command": [kind, str(action.get(field) or "")]}}
    return dict(handler)

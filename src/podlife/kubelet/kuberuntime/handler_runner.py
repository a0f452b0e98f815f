"""Runs one lifecycle handler, postStart or preStop, until it completes (KC-15 to KC-17).

An HTTP hook succeeds with any response, regardless of its status code. A hook has no time limit of its own; its output
is truncated to ten kilobytes. `tcpSocket` exists in the API but is not supported for hooks, as upstream.

The caller decides when a hook runs, cancels it after a timeout, and emits the event.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from podlife.kubelet.interfaces import HookError
from podlife.kubelet.object_reference import pod_reference
from podlife.kubelet.pod_events import EventRecorder
from podlife.kubelet.pod_fields import Container, Pod, long_name
from podlife.kubelet.probe import (
    HttpRequest,
    NoResponseError,
    PlainResponseError,
    ProbeError,
    http_get,
    http_request,
)
from podlife.kubelet.runtime import ContainerRuntimeError, Runtime

_FALLBACK = "LifecycleHTTPFallback"
_MAX_OUTPUT_BYTES = 10 * 1024


@dataclass(eq=False)
class HandlerRunner:
    runtime: Runtime
    recorder: EventRecorder

    async def run(
        self, pod: Pod, container: Container, container_id: str, handler: Mapping[str, Any], *, pod_ip: str
    ) -> None:
        """Raises `HookError`."""
        where = f'for Container "{container["name"]}" in Pod "{long_name(pod)}" failed - error:'
        if (action := handler.get("exec")) is not None:
            command = action.get("command") or []
            if failure := await self._run(container_id, command):
                raise HookError(f"Exec lifecycle hook ([{' '.join(command)}]) {where} {failure}")
        elif (action := handler.get("httpGet")) is not None:
            try:
                await self._get(pod, http_request(action, container, pod_ip, purpose="lifecycle"))
            except (ProbeError, NoResponseError) as failure:
                path = action.get("path") or ""
                raise HookError(f"HTTP lifecycle hook ({path}) {where} {failure}") from None
        elif (action := handler.get("sleep")) is not None:
            await asyncio.sleep(action.get("seconds") or 0)
        else:
            types = ", ".join(sorted(handler)) or "nothing"
            raise HookError(
                f"Cannot run handler: invalid handler: unsupported type {types}; use exec, httpGet or sleep"
            )

    async def _run(self, container_id: str, command: Sequence[str]) -> str:
        """The error message; empty on success."""
        try:
            result = await self.runtime.exec_sync(container_id, command)
        except ContainerRuntimeError as error:
            return f'{error}, message: ""'
        if result.exit_code == 0:
            return ""
        output = (result.stdout + result.stderr)[:_MAX_OUTPUT_BYTES].decode("utf-8", "replace")
        return f"command '{' '.join(command)}' exited with {result.exit_code}, message: {output!r}"

    async def _get(self, pod: Pod, request: HttpRequest) -> None:
        try:
            await http_get(request, seconds=None, wants_body=False)
        except PlainResponseError as first:
            try:
                # Credentials meant for an encrypted connection are not sent over a plain one.
                plain = replace(request.without("authorization"), scheme="http")
                await http_get(plain, seconds=None, wants_body=False)
            except NoResponseError:
                raise first from None
            message = f"request to HTTPS lifecycle hook {request.address} got HTTP response, retry with HTTP succeeded"
            self.recorder.event(pod_reference(pod), "Warning", _FALLBACK, message)

"""CRI client over the daemon's socket: every call has a deadline, every failure becomes a `ContainerRuntimeError`.

The client connects on the first call and reconnects when the daemon comes back. `grpc` is imported when a client is
opened, so that only users of containerd need it.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podlife.errors import ConfigError
from podlife.kubelet.runtime import (
    ConflictInRuntimeError,
    ContainerRuntimeError,
    NotFoundInRuntimeError,
    RuntimeUnavailableError,
)

from .messages import message

# The kubelet's default runtimeRequestTimeout.
CALL_SECONDS = 120.0
# containerd's own limit.
_MESSAGE_BYTES = 16 * 1024 * 1024
_IMAGE_METHODS = frozenset({"ImageStatus", "PullImage"})
# The daemon's error while it loads its state after a start; it has no status code of its own.
_NOT_YET = "server is not initialized yet"
_NAME_TAKEN = "is reserved for"
# The namespace of CRI objects, which containerd's own API needs.
_NAMESPACE = (("containerd-namespace", "k8s.io"),)


@dataclass(frozen=True, slots=True)
class ContainerdSettings:
    """`root` holds the termination message files, and identifies the owner of a pod, so that several kubelets can share
    one daemon. `cgroup_parent` has the format of the daemon's cgroup driver."""

    root: Path
    socket: Path = Path("/run/containerd/containerd.sock")
    cgroup_parent: str = ""
    runtime_handler: str = ""
    # Relist periods, without and with an event stream.
    relist_seconds: float = 1.0
    relist_when_told_seconds: float = 10.0

    @property
    def termination_folder(self) -> Path:
        return self.root / "termination"


class NotOfferedError(ContainerRuntimeError):
    """The daemon does not implement this call."""


_LIBRARIES = {"grpc": "grpcio", "google.protobuf": "protobuf"}


class CriClient:
    """One connection to a daemon, opened and closed by the runtime."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._channel: Any = None

    def open(self) -> None:
        """Raises ConfigError if grpc is not installed."""
        missing = [package for module, package in _LIBRARIES.items() if not _has(module)]
        if missing:
            raise ConfigError(
                f"the containerd runtime needs {' and '.join(missing)}, not installed here: install podlife[containerd]"
            )
        import grpc.aio

        options = [
            # The daemon rejects a socket path as the host name.
            ("grpc.default_authority", "localhost"),
            ("grpc.max_receive_message_length", _MESSAGE_BYTES),
            ("grpc.max_send_message_length", _MESSAGE_BYTES),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.min_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 1000),
            # Proxy variables of the environment do not apply to a local socket.
            ("grpc.enable_http_proxy", 0),
        ]
        self._channel = grpc.aio.insecure_channel(f"unix://{self._socket.absolute()}", options=options)

    async def close(self) -> None:
        if self._channel is not None:
            await self._channel.close()
            self._channel = None

    async def call(self, method: str, /, *, seconds: float = CALL_SECONDS, **fields: Any) -> Any:
        """Returns the response. Raises a `ContainerRuntimeError`; RuntimeUnavailableError after `seconds`."""
        service = "ImageService" if method in _IMAGE_METHODS else "RuntimeService"
        return await self._invoke(f"runtime.v1.{service}", method, seconds, **fields)

    async def processes(self, container_id: str) -> list[tuple[int, bool]]:
        """The PIDs of a container's processes on the node, and whether each is an exec command.
        Raises NotOfferedError if the daemon is not containerd."""
        response = await self._invoke(
            "containerd.services.tasks.v1.Tasks", "ListPids", CALL_SECONDS, container_id=container_id
        )
        # containerd sets `info`, the exec ID, for exec commands only.
        return [(process.pid, bool(process.info.value)) for process in response.processes]

    async def _invoke(self, service: str, method: str, seconds: float, **fields: Any) -> Any:
        import grpc

        invoke = self._channel.unary_unary(
            f"/{service}/{method}",
            request_serializer=_to_bytes,
            response_deserializer=message(f"{method}Response").FromString,
        )
        try:
            return await invoke(message(f"{method}Request")(**fields), timeout=seconds, metadata=_NAMESPACE)
        except grpc.aio.AioRpcError as error:
            raise self._failure(method, error, seconds) from None

    async def container_events(self) -> AsyncGenerator[str, None]:
        """IDs of changed containers and sandboxes, from CRI. Raises NotOfferedError if the daemon is too old."""
        async with aclosing(
            self._stream(
                "runtime.v1.RuntimeService/GetContainerEvents",
                message("GetEventsRequest")(),
                "ContainerEventResponse",
            )
        ) as events:
            async for event in events:
                yield event.container_id

    async def task_exits(self) -> AsyncGenerator[str, None]:
        """IDs of containers and sandboxes whose process exited, from containerd's own API."""
        request = message("SubscribeRequest")(filters=['namespace==k8s.io,topic=="/tasks/exit"'])
        async with aclosing(
            self._stream("containerd.services.events.v1.Events/Subscribe", request, "Envelope")
        ) as envelopes:
            async for envelope in envelopes:
                ended = message("TaskExit").FromString(envelope.event.value)
                # Exec commands send exit events, too.
                if ended.id == ended.container_id:
                    yield ended.container_id

    async def _stream(self, method: str, request: Any, response: str) -> AsyncGenerator[Any, None]:
        import grpc

        subscribe = self._channel.unary_stream(
            f"/{method}", request_serializer=_to_bytes, response_deserializer=message(response).FromString
        )
        stream = subscribe(request)
        try:
            async for event in stream:
                yield event
        except grpc.aio.AioRpcError as error:
            raise self._failure(method, error, 0) from None
        finally:
            stream.cancel()

    def _failure(self, method: str, error: Any, seconds: float) -> ContainerRuntimeError:
        import grpc

        code, text = error.code(), " ".join((error.details() or "no details").split())
        if code is grpc.StatusCode.DEADLINE_EXCEEDED:
            return RuntimeUnavailableError(f"containerd did not answer {method} within {seconds:g} s")
        if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED) or _NOT_YET in text:
            if not self._socket.exists():
                text = "socket does not exist; start containerd, or set --containerd-socket"
            return RuntimeUnavailableError(f"containerd does not answer at {self._socket}: {text}")
        if code is grpc.StatusCode.UNIMPLEMENTED:
            return NotOfferedError(
                f"the daemon at {self._socket} does not offer {method} ({text}): "
                "enable its plugin cri, which some installations disable, or upgrade it"
            )
        if code is grpc.StatusCode.NOT_FOUND:
            return NotFoundInRuntimeError(text)
        if code is grpc.StatusCode.ALREADY_EXISTS or _NAME_TAKEN in text:
            return ConflictInRuntimeError(text)
        return ContainerRuntimeError(text)


def _to_bytes(request: Any) -> bytes:
    return bytes(request.SerializeToString())


def _has(module: str) -> bool:
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True

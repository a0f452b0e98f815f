"""`/containerLogs/{namespace}/{pod}/{container}`: a container's log as plain text, once or followed.

Invalid options are rejected with upstream's messages.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

from aiohttp import web

from podlife.aio import cancel_and_wait, spawn
from podlife.api.integers import parse_int64
from podlife.kubelet.pod_fields import bare_id
from podlife.kubelet.runtime import (
    ContainerState,
    ContainerStatus,
    EventKind,
    NotFoundInRuntimeError,
    Runtime,
    RuntimeUnavailableError,
)
from podlife.kubelet.server.containers import container_to_log, pod_to_log
from podlife.kubelet.server.request import HttpError, KubeletRequest, ServedNode
from podlife.wire import Query

from .cri_format import LogOptions, nanoseconds_of
from .reader import Growth, Write, follow_log, read_log

log = logging.getLogger(__name__)

_STREAMS = ("All", "Stdout", "Stderr")


async def serve_logs(node: ServedNode, request: KubeletRequest) -> web.StreamResponse:
    namespace, name, container = request.parts
    options = log_options(request.query, node.clock.now())
    pod = pod_to_log(node.pods, namespace, name, container)
    container_id = container_to_log(pod, container, previous=options.previous)
    status = await _status(node.runtime, container_id)
    response = web.StreamResponse(headers={"Content-Type": "text/plain"})
    response.enable_chunked_encoding()
    # Before the first line, so that the caller of a silent container gets a response.
    await response.prepare(request.http)

    async def write(text: bytes) -> None:
        async with asyncio.timeout(node.stream_idle_seconds):
            await response.write(text)

    await _send(node.runtime, status, options, write)
    await response.write_eof()
    return response


async def _status(runtime: Runtime, container_id: str) -> ContainerStatus:
    try:
        return await runtime.container_status(bare_id(container_id))
    except NotFoundInRuntimeError:
        raise HttpError(404, f"unable to retrieve container logs for {container_id}") from None


async def _send(runtime: Runtime, status: ContainerStatus, options: LogOptions, write: Write) -> None:
    path = status.log_path
    if path is None or not path.parent.is_dir():
        # Nothing was logged, or the logs were garbage-collected.
        return
    if not options.follow:
        await read_log(path, options, write)
        return
    changed = asyncio.Event()
    async with _watching(runtime, status.id, changed):
        await follow_log(path, options, write, Growth(lambda: _is_running(runtime, status.id), changed))


async def _is_running(runtime: Runtime, container_id: str) -> bool:
    try:
        status = await runtime.container_status(container_id)
    except NotFoundInRuntimeError:
        return False
    except RuntimeUnavailableError:
        # The container may still run while its runtime is down.
        return True
    return status.state in (ContainerState.RUNNING, ContainerState.CREATED)


@asynccontextmanager
async def _watching(runtime: Runtime, container_id: str, changed: asyncio.Event) -> AsyncIterator[None]:
    """Set `changed` on every runtime event of this container."""
    listening = asyncio.Event()

    async def listen() -> None:
        async with runtime.events() as events:
            listening.set()
            async for event in events:
                if event.kind is EventKind.RELIST or event.container_id == container_id:
                    changed.set()

    def failed(error: BaseException) -> None:
        # `follow_log` also polls.
        log.warning("status of container %s unavailable: %s", container_id, error)
        listening.set()

    task = spawn(listen(), name=f"follow the log of {container_id}", on_failure=failed)
    try:
        await listening.wait()
        yield
    finally:
        await cancel_and_wait(task)


def log_options(query: Query, now: datetime) -> LogOptions:
    flags = {
        name: name in query and query.get(name).lower() not in ("false", "0")
        for name in ("follow", "previous", "timestamps")
    }
    tail = query.get("tail")
    lines = None if tail == "all" else _number(tail or query.get("tailLines"))
    limit, seconds = _number(query.get("limitBytes")), _number(query.get("sinceSeconds"))
    stream = query.get("stream") or "All"
    since = _since(query.get("sinceTime"), seconds, now)
    # Minimum of each number.
    numbers = ((lines, 0), (limit, 1), (seconds, 1))
    if any(number is not None and number < minimum for number, minimum in numbers) or stream not in _STREAMS:
        raise _invalid()
    return LogOptions(**flags, tail_lines=lines, limit_bytes=limit, since_nanoseconds=since, stream=stream)


def _since(time: str, seconds: int | None, now: datetime) -> int | None:
    if time:
        nanoseconds = nanoseconds_of(time)
        if nanoseconds is None:
            raise _unreadable()
        if seconds is not None:
            raise _invalid()
        return nanoseconds
    if seconds is None:
        return None
    return (int(now.timestamp()) - seconds) * 1_000_000_000 + now.microsecond * 1000


def _number(text: str) -> int | None:
    if not text:
        return None
    try:
        return parse_int64(text)
    except ValueError:
        raise _unreadable() from None


def _unreadable() -> HttpError:
    return HttpError(400, '{"message": "Unable to decode query."}')


def _invalid() -> HttpError:
    return HttpError(422, '{"message": "Invalid request."}')

"""`/containerLogs/{namespace}/{pod}/{container}`: a container's log as plain text, once or as it grows."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from podlife.aio import cancel_and_wait, spawn
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
from podlife.kubelet.server.logs.options import log_options
from podlife.kubelet.server.request import HttpError, KubeletRequest
from podlife.kubelet.server.served_node import ServedNode

from .cri_format import LogOptions
from .reader import (
    Growth,
    Write,
    follow_log,
    read_log,
)

log = logging.getLogger(__name__)


async def serve_logs(node: ServedNode, asked: KubeletRequest) -> web.StreamResponse:
    namespace, name, container = asked.parts
    options = log_options(asked.query, node.clock.now())
    pod = pod_to_log(node.pods, namespace, name, container)
    container_id = container_to_log(pod, container, previous=options.previous)
    status = await _status(node.runtime, container_id)
    response = web.StreamResponse(headers={"Content-Type": "text/plain"})
    response.enable_chunked_encoding()
    # Before the first line: whoever follows a container that is silent learns that it is followed.
    await response.prepare(asked.request)

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
        # Nothing is logged, or the logs were collected: an empty log is all there is.
        return
    if not options.follow:
        await read_log(path, options, write)
        return
    changed = asyncio.Event()
    async with _told_of_end(runtime, status.id, changed):
        await follow_log(path, options, write, Growth(lambda: _is_running(runtime, status.id), changed))


async def _is_running(runtime: Runtime, container_id: str) -> bool:
    try:
        status = await runtime.container_status(container_id)
    except NotFoundInRuntimeError:
        return False
    except RuntimeUnavailableError:
        # It may go on running without the one who could tell.
        return True
    return status.state in (ContainerState.RUNNING, ContainerState.CREATED)


@asynccontextmanager
async def _told_of_end(runtime: Runtime, container_id: str, changed: asyncio.Event) -> AsyncIterator[None]:
    """Set `changed` whenever the runtime tells of this container."""
    listening = asyncio.Event()

    async def listen() -> None:
        async with runtime.events() as events:
            listening.set()
            async for event in events:
                if event.kind is EventKind.RELIST or event.container_id == container_id:
                    changed.set()

    def failed(error: BaseException) -> None:
        # Whoever follows looks again by itself from time to time.
        log.warning("status of container %s unavailable: %s", container_id, error)
        listening.set()

    task = spawn(listen(), name=f"follow the log of {container_id}", on_failure=failed)
    try:
        await listening.wait()
        yield
    finally:
        await cancel_and_wait(task)

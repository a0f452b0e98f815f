"""The control socket of a local cluster: orders from other processes of the same user, one line of JSON each way.

The state directory is private to its owner, so a process that can reach the socket may give orders.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from podlife.errors import ConfigError, PodlifeError
from podlife.localcluster.cluster import LocalCluster
from podlife.localcluster.state_dir import StateDir

_ANSWER_SECONDS = 30.0
_MOST_BYTES = 1024 * 1024


async def serve_orders(state_dir: StateDir, cluster: LocalCluster) -> None:
    """Run until cancelled."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, TimeoutError, ValueError):
            async with asyncio.timeout(_ANSWER_SECONDS):
                answer = await _answer(cluster, json.loads(await reader.readline()))
                writer.write(json.dumps(answer).encode() + b"\n")
                await writer.drain()
        writer.close()

    state_dir.socket.unlink(missing_ok=True)
    with _short(state_dir.socket) as path:
        server = await asyncio.start_unix_server(serve, path)
    state_dir.socket.chmod(0o600)
    try:
        async with server:
            await server.serve_forever()
    finally:
        state_dir.socket.unlink(missing_ok=True)


async def _answer(cluster: LocalCluster, order: dict[str, Any]) -> dict[str, Any]:
    try:
        match order.get("do"):
            case "status":
                return {"parts": describe_components(cluster), "page": cluster.page}
            case "stop":
                is_new = not cluster.is_stopped(order["node"])
                await cluster.stop_node(order["node"])
                return {"is_new": is_new}
            case "start":
                is_new = cluster.is_stopped(order["node"])
                cluster.start_node(order["node"])
                return {"is_new": is_new}
            case other:
                return {"error": f"unknown request {other!r}"}
    except PodlifeError as error:
        return {"error": str(error)}


def describe_components(cluster: LocalCluster) -> list[dict[str, Any]]:
    now = asyncio.get_running_loop().time()
    return [
        {
            "name": component.name,
            "state": component.state,
            "pid": component.pid,
            "restarts": component.restarts,
            "seconds": round(now - component.started_at, 1) if component.pid else 0,
            "log": str(component.log),
        }
        for component in cluster.components
    ]


def ask(state_dir: StateDir, order: dict[str, Any]) -> dict[str, Any]:
    """Raises ConfigError when no `podlife up` runs on the directory, PodlifeError when it refuses the order."""
    try:
        with socket.socket(socket.AF_UNIX) as line, _short(state_dir.socket) as path:
            line.settimeout(_ANSWER_SECONDS)
            line.connect(path)
            line.sendall(json.dumps(order).encode() + b"\n")
            with line.makefile("rb") as answers:
                answer: dict[str, Any] = json.loads(answers.readline(_MOST_BYTES) or b"{}")
    except (FileNotFoundError, ConnectionError):
        raise ConfigError(_why_nobody_answers(state_dir)) from None
    except OSError as error:
        raise ConfigError(f"`podlife up` on {state_dir.path} does not answer: {error}") from None
    if "error" in answer:
        raise PodlifeError(answer["error"])
    return answer


def _why_nobody_answers(state_dir: StateDir) -> str:
    holder = state_dir.holder()
    if holder is not None and holder.is_alive:
        # It answers from when its components run until they are stopped.
        return f"`podlife up` on {state_dir.path}, process {holder.pid}, is about to start or to stop: ask again soon"
    return f"no `podlife up` runs on {state_dir.path}: start one, or name its folder with --data"


@contextmanager
def _short(path: Path) -> Iterator[str]:
    """A path to the socket that is short enough for the kernel, however deep its directory lies."""
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{path.name}"
    finally:
        os.close(descriptor)

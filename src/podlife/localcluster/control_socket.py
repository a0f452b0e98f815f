"""The control socket of a local cluster: requests from other processes of the same user, one line of JSON each way.

The state directory is private to its owner, so any process that can reach the socket is authorized.
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


async def serve_requests(state_dir: StateDir, cluster: LocalCluster) -> None:
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


async def _answer(cluster: LocalCluster, request: dict[str, Any]) -> dict[str, Any]:
    try:
        match request.get("do"):
            case "status":
                return {"parts": describe_components(cluster), "page": cluster.page}
            case "stop":
                is_new = not cluster.is_stopped(request["node"])
                await cluster.stop_node(request["node"])
                return {"is_new": is_new}
            case "start":
                is_new = cluster.is_stopped(request["node"])
                cluster.start_node(request["node"])
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


def ask(state_dir: StateDir, request: dict[str, Any]) -> dict[str, Any]:
    """Raises ConfigError if no `podlife up` runs on the directory, PodlifeError if it refuses the request."""
    try:
        with socket.socket(socket.AF_UNIX) as line, _short(state_dir.socket) as path:
            line.settimeout(_ANSWER_SECONDS)
            line.connect(path)
            line.sendall(json.dumps(request).encode() + b"\n")
            with line.makefile("rb") as answers:
                answer: dict[str, Any] = json.loads(answers.readline(_MOST_BYTES) or b"{}")
    except (FileNotFoundError, ConnectionError):
        raise ConfigError(_why_unreachable(state_dir)) from None
    except OSError as error:
        raise ConfigError(f"`podlife up` on {state_dir.path} does not answer: {error}") from None
    if "error" in answer:
        raise PodlifeError(answer["error"])
    return answer


def _why_unreachable(state_dir: StateDir) -> str:
    holder = state_dir.holder()
    if holder is not None and holder.is_alive:
        # The socket exists only while the components run.
        return f"`podlife up` on {state_dir.path} (process {holder.pid}) is starting or stopping; try again"
    return f"no `podlife up` runs on {state_dir.path}: start one, or name its folder with --data"


@contextmanager
def _short(path: Path) -> Iterator[str]:
    """A path to the socket within the kernel's length limit, however deep the directory is."""
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{path.name}"
    finally:
        os.close(descriptor)

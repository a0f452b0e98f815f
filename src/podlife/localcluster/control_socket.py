"""Orders to a running `podlife up` from other processes of the same user: a socket in its data folder, one line of JSON
there, one back.

The folder is its owner's alone, so whoever reaches the socket may give orders.
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
from podlife.localcluster.cluster import Cluster
from podlife.localcluster.state_dir import UpFolder, choose_folder

__all__ = ["ask", "serve_orders", "tell_nodes"]

_ANSWER_SECONDS = 30.0
_MOST_BYTES = 1024 * 1024


async def serve_orders(folder: UpFolder, cluster: Cluster) -> None:
    """Until it is cancelled."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, TimeoutError, ValueError):
            async with asyncio.timeout(_ANSWER_SECONDS):
                answer = await _answer(cluster, json.loads(await reader.readline()))
                writer.write(json.dumps(answer).encode() + b"\n")
                await writer.drain()
        writer.close()

    folder.socket.unlink(missing_ok=True)
    with _short(folder.socket) as path:
        server = await asyncio.start_unix_server(serve, path)
    folder.socket.chmod(0o600)
    try:
        async with server:
            await server.serve_forever()
    finally:
        folder.socket.unlink(missing_ok=True)


async def _answer(cluster: Cluster, order: dict[str, Any]) -> dict[str, Any]:
    try:
        match order.get("do"):
            case "status":
                return {"parts": describe_parts(cluster)}
            case "stop":
                is_new = not cluster.is_stopped(order["node"])
                await cluster.stop_node(order["node"])
                return {"is_new": is_new}
            case "start":
                is_new = cluster.is_stopped(order["node"])
                cluster.start_node(order["node"])
                return {"is_new": is_new}
            case other:
                return {"error": f"{other!r} is no order"}
    except PodlifeError as error:
        return {"error": str(error)}


def describe_parts(cluster: Cluster) -> list[dict[str, Any]]:
    now = asyncio.get_running_loop().time()
    return [
        {
            "name": part.name,
            "state": part.state,
            "pid": part.pid,
            "restarts": part.restarts,
            "seconds": round(now - part.started_at, 1) if part.pid else 0,
            "log": str(part.log),
        }
        for part in cluster.parts
    ]


def ask(folder: UpFolder, order: dict[str, Any]) -> dict[str, Any]:
    """Raises ConfigError where no `podlife up` runs on the folder, PodlifeError when it refuses."""
    try:
        with socket.socket(socket.AF_UNIX) as line, _short(folder.socket) as path:
            line.settimeout(_ANSWER_SECONDS)
            line.connect(path)
            line.sendall(json.dumps(order).encode() + b"\n")
            with line.makefile("rb") as answers:
                answer: dict[str, Any] = json.loads(answers.readline(_MOST_BYTES) or b"{}")
    except (FileNotFoundError, ConnectionError):
        raise ConfigError(_why_nobody_answers(folder)) from None
    except OSError as error:
        raise ConfigError(f"`podlife up` on {folder.path} does not answer: {error}") from None
    if "error" in answer:
        raise PodlifeError(answer["error"])
    return answer


def _why_nobody_answers(folder: UpFolder) -> str:
    holder = folder.holder()
    if holder is not None and holder.is_alive:
        # It answers from when its parts run until they are to end.
        return f"`podlife up` on {folder.path}, process {holder.pid}, is about to start or to stop: ask again soon"
    return f"no `podlife up` runs on {folder.path}: start one, or name its folder with --data"


def tell_nodes(data: Path | None, what: str, nodes: list[str]) -> None:
    """`start` or `stop` nodes of a running `podlife up`, and say so."""
    folder = choose_folder(data)
    for node in nodes:
        is_new = ask(folder, {"do": what, "node": node}).get("is_new", True)
        match what, is_new:
            case "start", True:
                print(f"{node} is started")
            case "start", False:
                print(f"{node} runs already")
            case _, True:
                print(f"{node} is stopped; its pods run on")
            case _:
                print(f"{node} is stopped already; its pods run on")


@contextmanager
def _short(path: Path) -> Iterator[str]:
    """A name for the socket that is short enough for the kernel, however deep its folder lies."""
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{path.name}"
    finally:
        os.close(descriptor)

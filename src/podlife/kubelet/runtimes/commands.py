"""Runs a command in a container to its end, over any runtime's `exec`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from podlife.aio import cancel_and_wait, spawn
from podlife.kubelet.runtime import ExecResult, ExecSession, ExecTimeoutError

log = logging.getLogger(__name__)

_OUTPUT_BYTES = 1024 * 1024
_CHUNK_BYTES = 256 * 1024
_BREATH_SECONDS = 0.005
# What a command leaves behind may hold its output open for ever.
_DRAIN_SECONDS = 1.0


async def run_to_end(
    session: ExecSession, command: Sequence[str], *, timeout_seconds: float | None
) -> ExecResult:
    """The exit code and what came out, up to a megabyte of each stream. Raises `ExecTimeoutError`."""
    stdout, stderr = bytearray(), bytearray()
    readers = [
        spawn(
            _collect(stream, into),
            name="exec output",
            on_failure=lambda failure: log.debug("exec: %s", failure),
        )
        for stream, into in ((session.stdout, stdout), (session.stderr, stderr))
    ]
    try:
        async with asyncio.timeout(timeout_seconds):
            code = await session.wait()
            await asyncio.wait(readers, timeout=_DRAIN_SECONDS)
    except TimeoutError:
        text = f"command {' '.join(command)!r} timed out after {timeout_seconds:g} s"
        raise ExecTimeoutError(text) from None
    finally:
        await cancel_and_wait(*readers)
    return ExecResult(code, bytes(stdout), bytes(stderr))


async def _collect(stream: asyncio.StreamReader, into: bytearray) -> None:
    while chunk := await stream.read(_CHUNK_BYTES):
        into += chunk[: max(0, _OUTPUT_BYTES - len(into))]
        if len(into) >= _OUTPUT_BYTES:
            # The rest is for nobody: a command that says more and more must not keep the whole node busy listening.
            await asyncio.sleep(_BREATH_SECONDS)

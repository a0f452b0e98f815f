"""Exec on top of any runtime: commands that run until they exit, and sessions whose output is available only then."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from podlife.aio import cancel_and_wait, spawn
from podlife.kubelet.runtime import ContainerRuntimeError, ExecError, ExecResult, ExecTimeoutError, Runtime

log = logging.getLogger(__name__)

_OUTPUT_BYTES = 1024 * 1024
_CHUNK_BYTES = 256 * 1024
_DISCARD_PAUSE_SECONDS = 0.005
# Background processes of a command may keep its output open indefinitely.
_DRAIN_SECONDS = 1.0


async def exec_sync(
    runtime: Runtime, container_id: str, command: Sequence[str], *, timeout_seconds: float | None = None
) -> ExecResult:
    """For runtimes without such a call: keeps up to a megabyte of each stream. Raises `ExecTimeoutError`."""
    stdout, stderr = bytearray(), bytearray()
    async with runtime.exec(container_id, command) as session:
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
            # The rest is discarded; slow down, so that endless output does not keep the node busy.
            await asyncio.sleep(_DISCARD_PAUSE_SECONDS)


class ResultSession:
    """A command without input, whose output is available when it has exited."""

    def __init__(self, *, tty: bool) -> None:
        self.stdout = asyncio.StreamReader()
        self.stderr = asyncio.StreamReader()
        self._tty = tty
        self._code: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def run(self, command: Callable[[], Awaitable[ExecResult]]) -> None:
        try:
            self.end(await command())
        except ContainerRuntimeError as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001 - third-party code; its message is for the user
            self._fail(ExecError(f"the command could not be run: {str(error) or type(error).__name__}"))
        finally:
            self._feed_eof()

    def end(self, result: ExecResult) -> None:
        self.stdout.feed_data(result.stdout)
        (self.stdout if self._tty else self.stderr).feed_data(result.stderr)
        self._feed_eof()
        if not self._code.done():
            self._code.set_result(result.exit_code)

    async def write_stdin(self, data: bytes) -> None:
        """Discarded."""

    async def close_stdin(self) -> None:
        """Discarded."""

    def resize(self, *, columns: int, rows: int) -> None:
        """Ignored."""

    async def wait(self) -> int:
        return await asyncio.shield(self._code)

    def _feed_eof(self) -> None:
        self.stdout.feed_eof()
        self.stderr.feed_eof()

    def _fail(self, error: ContainerRuntimeError) -> None:
        if not self._code.done():
            self._code.set_exception(error)
            # Retrieve the exception, so that asyncio does not report it if no caller waits.
            self._code.exception()

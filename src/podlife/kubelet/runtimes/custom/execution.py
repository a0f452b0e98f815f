"""A command run by a compute, as a session: its output comes when it has ended, and it reads nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from podlife.kubelet.runtime import ContainerRuntimeError, ExecError, ExecResult


class CustomExec:
    def __init__(self, *, tty: bool) -> None:
        self.stdout = asyncio.StreamReader()
        self.stderr = asyncio.StreamReader()
        self._tty = tty
        self._code: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def run(self, command: Callable[[], Awaitable[ExecResult]]) -> None:
        try:
            result = await command()
        except ContainerRuntimeError as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001 - somebody else's code, and its text is for the user
            self._fail(ExecError(f"the command could not be run: {str(error) or type(error).__name__}"))
        else:
            self.stdout.feed_data(result.stdout)
            (self.stdout if self._tty else self.stderr).feed_data(result.stderr)
            if not self._code.done():
                self._code.set_result(result.exit_code)
        finally:
            self.stdout.feed_eof()
            self.stderr.feed_eof()

    async def write_stdin(self, data: bytes) -> None:
        """Nobody reads it."""

    async def close_stdin(self) -> None:
        """Nobody reads it."""

    def resize(self, *, columns: int, rows: int) -> None:
        """Nobody looks at it."""

    async def wait(self) -> int:
        return await asyncio.shield(self._code)

    def _fail(self, error: ContainerRuntimeError) -> None:
        if not self._code.done():
            self._code.set_exception(error)
            # Whoever asks is told; if nobody does, that is no mistake.
            self._code.exception()

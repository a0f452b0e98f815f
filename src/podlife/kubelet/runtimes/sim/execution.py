"""A simulated command: it has run already when it begins."""

from __future__ import annotations

import asyncio

from podlife.kubelet.runtime import ExecResult


class SimExec:
    def __init__(self, result: ExecResult, *, tty: bool) -> None:
        self.stdout = asyncio.StreamReader()
        self.stderr = asyncio.StreamReader()
        self.stdout.feed_data(result.stdout)
        (self.stdout if tty else self.stderr).feed_data(result.stderr)
        self.stdout.feed_eof()
        self.stderr.feed_eof()
        self._exit_code = result.exit_code

    async def write_stdin(self, data: bytes) -> None:
        """Nobody reads it."""

    async def close_stdin(self) -> None:
        """Nobody reads it."""

    def resize(self, *, columns: int, rows: int) -> None:
        """Nobody looks at it."""

    async def wait(self) -> int:
        return self._exit_code

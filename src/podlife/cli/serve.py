"""Runs the API server as a process: the event loop, signals and what a long-lived process sets up once."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from podlife.apiserver.server import ApiServer, Serving, Settings

__all__ = ["serve"]


def serve(settings: Settings, on_ready: Callable[[Serving], None]) -> None:
    """Serve until SIGTERM or SIGINT; a second signal ends the process at once."""
    logging.basicConfig(level=logging.WARNING, format="podlife: %(message)s", stream=sys.stderr)
    _allow_many_connections()
    _run(_serve(settings, on_ready))


async def _serve(settings: Settings, on_ready: Callable[[Serving], None]) -> None:
    server = ApiServer(settings)
    loop = asyncio.get_running_loop()

    def stop(number: signal.Signals) -> None:
        server.stop()
        loop.remove_signal_handler(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number)

    def ready(serving: Serving) -> None:
        # What is there now stays: the collector need not walk through it again and again.
        gc.collect()
        gc.freeze()
        on_ready(serving)

    await server.run(ready)


def _run(main: Coroutine[Any, Any, None]) -> None:
    try:
        import uvloop
    except ImportError:
        asyncio.run(main)
    else:
        uvloop.run(main)


def _allow_many_connections() -> None:
    """Every watch is an open file: take as many as the system grants without asking for more rights."""
    try:
        import resource
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))

"""The API server as a daemon."""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from podlife.apiserver.server import ApiServer, ServingInfo
from podlife.apiserver.settings import ApiServerSettings
from podlife.daemons import event_loop
from podlife.daemons.event_loop import Shutdown, never_stopped, stopped_by_signals
from podlife.daemons.limits import allow_many_open_files
from podlife.memory import use_one_heap

# Time for cleanup after the server's own deadline for requests.
_GRACE_SECONDS = 5.0


async def run(
    settings: ApiServerSettings,
    *,
    on_ready: Callable[[ServingInfo], None] | None = None,
    shutdown: Shutdown = never_stopped,
) -> None:
    """Serve until `shutdown` or cancellation; `on_ready` is called once it accepts requests."""
    server = ApiServer(settings)
    with shutdown(server.stop):
        await server.run(on_ready or (lambda _: None))


def run_process(settings: ApiServerSettings, on_ready: Callable[[ServingInfo], None]) -> None:
    """Serve until SIGTERM or SIGINT, as the only work of this process; a second signal ends it at once."""
    logging.basicConfig(level=logging.WARNING, format="podlife: %(message)s", stream=sys.stderr)
    allow_many_open_files()
    use_one_heap()

    def ready(serving: ServingInfo) -> None:
        # Objects loaded so far stay: exclude them from garbage collection.
        gc.collect()
        gc.freeze()
        # Serve even if the pipe is closed or the disk is full.
        with suppress(OSError):
            on_ready(serving)

    # Stored data is always consistent, so the process may exit even if a thread does not end.
    shutdown = partial(stopped_by_signals, exit_after_seconds=settings.stop_seconds + _GRACE_SECONDS)
    event_loop.run(run(settings, on_ready=ready, shutdown=shutdown))

"""The process of the API server: the event loop, signals, and what a long-lived process sets up once.

`serve` starts it with its settings as one JSON argument; it is no command of its own.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import shlex
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from podlife.apiserver.server import ApiServer, ServingInfo
from podlife.apiserver.settings import ApiServerSettings
from podlife.daemons import event_loop as loop
from podlife.daemons.event_loop import stopped_by_signals
from podlife.daemons.limits import allow_many_open_files
from podlife.memory import use_one_heap

__all__ = ["run"]

# Beyond the time that the server gives its requests: for what it puts away after them.
_GRACE_SECONDS = 5.0


def run(settings: ApiServerSettings, tell: Callable[[ServingInfo], None] | None = None) -> None:
    """Serve until SIGTERM or SIGINT; a second signal ends the process at once. When it serves that is told: to people,
    if not said whom."""
    logging.basicConfig(level=logging.WARNING, format="podlife: %(message)s", stream=sys.stderr)
    allow_many_open_files()
    use_one_heap()
    loop.run(_serve(settings, tell or (lambda serving: print(_welcome(serving, settings), flush=True))))


async def _serve(settings: ApiServerSettings, tell: Callable[[ServingInfo], None]) -> None:
    server = ApiServer(settings)

    def ready(serving: ServingInfo) -> None:
        # What is there now stays: the collector need not walk through it again and again.
        gc.collect()
        gc.freeze()
        # Who cannot be told (a closed pipe, a full disk) is served all the same.
        with suppress(OSError):
            tell(serving)

    def stop() -> None:
        # Threads that compute cannot be stopped, and the interpreter waits for them. What is stored is safe anyway.
        end = threading.Timer(settings.stop_seconds + _GRACE_SECONDS, os._exit, [1])
        end.daemon = True
        end.start()
        server.stop()

    with stopped_by_signals(stop):
        await server.run(ready)


def _welcome(serving: ServingInfo, settings: ApiServerSettings) -> str:
    kept = "memory only" if settings.in_memory else str(serving.folder)
    return f"""\
The API server is ready on {serving.url} (data: {kept}).

  export KUBECONFIG={shlex.quote(str(serving.kubeconfig()))}

  kubectl get namespaces
  kubectl run web --image=nginx
  kubectl get pods --watch

Ctrl-C stops it."""


def _from_json(text: str) -> ApiServerSettings:
    given = json.loads(text)
    return ApiServerSettings(**given | {"data": Path(given["data"]), "names": tuple(given["names"])})


if __name__ == "__main__":
    from podlife.cli import guard

    guard(lambda: run(_from_json(sys.argv[1])))

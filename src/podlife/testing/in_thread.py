"""A cluster in real time for tests that cannot share its event loop: blocking clients, and kopf.

    with cluster_in_thread(nodes=2) as cluster:
        kubernetes.config.load_kube_config(str(cluster.kubeconfig))

The cluster runs on an event loop in a thread; `call` runs an async function of the test there and waits for it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from podlife.errors import PodlifeError
from podlife.testing.cluster import Cluster

T = TypeVar("T")

_START_SECONDS = 60.0
_STOP_SECONDS = 60.0
_CALL_SECONDS = 60.0


class ClusterInThread:
    """A cluster as seen from another thread."""

    def __init__(self, cluster: Cluster, loop: asyncio.AbstractEventLoop, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self._cluster = cluster
        self._loop = loop

    def call(
        self, function: Callable[[Cluster], Coroutine[Any, Any, T]], *, seconds: float = _CALL_SECONDS
    ) -> T:
        """Call the async function with the cluster on the cluster's loop, and return its result. Raises
        TimeoutError."""
        future = asyncio.run_coroutine_threadsafe(function(self._cluster), self._loop)
        try:
            return future.result(seconds)
        finally:
            future.cancel()


@contextmanager
def cluster_in_thread(**settings: Any) -> Iterator[ClusterInThread]:
    """A `Cluster` with these settings and a socket, for the duration of the block."""
    started: Future[ClusterInThread] = Future()
    ended: Future[None] = Future()
    stopping: list[Callable[[], object]] = []

    async def live() -> None:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        stopping.append(lambda: loop.call_soon_threadsafe(stop.set))
        async with Cluster(**{**settings, "socket": True}) as cluster:
            started.set_result(ClusterInThread(cluster, loop, cluster.kubeconfig))
            await stop.wait()

    def run() -> None:
        try:
            asyncio.run(live())
        except BaseException as error:  # noqa: BLE001 - raised where the cluster is used
            (ended if started.done() else started).set_exception(error)
        else:
            ended.set_result(None)

    thread = threading.Thread(target=run, name="podlife cluster", daemon=True)
    thread.start()
    cluster = _result(started, "be there", _START_SECONDS)
    try:
        yield cluster
    finally:
        if not ended.done():
            stopping[0]()
        # The error that ended the cluster is the cause of the test's failure.
        _result(ended, "end", _STOP_SECONDS)
        thread.join(_STOP_SECONDS)


def _result(future: Future[T], what: str, seconds: float) -> T:
    try:
        return future.result(seconds)
    except TimeoutError:
        raise PodlifeError(f"the cluster took longer than {seconds:g} s to {what}") from None

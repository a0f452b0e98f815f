"""The reconcile loop: takes keys from a queue and calls a function for each.

The outcome of a key is decided in one place: done (the function returned None), again after a delay (`Again`), again
with backoff (it raised), or not until the object changes (TerminalError). A key is handled by one worker at a time.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from podlife.aio import cancel_and_wait, spawn
from podlife.errors import PodlifeError, TerminalError
from podlife.informer.cache import HasMetadata
from podlife.informer.indexes import Key
from podlife.workqueue import Distribution, Queue, RateLimitedQueue, ShutDownError
from podlife.workqueue.queue import K

log = logging.getLogger(__name__)
T = TypeVar("T")

_MOST_SECONDS_BY_CLOCK = 600.0


@dataclass(frozen=True, slots=True)
class Again:
    """Reconcile the key again after this time, or earlier if it is added."""

    seconds: float

    @classmethod
    def by_clock(cls, seconds: float) -> Again:
        """For a time by the wall clock, which may be set or advance during suspend unnoticed by timers: the delay is
        bounded, so that the time is checked again."""
        return cls(min(seconds, _MOST_SECONDS_BY_CLOCK))


class Enqueue:
    """A handler of an informer that enqueues the object of the event; keys are namespace and name. The owner of an
    object is enqueued by `podlife.podcontrol.EnqueueOwner`.

    `forget` is called when an object is deleted, before its key is enqueued: state kept by key (expectations, own
    writes) must not delay a new object of the same name."""

    def __init__(self, queue: Queue[Key], forget: Callable[[Key], None] | None = None) -> None:
        self._queue = queue
        self._forget = forget

    def on_add(self, obj: HasMetadata) -> None:
        self._queue.add((obj.metadata.namespace, obj.metadata.name))

    def on_update(self, old: HasMetadata, new: HasMetadata) -> None:
        if old.metadata.uid != new.metadata.uid:
            # Recreated under the same name, without a delete event in between.
            self.on_delete(old)
        self._queue.add((new.metadata.namespace, new.metadata.name))

    def on_delete(self, obj: HasMetadata) -> None:
        key = (obj.metadata.namespace, obj.metadata.name)
        if self._forget is not None:
            self._forget(key)
        self._queue.add(key)


class OnChange(Generic[T]):
    """A handler of an informer that calls a function with each object that was added, changed or deleted, of a change
    with both versions, the older one first."""

    def __init__(self, on_add: Callable[[T], None], on_delete: Callable[[T], None] | None = None) -> None:
        self.on_add = on_add
        self.on_delete = on_delete or on_add

    def on_update(self, old: T, new: T) -> None:
        self.on_delete(old)
        self.on_add(new)


class ControllerMetrics:
    """Outcomes of keys: `results` counts "success", "requeue_after", "error" and "terminal_error"."""

    def __init__(self) -> None:
        self.results: Counter[str] = Counter()
        self.seconds = Distribution()
        self.active_workers = 0


class Controller(Generic[K]):
    """`stop_seconds`: how long a key in progress may take after a cancellation; by default it is cancelled."""

    def __init__(
        self,
        name: str,
        queue: RateLimitedQueue[K],
        reconcile: Callable[[K], Awaitable[Again | None]],
        *,
        workers: int = 1,
        stop_seconds: float = 0.0,
    ) -> None:
        self.name = name
        self.queue = queue
        self.metrics = ControllerMetrics()
        self.stop_seconds = stop_seconds
        self._reconcile = reconcile
        self._workers = workers

    async def run(self) -> None:
        """Work until the queue is shut down and empty, or until cancelled; unfinished keys are queued again."""
        async with asyncio.TaskGroup() as group:
            for number in range(self._workers):
                group.create_task(self._work(), name=f"{self.name} worker {number}")

    async def _work(self) -> None:
        while True:
            try:
                key = await self.queue.get()
            except ShutDownError:
                return
            self.metrics.active_workers += 1
            started = asyncio.get_running_loop().time()
            try:
                self.metrics.results[await self._finish(key)] += 1
            except asyncio.CancelledError:
                self.queue.add(key)
                raise
            finally:
                self.metrics.seconds.observe(asyncio.get_running_loop().time() - started)
                self.metrics.active_workers -= 1
                self.queue.done(key)
            # Yield to watches and the lease: the next key may be ready and need no wait.
            await asyncio.sleep(0)

    async def _finish(self, key: K) -> str:
        """Handle the key; if cancelled, finish it within `stop_seconds`."""
        if self.stop_seconds <= 0:
            return await self._handle(key)
        # The failure is read from the task.
        handling = spawn(self._handle(key), name=f"{self.name} {key}", on_failure=lambda _: None)
        try:
            return await asyncio.shield(handling)
        except asyncio.CancelledError:
            try:
                await asyncio.wait((handling,), timeout=self.stop_seconds)
            finally:
                await cancel_and_wait(handling)
            raise

    async def _handle(self, key: K) -> str:
        """Reconcile the key and requeue it as required; return the name of the result."""
        try:
            outcome = await self._reconcile(key)
        except TerminalError as error:
            log.error("%s: %s failed permanently, not retrying: %s", self.name, show_key(key), error)
            self.queue.forget(key)
            return "terminal_error"
        except Exception as error:
            # Expected errors are one line; anything else is a bug and logged with its traceback.
            trace = None if isinstance(error, PodlifeError) else error
            key_name = show_key(key)
            log.warning(
                "%s: reconcile of %s failed, retrying: %s", self.name, key_name, error, exc_info=trace
            )
            self.queue.add_rate_limited(key)
            return "error"
        self.queue.forget(key)
        if outcome is None:
            return "success"
        self.queue.add_after(key, outcome.seconds)
        return "requeue_after"


def show_key(key: object) -> str:
    """Namespace and name in the usual notation: default/web."""
    return "/".join(map(str, key)).removeprefix("/") if isinstance(key, tuple) else str(key)

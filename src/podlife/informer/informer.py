"""The async shell of an informer: keeps a list-watch running and notifies handlers.

One task does everything in order: an event is applied to the cache and delivered to all handlers before the next is
read. Two more tasks do the resync and verify, after an outage, that the server still has the history that was
watched.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

from podlife.aio import wait_until_set
from podlife.api.selectors import FieldSelector, LabelSelector
from podlife.client import BadAnswerError, Bookmark, Client, ListOptions, Ref, WatchOptions
from podlife.client.refs import with_view
from podlife.errors import ApiError, ConfigError, ExpiredError, PodlifeError, UnreachableError
from podlife.informer.cache import Added, Cache, CacheReader, HasMetadata, Notification, Updated
from podlife.informer.indexes import Indexer
from podlife.informer.retry_policy import RetryPolicy

_log = logging.getLogger(__name__)

T = TypeVar("T", bound=HasMetadata)
T_contra = TypeVar("T_contra", contravariant=True)

_DEFAULTS = WatchOptions()
# Number of notifications before other tasks get a turn.
_BATCH = 500
# Minimum time between two checks of the server's history.
_CHECK_SECONDS = 1.0


class Handler(Protocol[T_contra]):
    """Called for every change on the event loop, so it must only enqueue work."""

    def on_add(self, obj: T_contra, /) -> None: ...
    def on_update(self, old: T_contra, new: T_contra, /) -> None: ...
    def on_delete(self, obj: T_contra, /) -> None: ...


@dataclass(slots=True)
class Stats:
    events: int = 0
    lists: int = 0
    interruptions: int = 0
    # Objects that did not fit their view; their last known state is kept.
    misfits: int = 0
    resyncs: int = 0
    # Notifications that a handler failed on.
    handler_failures: int = 0


class _HandlerError(Exception):
    """Wraps a handler's failure, so that it is not mistaken for an error of the server."""

    def __init__(self, reason: Exception) -> None:
        self.reason = reason


class Informer(Generic[T]):
    """See the package. Constructing it starts nothing; `run` does everything until it is cancelled. Instead of a
    resource and a view it takes the class of a custom resource (`podlife.api.crd`).

    Lists are read in pages unless `streams_list`: for 36,000 pods a streaming list takes twice the CPU time in
    kube-apiserver, and a third more here, since each object is encoded on its own. With `resync_seconds`, handlers
    receive all objects again at this interval, as updates.

    `run` raises the exception of a handler. With `skips_handler_failures` it is logged and the notification skipped:
    for handlers that only enqueue a key, which the next change of the object enqueues again."""

    def __init__(  # noqa: PLR0913 - what to follow and how; each has its own default
        self,
        client: Client,
        ref: Ref | type[T],
        *,
        view: type[T] | None = None,
        namespace: str = "",
        label_selector: LabelSelector | str = "",
        field_selector: FieldSelector | str = "",
        indexers: Mapping[str, Indexer[T]] | None = None,
        resync_seconds: float = 0.0,
        read_seconds: float = _DEFAULTS.read_seconds,
        streams_list: bool = False,
        metadata_only: bool = False,
        skips_handler_failures: bool = False,
    ) -> None:
        self._client = client
        self._ref, self._view = with_view(ref, view)
        self._namespace = namespace
        self._selection = ListOptions(label_selector=label_selector, field_selector=field_selector)
        self._cache: Cache[T] = Cache(indexers)
        self._handlers: tuple[Handler[T], ...] = ()
        self._resync_seconds = resync_seconds
        self._read_seconds = read_seconds
        self._streams_list = streams_list
        self._metadata_only = metadata_only
        self._skips_handler_failures = skips_handler_failures
        self.stats = Stats()
        self._retry_policy = RetryPolicy()
        self._page_limit = _DEFAULTS.page_limit
        self._loop: asyncio.AbstractEventLoop | None = None
        # Whether an initial list has been delivered to all handlers. Never becomes false again.
        self.has_synced = False
        self._synced_or_ended = asyncio.Event()
        # True from the end of a list to the end of its watch.
        self._is_following = False
        self._received_at = -math.inf
        # The failure because of which it has not synced or is not live.
        self.trouble: PodlifeError | None = None
        self._was_interrupted = asyncio.Event()

    @property
    def cache(self) -> CacheReader[T]:
        return self._cache

    @property
    def is_live(self) -> bool:
        """Whether the server is being followed: data was received within the read deadline, without a failure since."""
        if self._loop is None or not self._is_following or self.trouble is not None:
            return False
        return self._loop.time() - self._received_at < self._read_seconds

    @property
    def revision(self) -> int:
        """The revision of the cache; 0 while a list is in progress, and if revisions are not numbers."""
        return self._cache.revision

    def add_handler(self, handler: Handler[T]) -> None:
        """Deliver the current cache to the handler immediately, and all changes from now on."""
        for obj in self._cache.list():
            handler.on_add(obj)
        self._handlers = (*self._handlers, handler)

    async def wait_for_sync(self, *, seconds: float) -> bool:
        """Wait for the first complete list; returns whether it arrived. False at once if the informer has ended."""
        await wait_until_set(self._synced_or_ended, seconds=seconds)
        return self.has_synced

    async def run(self) -> None:
        """Follow the server until cancelled. Raises a handler's exception, unless skipped, and a permanent refusal of
        the server: UnauthorizedError, ForbiddenError, NotFoundError, ConfigError …"""
        if self._loop is not None:
            raise RuntimeError(f"the informer of {self._ref} was already started")
        self._loop = asyncio.get_running_loop()
        try:
            await _run_together(f"informer of {self._ref}", self._follow_forever, self._resync_forever)
        except _HandlerError as error:
            raise error.reason from None
        finally:
            self._is_following = False
            self._synced_or_ended.set()

    # Following

    async def _follow_forever(self) -> None:
        while True:
            try:
                await _run_together(f"follow {self._ref}", self._follow, self._check_history)
            except (ApiError, UnreachableError, BadAnswerError, ConfigError) as error:
                if self._retry_policy.is_fatal(error, self._now()):
                    raise
                self._note_trouble(error)
                delay = self._retry_policy.next_delay(error, self._now())
            finally:
                self._is_following = False
            await asyncio.sleep(delay)

    async def _follow(self) -> None:
        """One list and its watch, until it fails."""
        options = WatchOptions(
            label_selector=self._selection.label_selector,
            field_selector=self._selection.field_selector,
            read_seconds=self._read_seconds,
            # Keep the revision as long as the server has it: list again only after it refuses.
            resume_seconds=math.inf,
            streams_list=self._streams_list,
            page_limit=self._page_limit,
            metadata_only=self._metadata_only,
            on_alive=self._note_life,
            report=self._take_report,
        )
        self.stats.lists += 1
        self._cache.begin_list()
        following = self._client.list_watch(self._ref, self._namespace, options=options, view=self._view)
        try:
            async with aclosing(following) as events:
                async for event in events:
                    self.stats.events += 1
                    stale = self._cache.stale_events
                    self._change(self._cache.apply, event)
                    if isinstance(event, Bookmark) and event.is_synced:
                        self._note_sync()
                    if self._cache.stale_events > stale:
                        self._was_interrupted.set()
                    if self.stats.events % _BATCH == 0:
                        await asyncio.sleep(0)
        except ExpiredError:
            if not self._is_following:
                # The list expires faster than its pages are read: request the next one without pages.
                self._page_limit = 0
            raise

    def _change(self, change: Callable[..., Sequence[Notification[T]]], *arguments: Any) -> None:
        """Apply the change and notify all handlers, except those added meanwhile, which already have it."""
        handlers = self._handlers
        try:
            notifications = change(*arguments)
        except Exception as error:
            raise _HandlerError(error) from error
        for notification in notifications:
            for handler in handlers:
                try:
                    _notify(handler, notification)
                except Exception as error:
                    self._note_handler_failure(handler, notification)
                    if not self._skips_handler_failures:
                        raise _HandlerError(error) from error

    def _note_handler_failure(self, handler: Handler[T], notification: Notification[T]) -> None:
        """client-go logs it, skips the notification and, by default, ends the process."""
        self.stats.handler_failures += 1
        obj = notification.new if isinstance(notification, Updated) else notification.object
        where = f"{obj.metadata.namespace}/" if obj.metadata.namespace else ""
        _log.exception(
            "handler %s failed on %s of %s %s%s (UID %s)%s",
            type(handler).__qualname__,
            type(notification).__name__.lower(),
            self._ref,
            where,
            obj.metadata.name,
            obj.metadata.uid,
            ", skipping it" if self._skips_handler_failures else "",
        )

    def _note_sync(self) -> None:
        self._page_limit = _DEFAULTS.page_limit
        self._retry_policy.note_sync(self._now())
        self._is_following = True
        self._note_life()
        self.has_synced = True
        self._synced_or_ended.set()

    def _note_life(self) -> None:
        self._received_at = self._now()
        if self._is_following and self.trouble is not None:
            self._was_interrupted.set()
        self.trouble = None

    def _note_trouble(self, error: PodlifeError) -> None:
        self.stats.interruptions += 1
        self.trouble = error
        # Logged at debug: the control plane reports an outage once for all informers.
        _log.debug("watch of %s interrupted: %s", self._ref, error)

    def _take_report(self, error: PodlifeError) -> None:
        """An error that the watch recovered from."""
        if not isinstance(error, BadAnswerError):
            self._note_trouble(error)
            return
        self.stats.misfits += 1
        _log.warning("cannot decode %s/%s of %s: %s", error.namespace, error.name, self._ref, error)
        if error.is_deleted:
            self._change(self._cache.drop, error.namespace, error.name, error.resource_version)
        else:
            self._cache.keep(error.namespace, error.name)

    # Concurrent tasks

    async def _check_history(self) -> None:
        """On a server whose data was restored or recreated an old watch would wait forever: after an interruption the
        server is asked for its revision. Raises ExpiredError if that is older than the cache."""
        options = replace(self._selection, limit=1, metadata_only=self._metadata_only)
        while True:
            await self._was_interrupted.wait()
            self._was_interrupted.clear()
            seen = self._cache.revision
            try:
                page = await self._client.list(self._ref, self._namespace, options=options)
            except (ApiError, UnreachableError, BadAnswerError, ConfigError) as error:
                # The watch reports the same failure, if it persists.
                _log.debug("cannot verify history of %s: %s", self._ref, error)
            else:
                if page.resource_version.isdecimal() and int(page.resource_version) < seen:
                    raise ExpiredError(
                        f"the server is at revision {page.resource_version} of {self._ref}, the cache is at {seen}"
                    )
            await asyncio.sleep(_CHECK_SECONDS)

    async def _resync_forever(self) -> None:
        """Deliver all objects again at the resync interval, changed or not."""
        if self._resync_seconds <= 0:
            return
        while True:
            await asyncio.sleep(self._resync_seconds)
            self.stats.resyncs += 1
            for position, obj in enumerate(self._cache.list()):
                if position % _BATCH == 0:
                    await asyncio.sleep(0)
                # Later changes were already delivered.
                if self._cache.get(obj.metadata.namespace, obj.metadata.name) is obj:
                    self._change(lambda each: (Updated(each, each),), obj)

    def _now(self) -> float:
        assert self._loop is not None
        return self._loop.time()


def _notify(handler: Handler[T], notification: Notification[T]) -> None:
    if isinstance(notification, Updated):
        handler.on_update(notification.old, notification.new)
    elif isinstance(notification, Added):
        handler.on_add(notification.object)
    else:
        handler.on_delete(notification.object)


async def _run_together(name: str, *parts: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run the parts until all have ended or one has failed, and raise that failure unwrapped."""
    try:
        async with asyncio.TaskGroup() as group:
            for part in parts:
                group.create_task(part(), name=f"{name}: {part.__name__}")
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None

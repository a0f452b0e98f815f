"""Runs several controllers in one process, with shared informers and recorders.

    plane = ControlPlane(client, clock=SystemClock())
    plane.add(ReplicaSetController(plane))
    await plane.run()

Controllers that use the same view of a resource share one informer: one watch, one cache. No controller starts before
all caches have synced. A part that ends unexpectedly ends the control plane with its error. An unreachable server is
reported once for all of them. Leader election, health and metrics are left to the caller.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from podlife.client import Client, Ref
from podlife.client.refs import with_view
from podlife.clock import Clock, SystemClock
from podlife.controller.action_log import ActionLog
from podlife.errors import PodlifeError
from podlife.events import Recorder
from podlife.informer import Informer
from podlife.informer.cache import HasMetadata
from podlife.informer.indexes import Indexer

log = logging.getLogger(__name__)

T = TypeVar("T", bound=HasMetadata)

# Interval of the log line about a cache that has not synced.
_PATIENCE_SECONDS = 30.0
_FLUSH_SECONDS = 3.0
# Poll interval for outages, and delay of the first reminder, which doubles with each one.
_POLL_SECONDS = 1.0
_REMIND_SECONDS = 60.0


class Runnable(Protocol):
    """A controller: `podlife.controller.Controller`, or anything that runs until it is cancelled."""

    @property
    def name(self) -> str: ...

    async def run(self) -> None: ...


@runtime_checkable
class _HasComplaint(Protocol):
    """A controller with its own caches, which reports why they are not live."""

    @property
    def complaint(self) -> str: ...


class Followed(NamedTuple):
    """What an informer of a control plane follows, and the view it keeps."""

    ref: Ref
    view: type
    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""


class ControlPlane:
    """Only `run` starts anything. `flush_seconds` bounds the sending of queued events at shutdown."""

    def __init__(
        self, client: Client, *, clock: Clock | None = None, flush_seconds: float = _FLUSH_SECONDS
    ) -> None:
        self.client = client
        self.clock: Clock = clock or SystemClock()
        self.action_log = ActionLog()
        self._flush_seconds = flush_seconds
        self._informers: dict[Followed, Informer[Any]] = {}
        self._indexers: dict[Followed, Mapping[str, Indexer[Any]]] = {}
        self._recorders: dict[str, Recorder] = {}
        self.controllers: list[Runnable] = []

    def speaking_as(self, component: str) -> ControlPlane:
        """The same control plane, with everything shared, for a controller whose requests carry its own name."""
        other = copy(self)
        other.client = self.client.named(component)
        return other

    def informer(
        self,
        ref: Ref | type[T],
        *,
        view: type[T] | None = None,
        indexers: Mapping[str, Indexer[T]] | None = None,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
    ) -> Informer[T]:
        """The shared informer of this resource in this view, or of the class of a custom resource; by default for all
        namespaces, labels and fields. Raises ValueError if it exists with other indexes: none can be added later."""
        ref, view = with_view(ref, view)
        key = Followed(ref, view, namespace, label_selector, field_selector)
        if key not in self._informers:
            self._indexers[key] = indexers or {}
            self._informers[key] = Informer(
                self.client,
                ref,
                view=view,
                namespace=namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                indexers=indexers,
                # An object that a handler cannot process must not end every controller.
                skips_handler_failures=True,
            )
        elif self._indexers[key] != (indexers or {}):
            raise ValueError(f"the informer of {ref} as {view.__name__} has other indexes already")
        return self._informers[key]

    def recorder(self, component: str) -> Recorder:
        """The event recorder of this component. Events are also logged, aggregated."""
        if component not in self._recorders:
            self._recorders[component] = Recorder(
                self.client, component, clock=self.clock, on_event=self.action_log.note_event
            )
        return self._recorders[component]

    def add(self, controller: Runnable) -> None:
        self.controllers.append(controller)

    @property
    def all_informers(self) -> Mapping[Followed, Informer[Any]]:
        return dict(self._informers)

    @property
    def recorders(self) -> Sequence[Recorder]:
        return tuple(self._recorders.values())

    @property
    def complaint(self) -> str:
        """Why it is not working; empty if every cache has synced and is live."""
        for followed, informer in self._informers.items():
            if not informer.has_synced or not informer.is_live:
                why = f": {informer.trouble}" if informer.trouble else ""
                state = "not live" if informer.has_synced else "not synced"
                return f"the cache of {followed.ref} is {state}{why}"
        for controller in self.controllers:
            if isinstance(controller, _HasComplaint) and controller.complaint:
                return f"{controller.name}: {controller.complaint}"
        return ""

    async def run(self) -> None:
        """Run everything until cancelled. Raises the error that ended any part; several bugs at once as a group."""
        try:
            await self._run()
        except BaseExceptionGroup as failures:
            raise _cause(failures) from None

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as beside:
            recorders = [
                beside.create_task(recorder.run(), name=f"events of {component}")
                for component, recorder in self._recorders.items()
            ]
            telling = beside.create_task(self.action_log.run(), name="action log")
            try:
                await self._run_controllers()
            finally:
                await self._flush()
                for task in (*recorders, telling):
                    task.cancel()

    async def _run_controllers(self) -> None:
        async with asyncio.TaskGroup() as group:
            for followed, informer in self._informers.items():
                group.create_task(_follow(followed.ref, informer), name=f"informer of {followed.ref}")
            group.create_task(log_outages(self._lost), name="outages")
            await self._wait_for_caches()
            for controller in self.controllers:
                group.create_task(controller.run(), name=controller.name)
            if not self.controllers:
                log.warning("no controller to run: `add` makes one part of the control plane")
            log.info("running: %s", ", ".join(controller.name for controller in self.controllers))

    async def _wait_for_caches(self) -> None:
        for followed, informer in self._informers.items():
            while not await informer.wait_for_sync(seconds=_PATIENCE_SECONDS):
                # An informer that ended before it synced has raised: yield, so that the group cancels this wait.
                await asyncio.sleep(0)
                if informer.trouble is None:
                    log.info("waiting for the initial list of %s", followed.ref)

    def _lost(self) -> str:
        """Why an informer cannot follow the server, if so; a slow first list does not count."""
        for followed, informer in self._informers.items():
            if informer.trouble is not None:
                return f"{followed.ref}: {informer.trouble}"
            if informer.has_synced and not informer.is_live:
                return f"no data received for {followed.ref}"
        return ""

    async def _flush(self) -> None:
        """Send the queued events of all recorders, with one deadline."""
        async with asyncio.TaskGroup() as group:
            for recorder in self._recorders.values():
                group.create_task(recorder.flush(seconds=self._flush_seconds))


async def _follow(ref: Ref, informer: Informer[Any]) -> None:
    try:
        await informer.run()
    except PodlifeError as error:
        # Errors of servers do not always name the resource.
        error.add_note(f"the informer of {ref} ended with this")
        raise


def _cause(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    """The only error; the first of several refusals, with the others as notes; several bugs as a group."""
    causes = [*_causes(failures)]
    first, *others = causes
    if others and not all(isinstance(cause, PodlifeError) for cause in causes):
        return failures
    for other in others:
        first.add_note(f"and at the same time: {other}")
    return first


def _causes(failure: BaseException) -> Iterator[BaseException]:
    if not isinstance(failure, BaseExceptionGroup):
        yield failure
        return
    for each in failure.exceptions:
        yield from _causes(each)


class OutageLog:
    """Whether the API server cannot be watched: logged once when the connection is lost, at growing intervals while it
    stays lost, once when it is restored. Informers recover on their own and log interruptions at debug level; this
    reports for all of them. An interruption shorter than the poll interval is not logged."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._is_reported = False
        self._remind_after = _REMIND_SECONDS

    def update(self, complaint: str, now: float) -> tuple[int, str] | None:
        """Level and text to log now, if any."""
        if not complaint:
            return self._end(now)
        if self._since is None:
            self._since = now
            return None
        seconds = now - self._since
        if not self._is_reported:
            self._is_reported = True
            return (logging.WARNING, f"API server unreachable, controllers paused: {complaint}")
        if seconds >= self._remind_after:
            self._remind_after *= 2
            return logging.WARNING, f"API server unreachable for {seconds:.0f} s: {complaint}"
        return None

    def _end(self, now: float) -> tuple[int, str] | None:
        since, is_reported = self._since, self._is_reported
        self._since, self._is_reported, self._remind_after = None, False, _REMIND_SECONDS
        if since is None or not is_reported:
            return None
        return logging.INFO, f"API server reachable again after {now - since:.0f} s"


async def log_outages(complaint: Callable[[], str]) -> None:
    loop = asyncio.get_running_loop()
    outage = OutageLog()
    while True:
        if record := outage.update(complaint(), loop.time()):
            log.log(*record)
        await asyncio.sleep(_POLL_SECONDS)

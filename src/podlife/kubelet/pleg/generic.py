"""The generic PLEG: observes the runtime, fills the pod cache, and emits events (the PL- rules).

With a runtime that sends events, only the pods they name are read, and a relist is rare; otherwise it relists every
second. A pod that a reader waits for is read at once. A pending relist comes first, and serves the readers that asked
before it (PL-11).

Guarantees:
- A listener finds the cache up to date and gets every event: no channel can overflow (PL-07).
- A pod that could not be read is retried a second later; until then it has no events (PL-05).
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from podlife.aio import wait_until_set
from podlife.errors import PodlifeError
from podlife.kubelet.constants import RELIST_SECONDS, RELIST_UNHEALTHY_SECONDS
from podlife.kubelet.observed_pod import ObservedPod
from podlife.kubelet.pleg.events import (
    PodLifecycleEvent,
    PodLifecycleEventType,
    compute_events,
    states_of,
)
from podlife.kubelet.pleg.pod_cache import PodCache
from podlife.kubelet.runtime import (
    ContainerRuntimeError,
    ContainerStatus,
    EventKind,
    Runtime,
    RuntimeUnavailableError,
    SandboxStatus,
)

log = logging.getLogger(__name__)

T = TypeVar("T")

# Relist period if the runtime sends events, and the age of the last relist that counts as unhealthy then, as upstream:
# with the shorter limit every quiet node would be unhealthy.
_EVENTED_RELIST_SECONDS = 300.0
_EVENTED_UNHEALTHY_SECONDS = 600.0
# Timeout of runtime calls.
_READ_SECONDS = 120.0
# Maximum number of pods read concurrently.
_MAX_CONCURRENT = 16

OnEvents = Callable[[str, tuple[PodLifecycleEvent, ...]], None]


class GenericPLEG:
    """`on_events` is called with a pod's UID and its events, or no events if a sync was requested. `seconds` is a
    strictly increasing clock."""

    def __init__(
        self, runtime: Runtime, cache: PodCache, *, seconds: Callable[[], float], on_events: OnEvents
    ) -> None:
        self._runtime = runtime
        self.cache = cache
        self.seconds = seconds
        self._on_events = on_events
        self._wanted: dict[str, None] = {}
        # Requested pods to report even if nothing has changed (PL-06).
        self._to_sync: set[str] = set()
        self._is_relist_wanted = False
        self._wakeup = asyncio.Event()
        # The event stream of the runtime is connected.
        self.is_evented = False
        self.relisted_at: float | None = None
        self._relisted = asyncio.Event()
        self._logged_error = ""
        self._relist_waiters: list[asyncio.Future[None]] = []
        cache.on_wanted(self.request_read)

    @property
    def is_healthy(self) -> bool:
        """Unhealthy before the first relist, and when the last one is too old (PL-09)."""
        limit = _EVENTED_UNHEALTHY_SECONDS if self.is_evented else RELIST_UNHEALTHY_SECONDS
        # Monotonic time: the wall clock may be changed, and a suspended machine does not relist.
        return self.relisted_at is not None and self.seconds() - self.relisted_at <= limit

    def counts(self) -> tuple[int, Counter[str]]:
        """The number of pods with a ready sandbox, and of containers by state (PL-10)."""
        seen = [self.cache.last_seen(uid) for uid in self.cache]
        running = sum(bool(pod.ready_sandboxes) for pod in seen)
        return running, Counter(each.state.value.lower() for pod in seen for each in pod.containers)

    def request_read(self, uid: str) -> None:
        self._wanted[uid] = None
        self._wakeup.set()

    async def observe(self, uid: str) -> ObservedPod:
        """The pod's runtime state, read after this call."""
        return await self.cache.read_newer_than(uid, self.seconds())

    def request_reinspect(self, uid: str) -> None:
        """After a step changed something: read the pod at once, unless the runtime sends events."""
        if not self.is_evented:
            self.reinspect(uid)

    def reinspect(self, uid: str) -> None:
        """Read this pod again, and report it even if nothing has changed (PL-06)."""
        self._to_sync.add(uid)
        self.request_read(uid)

    def request_relist(self) -> None:
        self._is_relist_wanted = True
        self._wakeup.set()

    async def relist(self) -> None:
        """Relist now. Raises if that fails."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._relist_waiters.append(waiter)
        self.request_relist()
        await waiter

    async def wait_for_relist(self, *, seconds: float | None = None) -> None:
        """Wait for the first successful relist, up to a timeout."""
        if seconds is None:
            await self._relisted.wait()
        else:
            await wait_until_set(self._relisted, seconds=seconds)

    async def run(self) -> None:
        self.request_relist()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._listen(), name="runtime events")
            group.create_task(self._request_relists(), name="relist")
            group.create_task(self._serve_requests(), name="read pods")

    # Scheduling

    async def _listen(self) -> None:
        while True:
            try:
                async with self._runtime.events() as events:
                    self.is_evented = True
                    # Changes before the subscription are found only by a relist.
                    self.request_relist()
                    async for event in events:
                        if event.kind is EventKind.RELIST or not event.pod_uid:
                            self.request_relist()
                        else:
                            self.request_read(event.pod_uid)
            except ContainerRuntimeError as error:
                log.debug("runtime events unavailable: %s", error)
            except Exception:
                # A defect in the runtime's client must not stop the node: it relists every second instead.
                log.exception("runtime events failed, reconnecting")
            finally:
                self.is_evented = False
            await asyncio.sleep(RELIST_SECONDS)

    async def _request_relists(self) -> None:
        while True:
            await asyncio.sleep(_EVENTED_RELIST_SECONDS if self.is_evented else RELIST_SECONDS)
            self.request_relist()

    async def _serve_requests(self) -> None:
        while True:
            await self._wakeup.wait()
            self._wakeup.clear()
            while self._is_relist_wanted or self._wanted:
                if self._is_relist_wanted:
                    self._is_relist_wanted = False
                    # The relist serves readers that asked before it.
                    self._wanted.clear()
                    await self._relist()
                else:
                    await self._read_batch()

    async def _read_batch(self) -> None:
        uids = list(self._wanted)[:_MAX_CONCURRENT]
        for uid in uids:
            del self._wanted[uid]
        if len(uids) == 1:
            await self._read(uids[0])
            return
        async with asyncio.TaskGroup() as group:
            for uid in uids:
                group.create_task(self._read(uid), name=f"read pod {uid}")

    # Observing

    async def _relist(self) -> None:
        at = self.seconds()
        waiters, self._relist_waiters = self._relist_waiters, []
        try:
            sandboxes = await _bounded(self._runtime.list_sandboxes())
            containers = await _bounded(self._runtime.list_containers())
        except Exception as error:  # noqa: BLE001 - a defect in the runtime's client must not stop the kubelet
            why = str(error) if isinstance(error, PodlifeError) else repr(error)
            # Log each reason once.
            if why != self._logged_error:
                log.warning("runtime relist failed, retrying: %s", why)
            self._logged_error = why
            asyncio.get_running_loop().call_later(RELIST_SECONDS, self.request_relist)
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_exception(error)
            return
        seen = _by_pod(sandboxes, containers)
        for uid in dict.fromkeys((*seen, *self.cache)):
            # A read in the meantime is newer.
            if not self.cache.is_newer_than(uid, at):
                self._observed(uid, seen.get(uid, ObservedPod()), at)
        self.cache.put_all_at(at)
        self._logged_error = ""
        self.relisted_at = at
        self._relisted.set()
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def _read(self, uid: str) -> None:
        at = self.seconds()
        try:
            sandboxes = await _bounded(self._runtime.list_sandboxes(pod_uid=uid))
            containers = await _bounded(self._runtime.list_containers(pod_uid=uid))
        except Exception as error:  # noqa: BLE001 - as above
            self.cache.put_error(uid, error, at)
            asyncio.get_running_loop().call_later(RELIST_SECONDS, self.request_read, uid)
            return
        self._observed(uid, ObservedPod.of(sandboxes, containers), at)

    def _observed(self, uid: str, observed: ObservedPod, at: float) -> None:
        before = self.cache.last_seen(uid)
        self.cache.put(uid, observed, at)
        found = [
            each
            for each in compute_events(
                states_of(before.sandboxes, before.containers),
                states_of(observed.sandboxes, observed.containers),
            )
            if each.kind is not PodLifecycleEventType.CHANGED
        ]
        is_sync_requested = uid in self._to_sync
        self._to_sync.discard(uid)
        if found or (is_sync_requested and (observed.sandboxes or observed.containers)):
            try:
                self._on_events(uid, tuple(found))
            except Exception:
                # Affects only this pod.
                log.exception("events of pod %s could not be handled", uid)


def _by_pod(
    sandboxes: Iterable[SandboxStatus], containers: Iterable[ContainerStatus]
) -> dict[str, ObservedPod]:
    found: dict[str, tuple[list[SandboxStatus], list[ContainerStatus]]] = {}
    for sandbox in sandboxes:
        found.setdefault(sandbox.config.pod_uid, ([], []))[0].append(sandbox)
    for container in containers:
        found.setdefault(container.pod_uid, ([], []))[1].append(container)
    return {uid: ObservedPod.of(*each) for uid, each in found.items()}


async def _bounded(call: Awaitable[T]) -> T:
    try:
        async with asyncio.timeout(_READ_SECONDS):
            return await call
    except TimeoutError:
        raise RuntimeUnavailableError(f"the runtime gave no answer in {_READ_SECONDS:g} s") from None

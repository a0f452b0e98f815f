"""The generic PLEG: observes the runtime, keeps what it sees in the pod cache, and emits events (the PL- rules).

A runtime that sends events is asked for the pods that they name, and for everything only now and then; one that does
not is relisted every second. A pod that a reader waits for is read at once, by itself; a relist comes first and answers
the readers that asked before it (PL-11).

Guarantees:
- A listener finds the cache up to date, and gets every event: there is no channel that could be full (PL-07).
- A pod that could not be read is read again a second later; until then it has no events (PL-05).
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

# How long between two looks at everything, where events tell of what happens; and how long without a look counts as ill
# then, as upstream has it: with the patience of the other case every quiet node would be ill.
_EVENTED_RELIST_SECONDS = 300.0
_EVENTED_PATIENCE_SECONDS = 600.0
# How long a runtime has for an answer.
_READ_SECONDS = 120.0
# Pods that are read at the same time.
_AT_ONCE = 16

OnEvents = Callable[[str, tuple[PodLifecycleEvent, ...]], None]


class GenericPLEG:
    """`on_events` is called with a pod's UID and its events; without events for a pod whose sync was asked for.
    `seconds` is a clock that never answers the same moment twice."""

    def __init__(
        self, runtime: Runtime, cache: PodCache, *, seconds: Callable[[], float], on_events: OnEvents
    ) -> None:
        self._runtime = runtime
        self.cache = cache
        self.seconds = seconds
        self._on_events = on_events
        self._wanted: dict[str, None] = {}
        # Of those, the ones that are to be told of though nothing changed (PL-06).
        self._to_sync: set[str] = set()
        self._is_relist_wanted = False
        self._wakeup = asyncio.Event()
        # Events flow: what happens is told.
        self.is_evented = False
        self.relisted_at: float | None = None
        self._relisted = asyncio.Event()
        self._complaint = ""
        self._relist_waiters: list[asyncio.Future[None]] = []
        cache.on_wanted(self.ask)

    @property
    def is_healthy(self) -> bool:
        """Unhealthy before the first relist, and when the last one is too old (PL-09)."""
        patience = _EVENTED_PATIENCE_SECONDS if self.is_evented else RELIST_UNHEALTHY_SECONDS
        # Not by the clock: somebody may set it, and a node that sleeps does not look.
        return self.relisted_at is not None and self.seconds() - self.relisted_at <= patience

    def counts(self) -> tuple[int, Counter[str]]:
        """How many pods have a sandbox that is ready, and how many containers there are in each state (PL-10)."""
        seen = [self.cache.last_seen(uid) for uid in self.cache]
        running = sum(bool(pod.ready_sandboxes) for pod in seen)
        return running, Counter(each.state.value.lower() for pod in seen for each in pod.containers)

    def ask(self, uid: str) -> None:
        self._wanted[uid] = None
        self._wakeup.set()

    async def observe(self, uid: str) -> ObservedPod:
        """What the runtime has of this pod, read after this call."""
        return await self.cache.read_newer_than(uid, self.seconds())

    def request_reinspect(self, uid: str) -> None:
        """A step has done something: see it at once. Where the runtime sends events they tell."""
        if not self.is_evented:
            self.reinspect(uid)

    def reinspect(self, uid: str) -> None:
        """Read this pod again, and pass it on even if nothing has changed (PL-06)."""
        self._to_sync.add(uid)
        self.ask(uid)

    def ask_all(self) -> None:
        self._is_relist_wanted = True
        self._wakeup.set()

    async def relist(self) -> None:
        """Look at everything once more, now. Raises why that failed."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._relist_waiters.append(waiter)
        self.ask_all()
        await waiter

    async def wait_for_relist(self, *, seconds: float | None = None) -> None:
        """Until everything was seen once, but no longer than this."""
        if seconds is None:
            await self._relisted.wait()
        else:
            await wait_until_set(self._relisted, seconds=seconds)

    async def run(self) -> None:
        self.ask_all()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._listen_for_ever(), name="runtime events")
            group.create_task(self._relist_for_ever(), name="relist")
            group.create_task(self._read_for_ever(), name="read pods")

    # When to look

    async def _listen_for_ever(self) -> None:
        while True:
            try:
                async with self._runtime.events() as events:
                    self.is_evented = True
                    # What happened before somebody listened is only seen by looking.
                    self.ask_all()
                    async for event in events:
                        if event.kind is EventKind.RELIST or not event.pod_uid:
                            self.ask_all()
                        else:
                            self.ask(event.pod_uid)
            except ContainerRuntimeError as error:
                log.debug("runtime events unavailable: %s", error)
            except Exception:
                # A defect of the runtime's client costs its events, not the node: everything is listed every second.
                log.exception("runtime events failed, reconnecting")
            finally:
                self.is_evented = False
            await asyncio.sleep(RELIST_SECONDS)

    async def _relist_for_ever(self) -> None:
        while True:
            await asyncio.sleep(_EVENTED_RELIST_SECONDS if self.is_evented else RELIST_SECONDS)
            self.ask_all()

    async def _read_for_ever(self) -> None:
        while True:
            await self._wakeup.wait()
            self._wakeup.clear()
            while self._is_relist_wanted or self._wanted:
                if self._is_relist_wanted:
                    self._is_relist_wanted = False
                    # Who asked before it is answered by it.
                    self._wanted.clear()
                    await self._relist()
                else:
                    await self._read_some()

    async def _read_some(self) -> None:
        uids = list(self._wanted)[:_AT_ONCE]
        for uid in uids:
            del self._wanted[uid]
        if len(uids) == 1:
            await self._read(uids[0])
            return
        async with asyncio.TaskGroup() as group:
            for uid in uids:
                group.create_task(self._read(uid), name=f"read pod {uid}")

    # Looking

    async def _relist(self) -> None:
        at = self.seconds()
        waiters, self._relist_waiters = self._relist_waiters, []
        try:
            sandboxes = await _bounded(self._runtime.list_sandboxes())
            containers = await _bounded(self._runtime.list_containers())
        except Exception as error:  # noqa: BLE001 - a defect of the runtime's client must not end the agent
            why = str(error) if isinstance(error, PodlifeError) else repr(error)
            # Once, not with every try.
            if why != self._complaint:
                log.warning("runtime relist failed, retrying: %s", why)
            self._complaint = why
            asyncio.get_running_loop().call_later(RELIST_SECONDS, self.ask_all)
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_exception(error)
            return
        seen = _by_pod(sandboxes, containers)
        for uid in dict.fromkeys((*seen, *self.cache)):
            # What was read meanwhile is newer.
            if not self.cache.is_newer_than(uid, at):
                self._see(uid, seen.get(uid, ObservedPod()), at)
        self.cache.put_all_at(at)
        self._complaint = ""
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
            asyncio.get_running_loop().call_later(RELIST_SECONDS, self.ask, uid)
            return
        self._see(uid, ObservedPod.of(sandboxes, containers), at)

    def _see(self, uid: str, observed: ObservedPod, at: float) -> None:
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
        is_asked_for = uid in self._to_sync
        self._to_sync.discard(uid)
        if found or (is_asked_for and (observed.sandboxes or observed.containers)):
            try:
                self._on_events(uid, tuple(found))
            except Exception:
                # It concerns this pod alone: the others are looked at all the same.
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


async def _bounded(asked: Awaitable[T]) -> T:
    try:
        async with asyncio.timeout(_READ_SECONDS):
            return await asked
    except TimeoutError:
        raise RuntimeUnavailableError(f"the runtime gave no answer in {_READ_SECONDS:g} s") from None

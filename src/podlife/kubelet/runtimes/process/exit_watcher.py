"""Learns that containers have ended, and ends those whose supervisor was killed.

The kernel reports that a supervisor is gone; its record on disk says how the container ended. Without a record the
supervisor was killed: what is left of the container is killed too, and the record is written in its place. Every exit
is reported once, and every waiter is notified.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from podlife.aio import spawn
from podlife.clock import Clock
from podlife.kubelet.runtime import ContainerRuntimeError, ContainerState
from podlife.linux.inotify import CloseWatch

from .leftover_processes import kill_survivors, signal_survivors
from .records import ContainerRecord, ExitRecord, Records

log = logging.getLogger(__name__)

T = TypeVar("T")

# The kernel tells of a supervisor's end a moment before it lets go of its lock; on a machine that is very busy that
# moment is long, and an end that nobody looks for any more would never be told.
_LOOK_AGAIN_SECONDS = (*[0.01] * 100, *[1.0] * 60)
# How long until one is looked at again that could not be: the kubelet has run out of descriptors, say.
_BLIND_SECONDS = 1.0
_CLOSE_SECONDS = 60.0


class ExitWatcher:
    """`told` is called with every container that has ended, and with None when ends may have been missed."""

    def __init__(
        self, records: Records, clock: Clock, told: Callable[[ContainerRecord | None], None]
    ) -> None:
        self._records = records
        self._clock = clock
        self._told = told
        self._watch = CloseWatch(records.locks, self._supervisor_closed)
        self._containers: Mapping[str, ContainerRecord] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        # Those that could not be looked at, and will be.
        self._unseen: set[str] = set()
        self._is_open = False

    def open(self) -> None:
        self._watch.open()
        self._is_open = True

    async def follow(self, containers: Mapping[str, ContainerRecord]) -> None:
        """From here on; what was lost before is settled when this returns."""
        self._containers = containers
        lost = {record.id for record in containers.values() if record.state is ContainerState.UNKNOWN}
        if lost:
            await self._end_survivors(lost)
            for container_id in lost:
                self._record_lost(containers[container_id])

    async def close(self) -> None:
        self._is_open = False
        self._watch.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_CLOSE_SECONDS)

    def spawn(self, coroutine: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        """A task that is waited for when the runtime closes."""

        def failed(failure: BaseException) -> None:
            # A runtime's own errors are raised to whoever asked; anything else nobody has foreseen.
            if not isinstance(failure, ContainerRuntimeError):
                log.error("cannot %s", name, exc_info=failure)

        task = spawn(coroutine, name=name, on_failure=failed)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def wait_for(self, record: ContainerRecord) -> None:
        """Return when it does not run; one that never started does not."""
        if record.state in (ContainerState.CREATED, ContainerState.EXITED):
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        record.waiters.append(waiter)
        try:
            await waiter
        finally:
            record.waiters.remove(waiter)

    async def end_unheard(self, record: ContainerRecord, grace_seconds: float) -> None:
        """End one whose supervisor cannot be told to: its socket is gone, as a container with the kubelet's rights can
        remove it. Its processes are found without; the supervisor sees them end and records it as ever."""
        log.warning("supervisor of container %s does not respond, killing its processes", record.id)
        groups = self._records.control_groups(record.id)
        if grace_seconds > 0:
            number = signal.Signals[record.config.stop_signal]
            await asyncio.to_thread(signal_survivors, record.id, groups, number)
            try:
                async with asyncio.timeout(grace_seconds):
                    await self.wait_for(record)
                return
            except TimeoutError:
                log.debug("grace period of container %s exceeded", record.id)
        await asyncio.to_thread(kill_survivors, {record.id: groups})

    def is_unseen(self, record: ContainerRecord) -> bool:
        """It could not be looked at, and will be."""
        return record.id in self._unseen

    def look_at(self, record: ContainerRecord) -> None:
        """Read its state, and tell or settle its end; later, where it cannot be read now."""
        try:
            self._records.refresh(record)
        except OSError as failure:
            self._look_later(record, failure)
            return
        if record.state is ContainerState.EXITED:
            self._tell(record)
        elif record.state is ContainerState.UNKNOWN:
            self.spawn(self._settle_lost(record), f"end what is left of {record.config.name}")

    def _look_later(self, record: ContainerRecord, failure: OSError) -> None:
        """Nobody tells of an end twice: one that was not seen would never be."""
        if not self._is_open or record.id in self._unseen:
            return
        log.warning("container %s cannot be inspected, will retry: %s", record.id, failure)
        self._unseen.add(record.id)
        self.spawn(self._look_when_possible(record), f"look at {record.config.name} later")

    async def _look_when_possible(self, record: ContainerRecord) -> None:
        await asyncio.sleep(_BLIND_SECONDS)
        self._unseen.discard(record.id)
        if record.id in self._containers:
            self.look_at(record)

    def _supervisor_closed(self, container_id: str | None) -> None:
        if container_id is None:
            self._told(None)
        known = self._containers.values() if container_id is None else [self._containers.get(container_id)]
        for record in [record for record in known if record is not None and not record.is_starting]:
            if record.state is not ContainerState.RUNNING:
                continue
            self.look_at(record)
            if not record.is_end_told and container_id is not None and record.id not in self._unseen:
                self.spawn(self._look_again(record), f"look at {record.config.name}")

    async def _look_again(self, record: ContainerRecord) -> None:
        for seconds in _LOOK_AGAIN_SECONDS:
            await asyncio.sleep(seconds)
            if record.state is not ContainerState.RUNNING or record.id not in self._containers:
                return
            if record.id in self._unseen:
                return
            self.look_at(record)

    async def _settle_lost(self, record: ContainerRecord) -> None:
        log.warning("the supervisor of container %s is gone", record.id)
        await self._end_survivors({record.id})
        if record.id in self._containers:
            self._record_lost(record)
            self._tell(record)

    async def _end_survivors(self, container_ids: set[str]) -> None:
        lost = {container_id: self._records.control_groups(container_id) for container_id in container_ids}
        if not await asyncio.to_thread(kill_survivors, lost):
            log.error(
                "processes of containers without supervisor cannot be killed: %s", sorted(container_ids)
            )

    def _record_lost(self, record: ContainerRecord) -> None:
        now = int(self._clock.now().timestamp() * 1_000_000_000)
        started = int((record.started_at or record.created_at).timestamp() * 1_000_000_000)
        message = "its supervisor was killed, or the machine went down: how it ended is not known"
        ended = ExitRecord(137, "ContainerStatusUnknown", started, now, message)
        try:
            self._records.save_exit(record, ended)
        except OSError as failure:
            # On a full disk it is known to this kubelet only; the next one comes to the same conclusion.
            log.warning("the end of container %s cannot be recorded: %s", record.id, failure)
        record.exit, record.state = ended, ContainerState.EXITED

    def _tell(self, record: ContainerRecord) -> None:
        if record.is_end_told:
            return
        record.is_end_told = True
        for waiter in record.waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._told(record)

"""Learns that containers have ended, and ends those whose supervisor was killed.

The kernel reports that a supervisor is gone; its record on disk says how the container ended. Without a record the
supervisor was killed: what is left of the container is killed too, and the record is written in its place. Every exit
is reported once, and every waiter is notified.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from podlife.aio import spawn
from podlife.clock import Clock
from podlife.kubelet.runtime import ContainerRuntimeError, ContainerState
from podlife.linux.inotify import CloseWatch

from .launch import CONTAINER_ID_VARIABLE
from .records import ContainerRecord, ExitRecord, Records

log = logging.getLogger(__name__)

T = TypeVar("T")

# The kernel tells of a supervisor's end a moment before it lets go of its lock; on a machine that is very busy that
# moment is long, and an end that nobody looks for any more would never be told.
_LOOK_AGAIN_SECONDS = (*[0.01] * 100, *[1.0] * 60)
# How long until one is looked at again that could not be: the kubelet has run out of descriptors, say.
_BLIND_SECONDS = 1.0
_CLOSE_SECONDS = 60.0
_PATIENCE_SECONDS = 10.0


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


def kill_survivors(lost: Mapping[str, Sequence[Path]]) -> bool:
    """Kill until nobody is left of these containers, and take away their control groups, which are given with each.

    The main process dies with its supervisor; its children do not. They are found by a marker in their environment or
    by their cgroups. False if somebody would not go. Blocking: call it in a thread.
    """
    give_up = time.monotonic() + _PATIENCE_SECONDS
    groups = [group for of_one in lost.values() for group in of_one]
    while found := _marked(set(lost)) + _members(groups):
        if time.monotonic() > give_up:
            for pidfd in found:
                os.close(pidfd)
            return False
        for pidfd in found:
            _send(pidfd, signal.SIGKILL)
        time.sleep(0.01)
    for group in groups:
        with contextlib.suppress(OSError):
            group.rmdir()
    return True


def signal_survivors(container_id: str, groups: Sequence[Path], number: int) -> None:
    """Blocking."""
    for pidfd in _marked({container_id}) + _members(groups):
        _send(pidfd, number)


def _send(pidfd: int, number: int) -> None:
    try:
        signal.pidfd_send_signal(pidfd, number)
    except ProcessLookupError:
        pass
    finally:
        os.close(pidfd)


def _members(groups: Sequence[Path]) -> list[int]:
    found: list[int] = []
    for group in groups:
        with contextlib.suppress(OSError):
            for pid in (group / "cgroup.procs").read_text().split():
                with contextlib.suppress(OSError):
                    found.append(os.pidfd_open(int(pid)))
    return found


def _marked(container_ids: set[str]) -> list[int]:
    marks = {f"{CONTAINER_ID_VARIABLE}={container_id}".encode() for container_id in container_ids}
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # Opened before it is looked at: what is killed is what was seen, not who has its number by then.
            pidfd = os.pidfd_open(int(entry.name))
        except OSError:
            continue
        if _is_marked(entry, marks):
            found.append(pidfd)
        else:
            os.close(pidfd)
    return found


def _is_marked(process: Path, marks: set[bytes]) -> bool:
    try:
        return not marks.isdisjoint((process / "environ").read_bytes().split(b"\0"))
    except OSError:
        return False

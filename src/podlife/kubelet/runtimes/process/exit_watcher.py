"""Detects that containers have exited, and cleans up those whose supervisor was killed.

The kernel reports that a supervisor is gone; its exit record on disk says how the container ended. If the record is
missing, the supervisor was killed: the watcher kills the container's remaining processes and writes the record. Every
exit is reported once, and every waiter is notified.
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

# The kernel reports a supervisor's exit shortly before it releases the lock, much earlier on a busy machine. An exit
# missed here would never be reported.
_EXIT_POLL_SECONDS = (*[0.01] * 100, *[1.0] * 60)
# Delay before retrying to read a container's state, for example when the kubelet has run out of file descriptors.
_RETRY_SECONDS = 1.0
_CLOSE_SECONDS = 60.0
_KILL_SECONDS = 10.0


class ExitWatcher:
    """Calls `on_exit` with every container that has exited, and with None if exits may have been missed."""

    def __init__(
        self, records: Records, clock: Clock, on_exit: Callable[[ContainerRecord | None], None]
    ) -> None:
        self._records = records
        self._clock = clock
        self._on_exit = on_exit
        self._watch = CloseWatch(records.locks, self._supervisor_closed)
        self._containers: Mapping[str, ContainerRecord] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        # IDs of containers whose state could not be read; a retry is scheduled.
        self._unreadable: set[str] = set()
        self._is_open = False

    def open(self) -> None:
        self._watch.open()
        self._is_open = True

    async def follow(self, containers: Mapping[str, ContainerRecord]) -> None:
        """Watch these containers; clean up those whose supervisor was lost before this call."""
        self._containers = containers
        lost = {record.id for record in containers.values() if record.state is ContainerState.UNKNOWN}
        if lost:
            await self._kill_survivors(lost)
            for container_id in lost:
                self._record_lost(containers[container_id])

    async def close(self) -> None:
        self._is_open = False
        self._watch.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_CLOSE_SECONDS)

    def spawn(self, coroutine: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        """Start a task that `close` waits for."""

        def failed(failure: BaseException) -> None:
            # Errors of the runtime are raised to the caller; anything else is a defect.
            if not isinstance(failure, ContainerRuntimeError):
                log.error("cannot %s", name, exc_info=failure)

        task = spawn(coroutine, name=name, on_failure=failed)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def wait_for(self, record: ContainerRecord) -> None:
        """Wait until the container is not running."""
        if record.state in (ContainerState.CREATED, ContainerState.EXITED):
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        record.waiters.append(waiter)
        try:
            await waiter
        finally:
            record.waiters.remove(waiter)

    async def kill_unresponsive(self, record: ContainerRecord, grace_seconds: float) -> None:
        """End a container whose supervisor does not respond; a container with the kubelet's privileges can remove the
        control socket. The supervisor still reaps the processes and records the exit."""
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

    def is_unreadable(self, record: ContainerRecord) -> bool:
        """Whether its state could not be read and a retry is scheduled."""
        return record.id in self._unreadable

    def refresh(self, record: ContainerRecord) -> None:
        """Read the container's state and report its exit; retry later if the state cannot be read."""
        try:
            self._records.refresh(record)
        except OSError as failure:
            self._retry_later(record, failure)
            return
        if record.state is ContainerState.EXITED:
            self._report_exit(record)
        elif record.state is ContainerState.UNKNOWN:
            self.spawn(self._clean_up_lost(record), f"kill survivors of {record.config.name}")

    def _retry_later(self, record: ContainerRecord, failure: OSError) -> None:
        """The kernel reports an exit only once, so a failed read must be retried."""
        if not self._is_open or record.id in self._unreadable:
            return
        log.warning("container %s cannot be inspected, will retry: %s", record.id, failure)
        self._unreadable.add(record.id)
        self.spawn(self._retry(record), f"read the state of {record.config.name} again")

    async def _retry(self, record: ContainerRecord) -> None:
        await asyncio.sleep(_RETRY_SECONDS)
        self._unreadable.discard(record.id)
        if record.id in self._containers:
            self.refresh(record)

    def _supervisor_closed(self, container_id: str | None) -> None:
        if container_id is None:
            self._on_exit(None)
        known = self._containers.values() if container_id is None else [self._containers.get(container_id)]
        for record in [record for record in known if record is not None and not record.is_starting]:
            if record.state is not ContainerState.RUNNING:
                continue
            self.refresh(record)
            if not record.is_exit_reported and container_id is not None and record.id not in self._unreadable:
                self.spawn(self._poll_until_exited(record), f"wait for the exit of {record.config.name}")

    async def _poll_until_exited(self, record: ContainerRecord) -> None:
        for seconds in _EXIT_POLL_SECONDS:
            await asyncio.sleep(seconds)
            if record.state is not ContainerState.RUNNING or record.id not in self._containers:
                return
            if record.id in self._unreadable:
                return
            self.refresh(record)

    async def _clean_up_lost(self, record: ContainerRecord) -> None:
        log.warning("the supervisor of container %s is gone", record.id)
        await self._kill_survivors({record.id})
        if record.id in self._containers:
            self._record_lost(record)
            self._report_exit(record)

    async def _kill_survivors(self, container_ids: set[str]) -> None:
        lost = {container_id: self._records.control_groups(container_id) for container_id in container_ids}
        if not await asyncio.to_thread(kill_survivors, lost):
            log.error(
                "processes of containers without supervisor cannot be killed: %s", sorted(container_ids)
            )

    def _record_lost(self, record: ContainerRecord) -> None:
        now = int(self._clock.now().timestamp() * 1_000_000_000)
        started = int((record.started_at or record.created_at).timestamp() * 1_000_000_000)
        message = "its supervisor was killed or the machine crashed: how it ended is unknown"
        ended = ExitRecord(137, "ContainerStatusUnknown", started, now, message)
        try:
            self._records.save_exit(record, ended)
        except OSError as failure:
            # The disk is full: the exit is known only to this kubelet; the next one concludes the same.
            log.warning("the end of container %s cannot be recorded: %s", record.id, failure)
        record.exit, record.state = ended, ContainerState.EXITED

    def _report_exit(self, record: ContainerRecord) -> None:
        if record.is_exit_reported:
            return
        record.is_exit_reported = True
        for waiter in record.waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._on_exit(record)


def kill_survivors(lost: Mapping[str, Sequence[Path]]) -> bool:
    """Kill all processes of these containers, then remove their cgroups (the values of `lost`).

    The main process dies with its supervisor; its children do not. They are found by a marker in their environment or
    by their cgroups. Returns False if some processes survive until the deadline. Blocking: call it in a thread.
    """
    give_up = time.monotonic() + _KILL_SECONDS
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
            # Open before reading the environment, so that a reused PID is not killed.
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

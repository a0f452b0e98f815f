"""Drives the compute on behalf of the runtime: starts once, stops with a grace period, detects ends.

Each start and stop has its own task, so that it continues when its caller is cancelled. One task waits for changes. An
end is reported once, after its start. A compute that fails or hangs is called again; callers get an error, but nothing
is ever reported as ended unless the compute says so.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import Any, NoReturn

from podlife.aio import cancel_and_wait, spawn, wait_until_set
from podlife.clock import Clock
from podlife.kubelet.runtime import (
    ContainerState,
    EventKind,
    RuntimeEvent,
    RuntimeUnavailableError,
    StartContainerError,
)
from podlife.kubelet.runtimes.custom.compute import Compute, End, Resuming, Work
from podlife.kubelet.runtimes.custom.records import Container, Records, Sandbox
from podlife.kubelet.runtimes.process.supervisor.logfile import LogFile
from podlife.kubelet.runtimes.subscriptions import Subscriptions

log = logging.getLogger(__name__)

_START_SECONDS = 300.0
_CALL_SECONDS = 60.0
_RETRY_SECONDS = 1.0
_BATCH_SECONDS = 0.01
# Attempts to kill a container, and the wait after each, before its callers get an error.
_KILL_TRIES = 10
_KILL_SECONDS = 2.0
_LOG_BYTES, _LOG_FILES = 10 * 1024 * 1024, 5
_LOST = End(
    137, "ContainerStatusUnknown", "the compute no longer knows the container: how it ended is unknown"
)


class Driver:
    def __init__(self, compute: Compute, records: Records, clock: Clock) -> None:
        self.subscriptions = Subscriptions()
        self._compute = compute
        self._records = records
        self._clock = clock
        self._logs: dict[str, LogFile] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._checks = 0

    async def open(self) -> None:
        await self._try_check()
        self._spawn(self._listen(), "changes of the compute")
        if isinstance(self._compute, Resuming):
            self._spawn(self._resume_all(self._compute), "resume running work")

    async def close(self) -> None:
        """Waits for starts in progress; containers keep running."""
        starts = [each.starting for each in self._records.containers.values() if each.starting is not None]
        if starts:
            await asyncio.wait(starts, timeout=5.0)
        await cancel_and_wait(*self._tasks)
        for each in list(self._logs):
            self._close_log(each)

    def publish(self, kind: EventKind, sandbox: Sandbox, container_id: str = "") -> None:
        stored = sandbox.stored
        self.subscriptions.publish(RuntimeEvent(kind, stored.config.pod_uid, stored.id, container_id))

    async def call(self, what: Awaitable[Any]) -> Any:
        """Raises `RuntimeUnavailableError` for any failure."""
        try:
            async with asyncio.timeout(_CALL_SECONDS):
                return await what
        except TimeoutError:
            raise RuntimeUnavailableError(f"the compute did not answer within {_CALL_SECONDS:g} s") from None
        except Exception as error:
            raise RuntimeUnavailableError(
                f"the compute failed: {str(error) or type(error).__name__}"
            ) from error

    # Starting

    def begin(self, container: Container) -> asyncio.Task[None]:
        """Claim it before calling the compute, so that no crash makes it start twice."""
        container.stored.is_claimed = True
        self._records.save(container.stored)
        container.starting = self._spawn(self._start(container), f"start of {container.stored.config.name}")
        return container.starting

    async def _start(self, container: Container) -> None:
        checks = self._checks
        try:
            async with asyncio.timeout(_START_SECONDS):
                await self._compute.start(self._work(container))
        except TimeoutError:
            await self._give_up(container)
        except Exception as error:  # noqa: BLE001 - any error is the reason why the container did not start
            self._fail_start(container, str(error) or type(error).__name__)
        finally:
            container.starting = None
        self._on_started(container)
        if self._checks != checks:
            # It may have ended during a check that did not count it as running yet.
            await self._try_check()

    async def _give_up(self, container: Container) -> NoReturn:
        """After a start that does not return; it may have taken effect."""
        text = f"the compute had not started it after {_START_SECONDS:g} s"
        await self._kill_once(container)
        runs = await self.call(self._compute.runs())
        if container.id in runs and runs[container.id] is None:
            raise RuntimeUnavailableError(f"{text}, and says that it runs")
        self._fail_start(container, text)

    def _fail_start(self, container: Container, why: str) -> NoReturn:
        self._end(container, End(128, "StartError", why))
        raise StartContainerError(f"cannot start container {container.stored.config.name!r}: {why}")

    def _on_started(self, container: Container) -> None:
        container.stored.started_at = self._clock.now()
        self._records.save(container.stored)
        self.publish(EventKind.CONTAINER_STARTED, container.sandbox, container.id)

    def _work(self, container: Container) -> Work:
        stored = container.stored
        return Work(container.id, container.sandbox.stored.config, stored.config, self._log(container))

    async def _resume_all(self, compute: Resuming) -> None:
        for container in list(self._records.containers.values()):
            if container.state is not ContainerState.RUNNING:
                continue
            try:
                await self.call(compute.resume(self._work(container)))
            except RuntimeUnavailableError as error:
                log.warning("output of container %s is lost: %s", container.stored.config.name, error)

    # Stopping

    def ask_to_stop(self, container: Container, grace_seconds: float) -> asyncio.Task[None]:
        """Returns a task that ends with the container, or raises `RuntimeUnavailableError` if it cannot be stopped."""
        kill_at = asyncio.get_running_loop().time() + max(grace_seconds, 0.0)
        if container.kill_at is None or kill_at < container.kill_at:
            container.kill_at = kill_at
            container.changed.set()
        if container.stopping is None or container.stopping.done():
            container.stopping = self._spawn(self._stop(container), f"stop of {container.stored.config.name}")
        return container.stopping

    async def _stop(self, container: Container) -> None:
        loop = asyncio.get_running_loop()
        assert container.kill_at is not None
        request = None
        if container.kill_at > loop.time():
            request = self._spawn(
                self._request_stop(container), f"stop request to {container.stored.config.name}"
            )
        try:
            while container.state is ContainerState.RUNNING and (left := container.kill_at - loop.time()) > 0:
                await self._wait_for_change(container, left)
        finally:
            if request is not None:
                request.cancel()
        for _ in range(_KILL_TRIES):
            if container.state is not ContainerState.RUNNING:
                return
            await self._kill_once(container)
            await self._wait_for_change(container, _KILL_SECONDS)
        if container.state is ContainerState.RUNNING:
            # The next stop request tries again.
            container.kill_at = None
            name = container.stored.config.name
            raise RuntimeUnavailableError(f"the compute has not ended container {name!r}, will retry")

    async def _request_stop(self, container: Container) -> None:
        try:
            await self.call(self._compute.stop(container.id, force=False))
        except RuntimeUnavailableError as error:
            log.warning("stop request to container %s failed: %s", container.stored.config.name, error)

    async def _kill_once(self, container: Container) -> None:
        try:
            await self.call(self._compute.stop(container.id, force=True))
            # Check now: a compute that implements `changed` by sleeping would delay all waiters.
            await self._check()
        except RuntimeUnavailableError as error:
            log.warning("kill of container %s failed: %s", container.stored.config.name, error)

    async def _wait_for_change(self, container: Container, seconds: float) -> None:
        if container.state is not ContainerState.RUNNING:
            return
        container.changed.clear()
        await wait_until_set(container.changed, seconds=seconds)

    # Ends

    async def _listen(self) -> None:
        while True:
            try:
                await self._compute.changed()
                await self._check()
            except Exception as error:  # noqa: BLE001 - third-party code, and this loop must not end
                log.warning("wait for compute changes failed, retrying: %s", error)
                await asyncio.sleep(_RETRY_SECONDS)
            # Batches many ends into one check, and limits a compute that always returns at once.
            await asyncio.sleep(_BATCH_SECONDS)

    async def _try_check(self) -> None:
        try:
            await self._check()
        except RuntimeUnavailableError as error:
            log.warning("%s; retrying", error)

    async def _check(self) -> None:
        """Compare the containers known to be running before the call with what the compute runs."""
        self._checks += 1
        running = [
            each
            for each in self._records.containers.values()
            if each.stored.is_claimed and each.stored.end is None and each.starting is None
        ]
        if not running:
            return
        runs = await self.call(self._compute.runs())
        for container in running:
            end = runs.get(container.id, _LOST)
            if end is not None:
                self._end(container, end)
            elif container.stored.started_at is None:
                # The kubelet died before it learned of the start, or its wait timed out.
                self._on_started(container)

    def _end(self, container: Container, end: End) -> None:
        stored = container.stored
        if stored.end is not None or container.id not in self._records.containers:
            return
        self._close_log(container.id)
        reason = end.reason or ("Completed" if end.exit_code == 0 else "Error")
        stored.end = End(end.exit_code, reason, end.message, end.termination_message)
        stored.finished_at = self._clock.now()
        stored.started_at = stored.started_at or stored.finished_at
        self._records.save(stored)
        container.changed.set()
        self.publish(EventKind.CONTAINER_STOPPED, container.sandbox, container.id)

    def _log(self, container: Container) -> LogFile | None:
        path = container.stored.log_path
        if path is None:
            return None
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = LogFile(str(path), max_bytes=_LOG_BYTES, max_files=_LOG_FILES)
        self._logs[container.id] = file
        return file

    def _close_log(self, container_id: str) -> None:
        if file := self._logs.pop(container_id, None):
            file.end()

    def _spawn(self, coroutine: Any, name: str) -> asyncio.Task[None]:
        # The caller that awaits the task gets the error; without one it is only logged.
        task: asyncio.Task[None] = spawn(
            coroutine, name=name, on_failure=lambda failure: log.debug("%s: %s", name, failure)
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

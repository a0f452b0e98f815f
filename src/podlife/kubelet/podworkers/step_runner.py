"""Runs one step of a pod, and reports its end.

A step that returns at once needs no task. One that is awaited, or whose status is awaited, gets a task of its own that
ends with it: nothing of one step can reach another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from types import CoroutineType
from typing import Any, NoReturn, TypeAlias, TypeGuard

from podlife.errors import PodlifeError
from podlife.kubelet.observed_pod import ObservedPod
from podlife.kubelet.podworkers.interfaces import PodSteps, StatusCache, SyncResult
from podlife.kubelet.podworkers.state import TERMINATED, TERMINATING
from podlife.kubelet.podworkers.step_transitions import StepWork, acknowledge
from podlife.kubelet.podworkers.worker import PodWorker

Result: TypeAlias = SyncResult | None
Ended: TypeAlias = Callable[[PodWorker, Result, BaseException | None], None]


class StatusError(PodlifeError):
    """What the runtime has of the pod could not be told: no step was run."""


# Types that nobody can wait for: to find out costs more than a plain step does.
_PLAIN: set[type] = {SyncResult, type(None)}


def _is_awaitable(value: object) -> TypeGuard[Awaitable[Any]]:
    kind = type(value)
    if kind in _PLAIN:
        return False
    if kind is CoroutineType or hasattr(kind, "__await__"):
        return True
    _PLAIN.add(kind)
    return False


class StepRunner:
    """`ended` is called when a step is over, with what it answered or what it raised; it is the last thing that
    happens to the step."""

    def __init__(self, steps: PodSteps, cache: StatusCache, ended: Ended) -> None:
        self._steps = steps
        self._cache = cache
        self._ended = ended

    def start(self, worker: PodWorker, work: StepWork, group: asyncio.TaskGroup) -> None:
        worker.work = work
        is_status = False
        try:
            coming: Any = None
            if work.update.running is None:
                coming = self._cache.get_newer_than(worker.uid, worker.stepped_at)
                is_status = _is_awaitable(coming)
            if not is_status:
                coming = self._call(worker, work, coming)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - it is about this pod alone
            # Nothing was waited for: a cancellation can only be of the step's own making.
            self._ended(worker, None, error if worker.has_stepped else _status_error(error))
            return
        if is_status or _is_awaitable(coming):
            waiting = self._wait(worker, work, coming, is_status=is_status)
            group.create_task(waiting, name=f"pod worker {worker.uid}")
        else:
            self._ended(worker, coming, None)

    def cancel(self, worker: PodWorker) -> None:
        """The step's work is overtaken. It is told once: it may take its time to clean up. A task that has not begun is
        not cancelled, it would end without anybody knowing: it looks for itself."""
        if worker.work is not None and not worker.is_cancelled:
            worker.is_cancelled = True
            if worker.task is not None:
                worker.task.cancel()

    def _call(
        self, worker: PodWorker, work: StepWork, status: ObservedPod | None
    ) -> Result | Awaitable[Result]:
        """The stage decides (PW-82)."""
        worker.has_stepped = True
        update = work.update
        if work.stage is TERMINATING:
            state = worker.state = acknowledge(worker.state)
            if update.running is not None:
                return self._steps.sync_terminating_runtime_pod(update.running)
            assert update.pod is not None
            assert status is not None
            grace_seconds = None if update.kill is None else update.kill.grace_seconds
            return self._steps.sync_terminating_pod(update.pod, status, grace_seconds, state.status_override)
        assert update.pod is not None
        assert status is not None
        if work.stage is TERMINATED:
            return self._steps.sync_terminated_pod(update.pod, status)
        return self._steps.sync_pod(update.type, update.pod, update.mirror, status)

    async def _wait(self, worker: PodWorker, work: StepWork, coming: Any, *, is_status: bool) -> None:
        task = worker.task = asyncio.current_task()
        assert task is not None
        result: Result = None
        failure: BaseException | None = None
        try:
            if worker.is_cancelled:
                worker.has_stepped = False
                _abandon(coming)
            if is_status:
                coming = self._call(worker, work, await _coming_status(coming))
            result = await coming if _is_awaitable(coming) else coming
        except asyncio.CancelledError as error:
            if task.cancelling() > worker.is_cancelled:
                # Not only the step: the workers themselves are to end.
                raise
            failure = error
        except Exception as error:  # noqa: BLE001 - whatever a step raises, it is about this pod alone
            failure = error
        finally:
            worker.task = None
        self._ended(worker, result, failure)


async def _coming_status(coming: Awaitable[ObservedPod]) -> ObservedPod:
    try:
        return await coming
    except Exception as error:
        raise _status_error(error) from error


def _status_error(error: BaseException) -> StatusError:
    told = StatusError(f"error determining status: {error}")
    told.__cause__ = error
    return told


def _abandon(coming: Awaitable[Any]) -> NoReturn:
    """It was overtaken before it was begun: there is nothing to clean up."""
    if isinstance(coming, Coroutine):
        coming.close()
    elif isinstance(coming, asyncio.Future):
        coming.cancel()
    raise asyncio.CancelledError

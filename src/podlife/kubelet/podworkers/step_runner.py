"""Runs one step of a pod, and reports its end.

A step, and the cache that it reads, may answer at once or with something to wait for. A step that returns at once costs
no task: use `def` where a step is trivial, `async def` where it is not. One that is awaited, or whose status is
awaited, gets a task of its own that ends with it: nothing of one step can reach another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from types import CoroutineType
from typing import Any, NoReturn, Protocol, TypeAlias, TypeGuard

import msgspec

from podlife.errors import PodlifeError
from podlife.kubelet.observed_pod import ObservedPod
from podlife.kubelet.pod import NodePod, RunningPod
from podlife.kubelet.podworkers.state import TERMINATED, TERMINATING, PodState, StatusOverride, UpdateType
from podlife.kubelet.podworkers.transitions import StepWork, acknowledge
from podlife.workqueue import Distribution


class StatusCache(Protocol):
    def get(self, uid: str) -> ObservedPod:
        """What is known now. Raises whatever kept it from being known."""

    def get_newer_than(self, uid: str, seconds: float | None) -> ObservedPod | Awaitable[ObservedPod]:
        """What was observed after that moment (the workers' time), once there is such; with None, what is known now."""


class SyncResult(msgspec.Struct, frozen=True):
    """What came of a sync: whether the pod has ended by itself, and what is to be done right after the step."""

    is_terminal: bool = False
    after: Callable[[], None] | None = None


class PodSteps(Protocol):
    """Each is called again until it does not raise. At most one of them runs for a pod; for different pods they run
    together. A step that is awaited is cancelled when its work is overtaken (the pod is to end, or sooner); it may
    clean up, or finish."""

    def sync_pod(
        self, type_: UpdateType, pod: NodePod, mirror: NodePod | None, status: ObservedPod
    ) -> SyncResult | Awaitable[SyncResult]:
        """Bring the pod to what it should be: start and restart containers."""

    def sync_terminating_pod(
        self, pod: NodePod, status: ObservedPod, grace_seconds: int | None, override: StatusOverride | None
    ) -> Awaitable[None] | None:
        """Stop all containers; when it does not raise, none is running. Without grace the pod's own counts."""

    def sync_terminating_runtime_pod(self, running: RunningPod) -> Awaitable[None] | None:
        """Stop what runs of a pod that nobody knows any more."""

    def sync_terminated_pod(self, pod: NodePod, status: ObservedPod) -> Awaitable[None] | None:
        """Release what the pod held; when it does not raise, the pod is finished on this node."""


class PodWorker:
    """What belongs to a UID besides its state: whether it is queued, and the step that is running."""

    __slots__ = ("has_stepped", "is_cancelled", "is_queued", "state", "stepped_at", "task", "uid", "work")

    def __init__(self, uid: str, state: PodState) -> None:
        self.uid = uid
        self.state = state
        # It stands in line for its next step.
        self.is_queued = False
        # The step that is running, if one is; its task, if it is waited for; whether that was cancelled from here.
        self.work: StepWork | None = None
        self.task: asyncio.Task[None] | None = None
        self.is_cancelled = False
        # The step itself was called: until then only the status for it was waited for.
        self.has_stepped = False
        # When its last step ended; the next one is to see what the runtime said after that.
        self.stepped_at: float | None = None

    @property
    def is_working(self) -> bool:
        return self.is_queued or self.work is not None


# Prometheus' own defaults, which upstream uses for both, so that dashboards fit.
_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_OPERATIONS = ("create", "update", "sync", "kill", "terminated")


class WorkerMetrics:
    def __init__(self) -> None:
        # From the moment a change arrived at the kubelet to the end of the step that saw it, by operation (PW-190).
        self.worker_seconds = {operation: Distribution(_BOUNDS) for operation in _OPERATIONS}
        # Of every pod, when it is first let run (PW-73).
        self.containers_per_pod = Distribution(_BOUNDS)
        # Steps that failed, of those that were not cancelled.
        self.failures = 0


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
    """`ended` is called last of all, with what a step returned or raised."""

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

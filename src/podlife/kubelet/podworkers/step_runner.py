"""Runs one step of a pod and reports its result.

Steps and the cache may return a result or an awaitable. A step that returns a result needs no task: use `def` for a
trivial step, `async def` otherwise. An awaited step or status gets its own task, so that one step cannot affect
another.
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
        """The current status. Raises the error of the last observation if that failed."""

    def get_newer_than(self, uid: str, seconds: float | None) -> ObservedPod | Awaitable[ObservedPod]:
        """The first status observed after that time (monotonic); with None, the current one."""


class SyncResult(msgspec.Struct, frozen=True):
    """The result of a sync: whether the pod reached a terminal phase, and a callback to run right after the step."""

    is_terminal: bool = False
    after: Callable[[], None] | None = None


class PodSteps(Protocol):
    """Each step is retried until it does not raise. At most one runs per pod; steps of different pods run concurrently.
    An awaited step is cancelled when a newer update supersedes it (termination, or a shorter grace period); it may
    clean up or finish."""

    def sync_pod(
        self, type_: UpdateType, pod: NodePod, mirror: NodePod | None, status: ObservedPod
    ) -> SyncResult | Awaitable[SyncResult]:
        """Start and restart containers so that the pod matches its spec."""

    def sync_terminating_pod(
        self, pod: NodePod, status: ObservedPod, grace_seconds: int | None, override: StatusOverride | None
    ) -> Awaitable[None] | None:
        """Stop all containers; none runs when this returns. `grace_seconds` None means the pod's own grace period."""

    def sync_terminating_runtime_pod(self, running: RunningPod) -> Awaitable[None] | None:
        """Stop the containers of a pod that is known only from the runtime."""

    def sync_terminated_pod(self, pod: NodePod, status: ObservedPod) -> Awaitable[None] | None:
        """Release the pod's resources; when this returns, the pod is finished on this node."""


class PodWorker:
    """Bookkeeping of a UID beside its state: whether it is queued, and the running step."""

    __slots__ = ("has_stepped", "is_cancelled", "is_queued", "state", "stepped_at", "task", "uid", "work")

    def __init__(self, uid: str, state: PodState) -> None:
        self.uid = uid
        self.state = state
        # Queued for its next step.
        self.is_queued = False
        # The running step; its task if it is awaited; whether `StepRunner.cancel` cancelled it.
        self.work: StepWork | None = None
        self.task: asyncio.Task[None] | None = None
        self.is_cancelled = False
        # The step itself was called; before that, only its status was awaited.
        self.has_stepped = False
        # When the last step ended; the next one needs a status observed after that.
        self.stepped_at: float | None = None

    @property
    def is_working(self) -> bool:
        return self.is_queued or self.work is not None


# The default buckets of Prometheus, which upstream uses for both histograms.
_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_OPERATIONS = ("create", "update", "sync", "kill", "terminated")


class WorkerMetrics:
    def __init__(self) -> None:
        # From the kubelet's receipt of a change to the end of the step that handled it, by operation (PW-190).
        self.worker_seconds = {operation: Distribution(_BOUNDS) for operation in _OPERATIONS}
        # Observed when a pod first starts (PW-73).
        self.containers_per_pod = Distribution(_BOUNDS)
        # Failed steps, without cancelled ones.
        self.failures = 0


Result: TypeAlias = SyncResult | None
OnStepDone: TypeAlias = Callable[[PodWorker, Result, BaseException | None], None]


class StatusError(PodlifeError):
    """The pod's runtime status could not be determined; no step was run."""


# Types known not to be awaitable: the check costs more than a trivial step.
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
    """Calls `on_done` last, with the step's result or error."""

    def __init__(self, steps: PodSteps, cache: StatusCache, on_done: OnStepDone) -> None:
        self._steps = steps
        self._cache = cache
        self._on_done = on_done

    def start(self, worker: PodWorker, work: StepWork, group: asyncio.TaskGroup) -> None:
        worker.work = work
        is_status = False
        try:
            pending: Any = None
            if work.update.running is None:
                pending = self._cache.get_newer_than(worker.uid, worker.stepped_at)
                is_status = _is_awaitable(pending)
            if not is_status:
                pending = self._call(worker, work, pending)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - affects only this pod
            # Nothing was awaited, so a cancellation was raised by the step itself.
            self._on_done(worker, None, error if worker.has_stepped else _status_error(error))
            return
        if is_status or _is_awaitable(pending):
            waiting = self._wait(worker, work, pending, is_status=is_status)
            group.create_task(waiting, name=f"pod worker {worker.uid}")
        else:
            self._on_done(worker, pending, None)

    def cancel(self, worker: PodWorker) -> None:
        """Cancel a superseded step, once: it may take its time to clean up. A task that has not begun is not cancelled,
        since it would end unnoticed; it checks the flag itself."""
        if worker.work is not None and not worker.is_cancelled:
            worker.is_cancelled = True
            if worker.task is not None:
                worker.task.cancel()

    def _call(
        self, worker: PodWorker, work: StepWork, status: ObservedPod | None
    ) -> Result | Awaitable[Result]:
        """Call the step of the pod's stage (PW-82)."""
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

    async def _wait(self, worker: PodWorker, work: StepWork, pending: Any, *, is_status: bool) -> None:
        task = worker.task = asyncio.current_task()
        assert task is not None
        result: Result = None
        failure: BaseException | None = None
        try:
            if worker.is_cancelled:
                worker.has_stepped = False
                _abandon(pending)
            if is_status:
                pending = self._call(worker, work, await _await_status(pending))
            result = await pending if _is_awaitable(pending) else pending
        except asyncio.CancelledError as error:
            if task.cancelling() > worker.is_cancelled:
                # The workers themselves are being cancelled.
                raise
            failure = error
        except Exception as error:  # noqa: BLE001 - affects only this pod
            failure = error
        finally:
            worker.task = None
        self._on_done(worker, result, failure)


async def _await_status(pending: Awaitable[ObservedPod]) -> ObservedPod:
    try:
        return await pending
    except Exception as error:
        raise _status_error(error) from error


def _status_error(error: BaseException) -> StatusError:
    status_error = StatusError(f"error determining status: {error}")
    status_error.__cause__ = error
    return status_error


def _abandon(pending: Awaitable[Any]) -> NoReturn:
    """Discard work that was superseded before it began."""
    if isinstance(pending, Coroutine):
        pending.close()
    elif isinstance(pending, asyncio.Future):
        pending.cancel()
    raise asyncio.CancelledError

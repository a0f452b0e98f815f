"""The pod workers: take every update about the pods of a node, and run the steps of each pod.

Guarantees:
- One step at a time runs for a UID, and it sees the newest update.
- A pod whose termination was requested never starts again.
- Each kill waiter is notified exactly once.
- A failed step is logged and retried later, and does not delay other pods.

`transitions` decides; this module executes. An idle pod has no task, and neither has a step that returns at once. The
kubelet implements the steps and sends a sync for pods that are due.

Other components query a pod by UID. The result for an unknown UID changes with the first `sync_known_pods`: before it
the pod may not have arrived yet, after it the pod does not exist.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import Callable, Container, Iterator
from typing import ParamSpec

from msgspec.structs import replace

from podlife.kubelet.due_queue import DueQueue
from podlife.kubelet.object_reference import pod_reference
from podlife.kubelet.pod import NodePod
from podlife.kubelet.pod_events import EventRecorder
from podlife.kubelet.podworkers.delays import Delays, delay_after, retry_delay
from podlife.kubelet.podworkers.state import (
    CANCEL_STEP,
    QUEUE_FOR_NAME,
    TERMINATING,
    WAKE,
    Action,
    KillOutcome,
    NotifyWaiters,
    PodState,
    PodUpdate,
    full_name,
    has_ended,
    is_static,
)
from podlife.kubelet.podworkers.static_names import LATER, NEVER, NOW, StaticAdmission, StaticNames
from podlife.kubelet.podworkers.step_runner import (
    PodSteps,
    PodWorker,
    StatusCache,
    StatusError,
    StepRunner,
    SyncResult,
    WorkerMetrics,
)
from podlife.kubelet.podworkers.transitions import (
    KnownPod,
    StepWork,
    accept,
    begin,
    end_before_start,
    known_pod,
    review,
    succeed,
)

log = logging.getLogger(__name__)

Q = ParamSpec("Q")

# Maximum number of steps started before other tasks of the event loop run.
_BATCH = 100


def _ignore(uid: str) -> None: ...


class PodWorkers:
    """`seconds` returns monotonic time, by default the event loop's; `chance` a number between 0 and 1. `failed` is
    called with the UID of each pod whose step failed: only that retries a pod that left the node's configuration
    (PW-101)."""

    def __init__(
        self,
        steps: PodSteps,
        cache: StatusCache,
        recorder: EventRecorder,
        *,
        delays: Delays | None = None,
        seconds: Callable[[], float] | None = None,
        chance: Callable[[], float] = random.random,
        failed: Callable[[str], None] = _ignore,
    ) -> None:
        self.metrics = WorkerMetrics()
        # Pods to sync again, and when; the kubelet sends a sync for those it still has.
        self.retries = DueQueue()
        # Read-only for other components.
        self.static_names = StaticNames()
        self._workers: dict[str, PodWorker] = {}
        self._has_synced = False
        self._cache = cache
        self._runner = StepRunner(steps, cache, self._step_done)
        self._recorder = recorder
        self._delays = delays or Delays()
        self._seconds = seconds or self._init_seconds
        self._chance = chance
        self._failed = failed
        self._ready: deque[PodWorker] = deque()
        self._wakeup = asyncio.Event()
        self._is_closed = False

    def update_pod(self, update: PodUpdate) -> None:
        """Accept an update; neither waits nor runs a step. Raises ValueError for an update without a pod."""
        uid = update.uid
        worker = self._workers.get(uid)
        if self._is_closed:
            if update.kill is not None and update.kill.waiter is not None:
                _notify(NotifyWaiters((update.kill.waiter,), KillOutcome.CLOSED))
            return
        if worker is not None:
            state, actions = accept(worker.state, update, self._seconds())
            assert state is not None
            worker.state = state
        else:
            state, actions = accept(None, update, self._seconds(), is_stopped=self._has_stopped(update))
            if state is not None:
                worker = self._workers[uid] = PodWorker(uid, state)
        self._execute(worker, actions)

    def sync_known_pods(self, desired: Container[str]) -> dict[str, KnownPod]:
        """Compare with the desired UIDs: forget finished pods and terminate unwanted ones. Returns the pods that remain
        known; the caller has to create a desired pod that is missing."""
        self._has_synced = True
        now = self._seconds()
        known: dict[str, KnownPod] = {}
        for uid, worker in list(self._workers.items()):
            # A waiter notified in this loop may have called this method.
            if self._workers.get(uid) is not worker:
                continue
            is_orphan = uid not in desired
            state, actions = review(worker.state, now, is_orphan=is_orphan)
            if state is None:
                self._forget(worker)
            else:
                worker.state = state
                known[uid] = known_pod(state, is_orphan=is_orphan)
            self._execute(worker, actions)
        return known

    # Queries

    def __len__(self) -> int:
        return len(self._workers)

    def __iter__(self) -> Iterator[str]:
        return iter(self._workers)

    def state(self, uid: str) -> PodState | None:
        worker = self._workers.get(uid)
        return None if worker is None else worker.state

    def known_pods(self, desired: Container[str]) -> dict[str, KnownPod]:
        """What `sync_known_pods` would return, without changing anything."""
        return {
            uid: known_pod(each.state, is_orphan=uid not in desired) for uid, each in self._workers.items()
        }

    def is_working(self, uid: str) -> bool:
        worker = self._workers.get(uid)
        return worker is not None and worker.is_working

    def is_known_terminated(self, uid: str) -> bool:
        """All its containers have stopped, and the pod is still known (PW-170)."""
        state = self.state(uid)
        return state is not None and state.is_terminated

    def could_have_running_containers(self, uid: str) -> bool:
        """Not yet terminated; an unknown pod counts until the first SyncKnownPods (PW-171)."""
        state = self.state(uid)
        return not self._has_synced if state is None else not state.is_terminated

    def is_finished(self, uid: str) -> bool:
        """Its last step is done, or the pod does not exist (PW-172)."""
        state = self.state(uid)
        return self._has_synced if state is None else state.is_finished

    def is_termination_requested(self, uid: str) -> bool:
        """Termination was requested; containers may still be starting (PW-173)."""
        state = self.state(uid)
        return state is not None and state.is_termination_requested

    def should_containers_be_terminating(self, uid: str) -> bool:
        """None of its containers will be started again (PW-174)."""
        state = self.state(uid)
        return self._has_synced if state is None else state.is_acknowledged

    def should_runtime_be_removed(self, uid: str) -> bool:
        """Resources of its running containers can be removed (PW-175)."""
        state = self.state(uid)
        return self._has_synced if state is None else state.is_terminated

    def should_content_be_removed(self, uid: str) -> bool:
        """Its data on disk can be removed: at once if evicted (PW-177), once stopped if deleted (PW-176)."""
        state = self.state(uid)
        if state is None:
            return self._has_synced
        return state.is_evicted or (state.is_deleted and state.is_terminated)

    def is_static_pod_terminating(self, full_name: str) -> bool:
        """The static pod behind a mirror pod of that name is still being stopped (PW-178)."""
        holder = self.static_names.holder(full_name)
        state = None if holder is None else self.state(holder)
        return state is not None and state.is_termination_requested and not state.is_terminated

    # Running the steps

    async def run(self) -> None:
        """Run steps until cancelled; then cancel running steps, wait for them, and notify the remaining kill waiters
        with CLOSED. Call once."""
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    await self._wakeup.wait()
                    self._wakeup.clear()
                    while self._ready:
                        self._begin_batch(group)
                        await asyncio.sleep(0)
        finally:
            self._close()

    def _close(self) -> None:
        """Keep the states: an empty result would look as if the pods were gone."""
        self._is_closed = True
        self._ready.clear()
        for worker in list(self._workers.values()):
            waiters = worker.state.waiters
            worker.state = replace(worker.state, waiters=())
            _notify(NotifyWaiters(waiters, KillOutcome.CLOSED))

    def _begin_batch(self, group: asyncio.TaskGroup) -> None:
        for _ in range(min(len(self._ready), _BATCH)):
            worker = self._ready.popleft()
            worker.is_queued = False
            # The pod may have been forgotten while it was queued.
            if self._workers.get(worker.uid) is worker:
                self._begin(worker, group)

    def _begin(self, worker: PodWorker, group: asyncio.TaskGroup) -> None:
        state, update = worker.state, worker.state.pending
        if update is None:
            return
        now = self._seconds()
        # A pod known only from the runtime is already running (PW-72).
        is_start = state.started_at is None and update.running is None
        if is_start:
            assert update.pod is not None
            admission = self._admission(worker, update.pod)
            if admission is LATER:
                self.retries.put(worker.uid, now + retry_delay(self._delays, self._chance()))
                return
            if admission is NEVER:
                worker.state, actions = end_before_start(state, now)
                self._measure("terminated", update, now)
                self._execute(worker, actions)
                return
            self.metrics.containers_per_pod.observe(len(update.pod.spec.containers))
        worker.state, work = begin(state, update, now, is_start=is_start)
        self._runner.start(worker, work, group)

    def _admission(self, worker: PodWorker, pod: NodePod) -> StaticAdmission:
        # What the runtime has must be stopped, regardless of who holds the name.
        if worker.state.is_seen_in_runtime or not is_static(pod):
            return NOW
        return self.static_names.admit(full_name(pod), worker.uid, self._is_alive)

    def _init_seconds(self) -> float:
        # Looked up once: the workers always run on the same loop.
        self._seconds = asyncio.get_running_loop().time
        return self._seconds()

    def _is_alive(self, uid: str) -> bool:
        state = self.state(uid)
        return state is not None and not state.is_termination_requested

    def _step_done(self, worker: PodWorker, synced: SyncResult | None, error: BaseException | None) -> None:
        work, now = worker.work, self._seconds()
        assert work is not None
        if worker.has_stepped:
            worker.stepped_at = now
        elif isinstance(error, StatusError) and work.update.pod is not None:
            regarding = pod_reference(work.update.pod)
            _call_safely(self._recorder.event, regarding, "Warning", "FailedSync", str(error))
        worker.work, worker.is_cancelled, worker.has_stepped = None, False, False
        is_terminal = False
        # A step that returns a wrong type must not stop the workers.
        if isinstance(synced, SyncResult):
            is_terminal = synced.is_terminal
            if synced.after is not None:
                _call_safely(synced.after)
        if error is not None:
            self._on_failure(worker, work, error)
        elif self._on_success(worker, work, now, is_terminal=is_terminal):
            return
        is_transition = error is None and (is_terminal or work.stage is TERMINATING)
        delay = delay_after(self._delays, error, now, is_transition=is_transition, random=self._chance())
        self.retries.put(worker.uid, now + delay)
        self._measure(work.update.type.value, work.update, now)
        if worker.state.pending is not None:
            self._wake(worker)

    def _on_success(self, worker: PodWorker, work: StepWork, now: float, *, is_terminal: bool) -> bool:
        """Returns whether this successful step was the pod's last one."""
        state, actions = succeed(worker.state, work, now, is_terminal=is_terminal)
        if state is None:
            self._forget(worker)
            self._measure(work.update.type.value, work.update, now)
        else:
            worker.state = state
            if state.is_finished:
                self._measure("terminated", work.update, now)
        if actions:
            self._execute(worker, actions)
        return state is None or state.is_finished

    def _on_failure(self, worker: PodWorker, work: StepWork, error: BaseException) -> None:
        if isinstance(error, asyncio.CancelledError):
            log.debug("pod %s: %s step cancelled", worker.uid, work.stage.value)
            return
        self.metrics.failures += 1
        log.error("pod %s: %s step failed, will retry: %r", worker.uid, work.stage.value, error)
        _call_safely(self._failed, worker.uid)

    def _measure(self, operation: str, update: PodUpdate, now: float) -> None:
        if update.asked_at is not None:
            self.metrics.worker_seconds[operation].observe(now - update.asked_at)

    def _execute(self, worker: PodWorker | None, actions: tuple[Action, ...]) -> None:
        """Execute actions. The state is set before: a notified waiter may query it at once."""
        for action in actions:
            if isinstance(action, NotifyWaiters):
                _notify(action)
                continue
            assert worker is not None
            if action is WAKE:
                self._wake(worker)
            elif action is CANCEL_STEP:
                self._runner.cancel(worker)
            elif action is QUEUE_FOR_NAME:
                pod = worker.state.config
                assert pod is not None
                self.static_names.enqueue(full_name(pod), worker.uid)
            else:
                self.static_names.release(worker.uid)
                self.retries.forget(worker.uid)

    def _wake(self, worker: PodWorker) -> None:
        """Does nothing while a step runs: `_step_done` checks for a pending update (PW-01)."""
        if worker.work is None and not worker.is_queued:
            worker.is_queued = True
            if not self._ready:
                self._wakeup.set()
            self._ready.append(worker)

    def _forget(self, worker: PodWorker) -> None:
        del self._workers[worker.uid]
        self.static_names.forget(worker.uid)
        self.retries.forget(worker.uid)

    def _has_stopped(self, update: PodUpdate) -> bool:
        """For a pod in a terminal phase when first seen; False if its status cannot be read (PW-14)."""
        if update.pod is None or not has_ended(update.pod):
            return False
        try:
            return self._cache.get(update.pod.metadata.uid).is_stopped
        except Exception as error:  # noqa: BLE001 - then the pod goes through all termination steps
            log.debug("pod %s: runtime status unavailable: %r", update.uid, error)
            return False


def _notify(action: NotifyWaiters) -> None:
    for waiter in action.waiters:
        _call_safely(waiter, action.outcome)


def _call_safely(callback: Callable[Q, None], *arguments: Q.args, **options: Q.kwargs) -> None:
    try:
        callback(*arguments, **options)
    except Exception:
        # A foreign callback must affect neither the pod nor other waiters.
        log.exception("a callback of the pod workers failed")

"""The pod workers: take every update about the pods of a node, and run the steps of each pod.

Guarantees:
- One step at a time runs for a UID, and it sees the newest update.
- A pod that was asked to end never starts again.
- Each kill waiter is notified exactly once.
- A step that fails is logged, tried again later, and does not delay other pods.

The decisions are in `transitions`; they are carried out here. An idle pod has no task, and a step that returns at once
needs none. What the steps do, and sending a sync for the pods that are due, is left to the kubelet.

Other parts ask about a pod by UID. The answers about an unknown UID change once the node's configuration has been
compared for the first time: before that the pod may not have arrived yet, after it there is no such pod.
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
    LINE_UP,
    TERMINATING,
    WAKE,
    Action,
    KillAnswer,
    KillOutcome,
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

# So many steps are begun before others on the loop get their turn.
_BATCH = 100


def _ignore(uid: str) -> None: ...


class PodWorkers:
    """`seconds` tells the workers' own time, the event loop's unless given; `chance` a number between 0 and 1.
    `failed` is called with the UID of each pod whose step failed: nobody else retries one that left the node's
    configuration (PW-101)."""

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
        # What is to be looked at again, and when: the kubelet takes it and sends a sync for the pods it still has.
        self.retries = DueQueue()
        # Which static pod holds which name, and which wait for it; for reading.
        self.static_names = StaticNames()
        self._workers: dict[str, PodWorker] = {}
        self._has_synced = False
        self._cache = cache
        self._runner = StepRunner(steps, cache, self._ended)
        self._recorder = recorder
        self._delays = delays or Delays()
        self._seconds = seconds or self._first_seconds
        self._chance = chance
        self._failed = failed
        self._ready: deque[PodWorker] = deque()
        self._wakeup = asyncio.Event()
        self._is_closed = False

    def update_pod(self, update: PodUpdate) -> None:
        """Accept an update; never waits, and runs no step itself. Raises ValueError for an update about no pod."""
        uid = update.uid
        worker = self._workers.get(uid)
        if self._is_closed:
            if update.kill is not None and update.kill.waiter is not None:
                _answer(KillAnswer((update.kill.waiter,), KillOutcome.CLOSED))
            return
        if worker is not None:
            state, actions = accept(worker.state, update, self._seconds())
            assert state is not None
            worker.state = state
        else:
            state, actions = accept(None, update, self._seconds(), is_stopped=self._has_stopped(update))
            if state is not None:
                worker = self._workers[uid] = PodWorker(uid, state)
        self._do(worker, actions)

    def sync_known_pods(self, desired: Container[str]) -> dict[str, KnownPod]:
        """Compare with the UIDs that the node should have: forget what has ended, bring what is not wanted to its end.
        Tells what remains known. A wanted pod that is not in it has to be created by the caller."""
        self._has_synced = True
        now = self._seconds()
        known: dict[str, KnownPod] = {}
        for uid, worker in list(self._workers.items()):
            # Whoever is told something on the way may have asked for the same.
            if self._workers.get(uid) is not worker:
                continue
            is_orphan = uid not in desired
            state, actions = review(worker.state, now, is_orphan=is_orphan)
            if state is None:
                self._forget(worker)
            else:
                worker.state = state
                known[uid] = known_pod(state, is_orphan=is_orphan)
            self._do(worker, actions)
        return known

    # What other parts ask

    def __len__(self) -> int:
        return len(self._workers)

    def __iter__(self) -> Iterator[str]:
        return iter(self._workers)

    def state(self, uid: str) -> PodState | None:
        worker = self._workers.get(uid)
        return None if worker is None else worker.state

    def known_pods(self, desired: Container[str]) -> dict[str, KnownPod]:
        """What `sync_known_pods` would tell of each, without changing any."""
        return {
            uid: known_pod(each.state, is_orphan=uid not in desired) for uid, each in self._workers.items()
        }

    def is_working(self, uid: str) -> bool:
        worker = self._workers.get(uid)
        return worker is not None and worker.is_working

    def is_known_terminated(self, uid: str) -> bool:
        """The workers saw that all its containers have stopped, and remember it (PW-170)."""
        state = self.state(uid)
        return state is not None and state.is_terminated

    def could_have_running_containers(self, uid: str) -> bool:
        """Not yet terminated; an unknown pod counts until the first SyncKnownPods (PW-171)."""
        state = self.state(uid)
        return not self._has_synced if state is None else not state.is_terminated

    def is_finished(self, uid: str) -> bool:
        """Its last step is done, or there is no such pod (PW-172)."""
        state = self.state(uid)
        return self._has_synced if state is None else state.is_finished

    def is_termination_requested(self, uid: str) -> bool:
        """It is to end; containers may still be starting (PW-173)."""
        state = self.state(uid)
        return state is not None and state.is_termination_requested

    def should_containers_be_terminating(self, uid: str) -> bool:
        """No container of it is started any more (PW-174)."""
        state = self.state(uid)
        return self._has_synced if state is None else state.is_acknowledged

    def should_runtime_be_removed(self, uid: str) -> bool:
        """What its containers used while they ran can go (PW-175)."""
        state = self.state(uid)
        return self._has_synced if state is None else state.is_terminated

    def should_content_be_removed(self, uid: str) -> bool:
        """What it left on disk can go: at once if evicted (PW-177), when it has stopped if deleted (PW-176)."""
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
        """Run the steps, until it is cancelled. Those that are running are cancelled then, and waited for; whoever
        still waits for a kill is told that nothing is known. To be called once."""
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    await self._wakeup.wait()
                    self._wakeup.clear()
                    while self._ready:
                        self._begin_some(group)
                        await asyncio.sleep(0)
        finally:
            self._close()

    def _close(self) -> None:
        """What is known stays known: who asks now must not take it for pods that are gone."""
        self._is_closed = True
        self._ready.clear()
        for worker in list(self._workers.values()):
            waiters = worker.state.waiters
            worker.state = replace(worker.state, waiters=())
            _answer(KillAnswer(waiters, KillOutcome.CLOSED))

    def _begin_some(self, group: asyncio.TaskGroup) -> None:
        for _ in range(min(len(self._ready), _BATCH)):
            worker = self._ready.popleft()
            worker.is_queued = False
            # It may have been forgotten while it stood in line.
            if self._workers.get(worker.uid) is worker:
                self._begin(worker, group)

    def _begin(self, worker: PodWorker, group: asyncio.TaskGroup) -> None:
        state, update = worker.state, worker.state.pending
        if update is None:
            return
        now = self._seconds()
        # What is only known from the runtime runs already (PW-72).
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
                self._do(worker, actions)
                return
            self.metrics.containers_per_pod.observe(len(update.pod.spec.containers))
        worker.state, work = begin(state, update, now, is_start=is_start)
        self._runner.start(worker, work, group)

    def _admission(self, worker: PodWorker, pod: NodePod) -> StaticAdmission:
        # What the runtime was seen to have has to be stopped, whoever started it.
        if worker.state.is_seen_in_runtime or not is_static(pod):
            return NOW
        return self.static_names.admit(full_name(pod), worker.uid, self._is_alive)

    def _first_seconds(self) -> float:
        # All that happens to the workers happens on one loop: it is asked for once.
        self._seconds = asyncio.get_running_loop().time
        return self._seconds()

    def _is_alive(self, uid: str) -> bool:
        state = self.state(uid)
        return state is not None and not state.is_termination_requested

    def _ended(self, worker: PodWorker, synced: SyncResult | None, error: BaseException | None) -> None:
        work, now = worker.work, self._seconds()
        assert work is not None
        if worker.has_stepped:
            worker.stepped_at = now
        elif isinstance(error, StatusError) and work.update.pod is not None:
            regarding = pod_reference(work.update.pod)
            _call_safely(self._recorder.event, regarding, "Warning", "FailedSync", str(error))
        worker.work, worker.is_cancelled, worker.has_stepped = None, False, False
        is_terminal = False
        # A step may answer what it should not: that is no reason to end all the others.
        if isinstance(synced, SyncResult):
            is_terminal = synced.is_terminal
            if synced.after is not None:
                _call_safely(synced.after)
        if error is not None:
            self._note_failure(worker, work, error)
        elif self._move_on(worker, work, now, is_terminal=is_terminal):
            return
        is_transition = error is None and (is_terminal or work.stage is TERMINATING)
        delay = delay_after(self._delays, error, now, is_transition=is_transition, random=self._chance())
        self.retries.put(worker.uid, now + delay)
        self._measure(work.update.type.value, work.update, now)
        if worker.state.pending is not None:
            self._wake(worker)

    def _move_on(self, worker: PodWorker, work: StepWork, now: float, *, is_terminal: bool) -> bool:
        """The step succeeded; says whether it was the pod's last one."""
        state, actions = succeed(worker.state, work, now, is_terminal=is_terminal)
        if state is None:
            self._forget(worker)
            self._measure(work.update.type.value, work.update, now)
        else:
            worker.state = state
            if state.is_finished:
                self._measure("terminated", work.update, now)
        if actions:
            self._do(worker, actions)
        return state is None or state.is_finished

    def _note_failure(self, worker: PodWorker, work: StepWork, error: BaseException) -> None:
        if isinstance(error, asyncio.CancelledError):
            log.debug("pod %s: %s step cancelled", worker.uid, work.stage.value)
            return
        self.metrics.failures += 1
        log.error("pod %s: %s step failed, will retry: %r", worker.uid, work.stage.value, error)
        _call_safely(self._failed, worker.uid)

    def _measure(self, operation: str, update: PodUpdate, now: float) -> None:
        if update.asked_at is not None:
            self.metrics.worker_seconds[operation].observe(now - update.asked_at)

    def _do(self, worker: PodWorker | None, actions: tuple[Action, ...]) -> None:
        """Carry out what was decided. The state has been set before: whoever is told something may ask at once."""
        for action in actions:
            if isinstance(action, KillAnswer):
                _answer(action)
                continue
            assert worker is not None
            if action is WAKE:
                self._wake(worker)
            elif action is CANCEL_STEP:
                self._runner.cancel(worker)
            elif action is LINE_UP:
                pod = worker.state.config
                assert pod is not None
                self.static_names.line_up(full_name(pod), worker.uid)
            else:
                self.static_names.release(worker.uid)
                self.retries.forget(worker.uid)

    def _wake(self, worker: PodWorker) -> None:
        """While a step is running nothing is to be done: what is pending is looked for when it ends (PW-01)."""
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
        """Of a pod that has ended when it is first seen: a status that cannot be read counts as no (PW-14)."""
        if update.pod is None or not has_ended(update.pod):
            return False
        try:
            return self._cache.get(update.pod.metadata.uid).is_stopped
        except Exception as error:  # noqa: BLE001 - then the pod is stopped the long way
            log.debug("pod %s: runtime status unavailable: %r", update.uid, error)
            return False


def _answer(answer: KillAnswer) -> None:
    for waiter in answer.waiters:
        _call_safely(waiter, answer.outcome)


def _call_safely(callback: Callable[Q, None], *arguments: Q.args, **options: Q.kwargs) -> None:
    try:
        callback(*arguments, **options)
    except Exception:
        # It is somebody else's: the pod, and the others who wait, must not suffer from it.
        log.exception("a callback of the pod workers failed")

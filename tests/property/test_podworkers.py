"""The pod workers through histories that nobody thought of: updates, kills, cancellations, steps that fail, hang or do
not heed, a runtime that does not answer, workers that are ended and begun again. Whatever happens, one step of a pod
runs at a time, its grace never grows, what was asked to end never starts again, whoever waits is answered once, and
when all is quiet nothing is left.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from podlife.kubelet.observed_pod import ObservedPod
from podlife.kubelet.pod import NodePod, RunningPod
from podlife.kubelet.podworkers import (
    KillOptions,
    KillOutcome,
    PodState,
    PodUpdate,
    PodWorkers,
    Stage,
    SyncResult,
    UpdateType,
)
from podlife.testing import VirtualTimeLoop
from tests.conformance.podworkers.world import Recorder, observed, pod, static

NORMAL, STATIC = ("a", "b", "c"), ("s1", "s2", "s3")
UIDS = (*NORMAL, *STATIC)
STAGES = list(Stage)
# What the next step of a pod does. Held ones wait to be told; stubborn ones do not heed that they are cancelled.
PLANS = ("ok", "fail", "terminal", "cancelled", "held", "held", "stubborn", "awaited")
OUTCOMES = ("ok", "ok", "fail", "terminal", "cancelled")

uids = st.sampled_from(UIDS)
seconds = st.none() | st.sampled_from((-1, 0, 1, 5, 30, 60))


@dataclass
class Steps:
    """Does what is planned, and notes what should never be."""

    machine: Machine
    plans: dict[str, deque[str]] = field(default_factory=lambda: defaultdict(deque))
    held: dict[str, asyncio.Future[str]] = field(default_factory=dict)
    running: dict[str, str] = field(default_factory=dict)
    # Of which pods containers may be running: what a sync has begun to start, and what the runtime was seen to have.
    alive: set[str] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)

    def sync_pod(self, type_: UpdateType, pod: NodePod, mirror: NodePod | None, status: ObservedPod) -> Any:
        return self._step("sync", pod.metadata.uid)

    def sync_terminating_pod(
        self, pod: NodePod, status: ObservedPod, grace_seconds: int | None, override: Any
    ) -> Any:
        uid = pod.metadata.uid
        if grace_seconds is not None and grace_seconds < 1:
            self.wrong.append(f"{uid} is ended with a grace of {grace_seconds}")
        return self._step("terminating", uid)

    def sync_terminating_runtime_pod(self, running: RunningPod) -> Any:
        return self._step("runtime", running.uid)

    def sync_terminated_pod(self, pod: NodePod, status: ObservedPod) -> Any:
        return self._step("terminated", pod.metadata.uid)

    def _step(self, step: str, uid: str) -> Any:
        plan = self.plans[uid].popleft() if self.plans[uid] else "ok"
        if plan in ("held", "stubborn", "awaited"):
            return self._wait(step, uid, plan)
        self._enter(step, uid)
        try:
            return self._answer(plan, uid)
        finally:
            del self.running[uid]

    async def _wait(self, step: str, uid: str, plan: str) -> SyncResult | None:
        self._enter(step, uid)
        try:
            if plan == "awaited":
                await asyncio.sleep(0)
                return self._answer("ok", uid)
            outcome = self.held[uid] = asyncio.get_running_loop().create_future()
            while not outcome.done():
                try:
                    await asyncio.shield(outcome)
                except asyncio.CancelledError:
                    if plan == "held" or self.machine.is_stopping:
                        raise
            return self._answer(outcome.result(), uid)
        finally:
            self.held.pop(uid, None)
            self.running.pop(uid, None)

    def _enter(self, step: str, uid: str) -> None:
        if uid in self.running:
            self.wrong.append(f"{step} of {uid} begins while {self.running[uid]} runs")
        self.running[uid] = step
        if step == "sync":
            self.alive.add(uid)
        self._check(step, uid, self.machine.workers.state(uid))

    def _check(self, step: str, uid: str, state: PodState | None) -> None:
        if state is None:
            self.wrong.append(f"{step} of {uid}, which is not known")
            return
        if state.is_finished:
            self.wrong.append(f"{step} of {uid}, which is finished")
        if step == "sync" and state.is_termination_requested and not self._was_overtaken(state):
            self.wrong.append(f"sync of {uid}, which is to end")
        if step in ("terminating", "runtime") and (not state.is_acknowledged or state.is_terminated):
            self.wrong.append(f"{step} of {uid}, acknowledged {state.is_acknowledged}")
        if step == "terminated" and not state.is_terminated:
            self.wrong.append(f"terminated step of {uid}, which runs")

    def _was_overtaken(self, state: PodState) -> bool:
        """An orphan's sync that has begun is not cancelled (PW-158); its status may have come only now."""
        return state.is_deleted and not state.is_acknowledged

    def _answer(self, plan: str, uid: str) -> SyncResult | None:
        if plan == "fail":
            raise RuntimeError("as planned")
        if plan == "cancelled":
            raise asyncio.CancelledError
        if self.running[uid] in ("terminating", "runtime"):
            self.alive.discard(uid)
        return SyncResult(is_terminal=plan == "terminal")


class Cache:
    """A runtime that may be silent, or fail, for a pod."""

    def __init__(self) -> None:
        self.mood: dict[str, str] = {}
        self.waiting: dict[str, asyncio.Event] = {}

    def get(self, uid: str) -> ObservedPod:
        if self.mood.get(uid) == "fail":
            raise RuntimeError("no runtime")
        return observed(running=1) if self.mood.get(uid) == "running" else observed(stopped=1)

    def get_newer_than(self, uid: str, seconds: float | None) -> Any:
        return self._later(uid) if self.mood.get(uid) == "silent" else self.get(uid)

    async def _later(self, uid: str) -> ObservedPod:
        event = self.waiting.setdefault(uid, asyncio.Event())
        await event.wait()
        return self.get(uid)

    def turn(self, uid: str, mood: str) -> None:
        self.mood[uid] = mood
        if mood != "silent" and uid in self.waiting:
            self.waiting.pop(uid).set()


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner(loop_factory=VirtualTimeLoop)
        self.steps = Steps(self)
        self.cache = Cache()
        self.wanted: dict[str, NodePod] = {}
        self.asked = 0
        self.answered: dict[int, KillOutcome] = {}
        self.wrong: list[str] = []
        self.is_stopping = False
        self.last: dict[str, tuple[float, PodState]] = {}
        self._begin()

    def _begin(self) -> None:
        self.workers: PodWorkers = PodWorkers(self.steps, self.cache, Recorder(), chance=lambda: 0.5)
        self.last.clear()

        async def begin() -> None:
            self.run = asyncio.get_running_loop().create_task(self.workers.run(), name="run")

        self.runner.run(begin())

    async def _stop(self) -> None:
        self.is_stopping = True
        self.run.cancel()
        await asyncio.wait([self.run], timeout=10)
        assert self.run.done(), "the workers do not end"
        assert self.run.cancelled(), self.run.exception()
        self.is_stopping = False

    # What happens to a pod.

    @rule(
        uid=uids,
        type_=st.sampled_from(UpdateType),
        phase=st.sampled_from(("", "", "", "", "Failed")),
        deletion=st.sampled_from((None, None, None, 0, 5, 60)),
        kill=st.none() | st.tuples(st.booleans(), st.booleans(), seconds),
        turns=st.integers(0, 6),
    )
    def tell(
        self,
        uid: str,
        type_: UpdateType,
        phase: str,
        deletion: int | None,
        kill: tuple[bool, bool, int | None] | None,
        turns: int,
    ) -> None:
        make = static if uid in STATIC else pod
        subject = make(uid, phase=phase, deletion=deletion)
        self.wanted[uid] = subject
        self._update(PodUpdate(type_, subject, kill=self._kill(uid, kill)), turns)

    @rule(
        uid=uids,
        type_=st.sampled_from((UpdateType.KILL, UpdateType.KILL, UpdateType.SYNC)),
        kill=st.none() | st.tuples(st.booleans(), st.booleans(), seconds),
        turns=st.integers(0, 6),
    )
    def tell_of_runtime(
        self, uid: str, type_: UpdateType, kill: tuple[bool, bool, int | None] | None, turns: int
    ) -> None:
        state = self.workers.state(uid)
        # A pod that has stopped is only seen because what is known of the runtime is old.
        if type_ is UpdateType.KILL and (state is None or not state.is_terminated):
            self.steps.alive.add(uid)
        self._update(PodUpdate(type_, running=RunningPod(uid), kill=self._kill(uid, kill)), turns)

    def _kill(self, uid: str, kill: tuple[bool, bool, int | None] | None) -> KillOptions | None:
        if kill is None:
            return None
        is_waiting, evict, grace_seconds = kill
        if not is_waiting:
            return KillOptions(evict=evict, grace_seconds=grace_seconds)
        number = self.asked
        self.asked += 1

        def answer(outcome: KillOutcome) -> None:
            if number in self.answered:
                self.wrong.append(f"{number} is answered twice")
            self.answered[number] = outcome
            if outcome is KillOutcome.STOPPED and uid in self.steps.alive:
                self.wrong.append(f"{uid} is said to have stopped")

        return KillOptions(answer, evict, None, grace_seconds)

    def _update(self, update: PodUpdate, turns: int) -> None:
        async def update_and_turn() -> None:
            self.workers.update_pod(update)
            for _ in range(turns):
                await asyncio.sleep(0)

        self.runner.run(update_and_turn())

    # What its steps, the runtime and the agent do.

    @rule(uid=uids, plans=st.lists(st.sampled_from(PLANS), min_size=1, max_size=3))
    def plan(self, uid: str, plans: list[str]) -> None:
        self.steps.plans[uid].extend(plans)

    @rule(uid=uids, outcome=st.sampled_from(OUTCOMES), turns=st.integers(0, 6))
    def let_go(self, uid: str, outcome: str, turns: int) -> None:
        async def set_outcome() -> None:
            held = self.steps.held.get(uid)
            if held is not None and not held.done():
                held.set_result(outcome)
            for _ in range(turns):
                await asyncio.sleep(0)

        self.runner.run(set_outcome())

    @rule(uid=uids, mood=st.sampled_from(("", "running", "fail", "silent")))
    def turn_runtime(self, uid: str, mood: str) -> None:
        async def turn() -> None:
            self.cache.turn(uid, mood)

        self.runner.run(turn())

    @rule(pause=st.sampled_from((0.001, 1.0, 30.0, 100.0)))
    def pass_time(self, pause: float) -> None:
        async def resync() -> None:
            await asyncio.sleep(pause)
            for uid in self.workers.retries.take_due(asyncio.get_running_loop().time()):
                if uid in self.wanted:
                    self.workers.update_pod(PodUpdate(UpdateType.SYNC, self.wanted[uid]))
            await asyncio.sleep(0.001)

        self.runner.run(resync())

    @rule(wanted=st.sets(uids), turns=st.integers(0, 6))
    def compare(self, wanted: set[str], turns: int) -> None:
        async def sync_known_pods() -> None:
            known = self.workers.sync_known_pods(wanted)
            assert set(known) == set(self.workers)
            for _ in range(turns):
                await asyncio.sleep(0)

        for uid in UIDS:
            if uid not in wanted:
                self.wanted.pop(uid, None)
        self.runner.run(sync_known_pods())

    @rule()
    def restart(self) -> None:
        self.runner.run(self._stop())
        assert self.steps.running == {}, "a step goes on after the workers have ended"
        assert len(self.answered) == self.asked, "somebody is left waiting"
        # What still runs is found by whoever comes after; here it is as if the node had been started again.
        self.steps.alive.clear()
        self._begin()

    # What always holds.

    @invariant()
    def nothing_went_wrong(self) -> None:
        assert self.steps.wrong == []
        assert self.wrong == []
        assert not self.run.done(), self.run

    @invariant()
    def a_pod_only_goes_forward(self) -> None:
        for uid in UIDS:
            state = self.workers.state(uid)
            if state is None:
                self.last.pop(uid, None)
                continue
            first_seen, before = self.last.get(uid, (state.synced_at, state))
            if first_seen == state.synced_at:
                assert STAGES.index(state.stage) >= STAGES.index(before.stage)
                assert before.grace_seconds == 0 or 1 <= state.grace_seconds <= before.grace_seconds
                assert state.is_finished >= before.is_finished
                assert state.is_acknowledged >= before.is_acknowledged
                assert state.is_deleted >= before.is_deleted
                # Why it ends is settled when it begins to.
                assert before.stage is Stage.SYNC or state.is_evicted == before.is_evicted
            self.last[uid] = (state.synced_at, state)

    @invariant()
    def no_more_tasks_than_steps_that_are_waited_for(self) -> None:
        tasks = [task.get_name() for task in asyncio.all_tasks(self.runner.get_loop())]
        names = [name for name in tasks if name.startswith("pod worker")]
        assert len(names) == len(set(names))
        working = {f"pod worker {uid}" for uid in UIDS if self.workers.is_working(uid)}
        assert set(names) <= working

    @invariant()
    def one_static_pod_of_a_name_runs(self) -> None:
        active = [
            uid
            for uid in STATIC
            if (state := self.workers.state(uid)) is not None
            and state.started_at is not None
            and not state.is_finished
            and state.stage is Stage.SYNC
        ]
        assert len(active) <= 1

    def teardown(self) -> None:
        try:
            self.runner.run(self._all_comes_to_rest())
        finally:
            self.runner.close()

    async def _all_comes_to_rest(self) -> None:
        self.steps.plans.clear()
        for uid in UIDS:
            self.cache.turn(uid, "")
        for _ in range(4):
            for held in list(self.steps.held.values()):
                if not held.done():
                    held.set_result("ok")
            await asyncio.sleep(0.001)
        for uid in self.workers:
            state = self.workers.state(uid)
            assert state is not None
            assert not self.workers.is_working(uid)
            # Nothing that could be done is left undone: only who waits for a name, or for another try.
            is_in_line = uid in STATIC and state.started_at is None
            assert state.pending is None or is_in_line
        for _ in range(3):
            self.workers.sync_known_pods(())
            await asyncio.sleep(0.001)
        assert len(self.workers) == 0
        assert len(self.workers.static_names) == 0
        assert len(self.workers.retries) == 0
        assert self.steps.alive == set(), "containers are left behind"
        assert len(self.answered) == self.asked, "somebody is left waiting"
        await self._stop()
        assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []
        # The last steps have been run since the invariants were last looked at.
        assert self.steps.wrong == []
        assert self.wrong == []


Machine.TestCase.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)
TestPodWorkers = Machine.TestCase

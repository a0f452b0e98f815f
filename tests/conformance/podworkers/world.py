"""A node's pods, a runtime and steps that a test directs; and the pod workers on them."""

from __future__ import annotations

import asyncio
import functools
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, NamedTuple

from podlife.kubelet.observed_pod import ObservedPod
from podlife.kubelet.pod import NodePod, RunningPod
from podlife.kubelet.podworkers import (
    Delays,
    KillOptions,
    KillOutcome,
    PodState,
    PodUpdate,
    PodWorkers,
    SyncResult,
    UpdateType,
)
from podlife.kubelet.podworkers.step_runner import PodWorker
from podlife.kubelet.runtime import (
    ContainerConfig,
    ContainerState,
    ContainerStatus,
    SandboxConfig,
    SandboxState,
    SandboxStatus,
)
from podlife.testing import virtual_time

CREATE, UPDATE, SYNC, KILL = UpdateType.CREATE, UpdateType.UPDATE, UpdateType.SYNC, UpdateType.KILL


_START = datetime(2030, 1, 1, tzinfo=UTC)
_BOX, _CONFIG = SandboxConfig("u", "ns", "p"), ContainerConfig("main", "app")


def observed(*, running: int = 0, stopped: int = 0, ready: int = 0, not_ready: int = 0) -> ObservedPod:
    """What the runtime has of a pod: that many containers and sandboxes."""
    states = [ContainerState.RUNNING] * running + [ContainerState.EXITED] * stopped
    boxes = [SandboxState.READY] * ready + [SandboxState.NOT_READY] * not_ready
    return ObservedPod(
        tuple(SandboxStatus(f"s{at}", _BOX, state, _START) for at, state in enumerate(boxes)),
        tuple(ContainerStatus(f"c{at}", "s", "u", _CONFIG, state, _START) for at, state in enumerate(states)),
    )


def pod(
    uid: str = "u",
    *,
    name: str = "running-pod",
    namespace: str = "ns",
    phase: str = "",
    grace: int | None = 30,
    deletion: int | None = None,
    is_deleted: bool = False,
    source: str | None = None,
    version: str = "",
) -> NodePod:
    """`deletion` is the grace that it is deleted with."""
    annotations = {"version": version} if version else {}
    if source is not None:
        annotations["kubernetes.io/config.source"] = source
    metadata: dict[str, Any] = {"name": name, "namespace": namespace, "uid": uid, "annotations": annotations}
    if is_deleted or deletion is not None:
        metadata["deletionTimestamp"] = "2030-01-01T00:00:00Z"
        metadata["deletionGracePeriodSeconds"] = deletion
    spec = {"terminationGracePeriodSeconds": grace, "containers": [{"name": "main"}]}
    return NodePod({"metadata": metadata, "spec": spec, "status": {"phase": phase}})


def static(uid: str, name: str = "pod1", namespace: str = "test1", **options: Any) -> NodePod:
    return pod(uid, name=name, namespace=namespace, source="file", **options)


class Call(NamedTuple):
    """A step that was run: which, for whom, and with which type or grace."""

    step: str
    uid: str
    what: Any = None


class Steps:
    """Notes every call. A step of a pod can be made to fail, to wait, or to say that the pod has ended."""

    def __init__(self, *, is_plain: bool) -> None:
        self.is_plain = is_plain
        self.calls: list[Call] = []
        self.seen: list[tuple[Any, ...]] = []
        # What a step of that name raises, for a UID or (with "*") for all, until it is taken out.
        self.errors: dict[tuple[str, str], BaseException] = {}
        self.gates: dict[tuple[str, str], asyncio.Event] = {}
        self.terminal: set[str] = set()
        self.after: dict[str, Callable[[], None]] = {}
        self.on_call: Callable[[Call], None] = lambda call: None
        self.running: dict[str, int] = defaultdict(int)
        self.most_at_once = 0
        self.overlaps: list[Call] = []
        self.cancelled: list[Call] = []
        # Of those, which the step does not heed: it goes on until its gate opens.
        self.ignores_cancellation: set[tuple[str, str]] = set()

    def of(self, uid: str) -> list[tuple[str, Any]]:
        return [(call.step, call.what) for call in self.calls if call.uid == uid]

    def sync_pod(self, type_: UpdateType, pod: NodePod, mirror: NodePod | None, status: ObservedPod) -> Any:
        self.seen.append((pod, mirror, status))
        uid = pod.metadata.uid
        return self._run(
            Call("sync", uid, type_.value), SyncResult(uid in self.terminal, self.after.get(uid))
        )

    def sync_terminating_pod(
        self, pod: NodePod, status: ObservedPod, grace_seconds: int | None, override: Any
    ) -> Any:
        self.seen.append((pod, status, override))
        return self._run(Call("terminating", pod.metadata.uid, grace_seconds), None)

    def sync_terminating_runtime_pod(self, running: RunningPod) -> Any:
        self.seen.append((running,))
        return self._run(Call("terminating runtime", running.uid), None)

    def sync_terminated_pod(self, pod: NodePod, status: ObservedPod) -> Any:
        self.seen.append((pod, status))
        return self._run(Call("terminated", pod.metadata.uid), None)

    def _run(self, call: Call, answer: SyncResult | None) -> Any:
        key = (call.step, call.uid)
        if self.is_plain and key not in self.gates:
            self._enter(call)
            try:
                return self._answer(call, answer)
            finally:
                self.running[call.uid] -= 1
        return self._wait(call, answer)

    async def _wait(self, call: Call, answer: SyncResult | None) -> SyncResult | None:
        self._enter(call)
        try:
            await self._gate(call)
            return self._answer(call, answer)
        finally:
            self.running[call.uid] -= 1

    async def _gate(self, call: Call) -> None:
        gate = self.gates.get((call.step, call.uid))
        while gate is not None and not gate.is_set():
            try:
                await gate.wait()
            except asyncio.CancelledError:
                self.cancelled.append(call)
                if (call.step, call.uid) not in self.ignores_cancellation:
                    raise

    def _enter(self, call: Call) -> None:
        self.calls.append(call)
        self.running[call.uid] += 1
        # Noted, not raised: what a step raises is taken for its failure.
        if self.running[call.uid] > 1:
            self.overlaps.append(call)
        self.most_at_once = max(self.most_at_once, sum(self.running.values()))
        self.on_call(call)

    def _answer(self, call: Call, answer: SyncResult | None) -> SyncResult | None:
        for key in ((call.step, call.uid), (call.step, "*")):
            if key in self.errors:
                raise self.errors[key]
        return answer


class Cache:
    def __init__(self) -> None:
        self.statuses: dict[str, ObservedPod] = {}
        self.errors: dict[str, Exception] = {}
        # Asked for what is newer than that, by UID in order.
        self.asked: list[tuple[str, float | None]] = []
        self.gates: dict[str, asyncio.Event] = {}

    def get(self, uid: str) -> ObservedPod:
        if uid in self.errors:
            raise self.errors[uid]
        return self.statuses.get(uid, ObservedPod())

    def get_newer_than(self, uid: str, seconds: float | None) -> ObservedPod | Awaitable[ObservedPod]:
        self.asked.append((uid, seconds))
        return self._later(uid) if uid in self.gates else self.get(uid)

    async def _later(self, uid: str) -> ObservedPod:
        await self.gates[uid].wait()
        return self.get(uid)


class Recorder:
    def __init__(self) -> None:
        self.events: list[tuple[str, str, str, str]] = []

    def event(self, regarding: Any, type_: str, reason: str, message: str) -> None:
        self.events.append((regarding["name"], type_, reason, message))


class HeldWorkers(PodWorkers):
    """Pod workers of which a test can hold one, before it looks at what came."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.held: dict[str, PodWorker | None] = {}

    def release(self, uid: str) -> None:
        worker = self.held.pop(uid)
        if worker is not None:
            self._wake(worker)

    def _begin(self, worker: PodWorker, group: asyncio.TaskGroup) -> None:
        if worker.uid in self.held:
            self.held[worker.uid] = worker
        else:
            super()._begin(worker, group)


def running(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run the test under virtual time, and the workers of its fixture `world` as long as it lasts."""

    @functools.wraps(test)
    async def run(**fixtures: Any) -> None:
        async with fixtures["world"]:
            await test(**fixtures)

    return virtual_time(run)


class World:
    """`async with world:` runs the workers; at its end no task and nobody who waits is left."""

    def __init__(self, kind: str = "awaited") -> None:
        self.steps = Steps(is_plain=kind == "plain")
        self.cache = Cache()
        self.recorder = Recorder()
        self.chance = 0.0
        self.answers: list[tuple[str, KillOutcome]] = []
        self.asked = 0
        self.workers = HeldWorkers(
            self.steps,
            self.cache,
            self.recorder,
            delays=Delays(resync_seconds=20.0, backoff_seconds=10.0),
            chance=lambda: self.chance,
        )
        self._run: asyncio.Task[None]

    async def __aenter__(self) -> World:
        self._run = asyncio.get_running_loop().create_task(self.workers.run())
        await self.settle()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        self._run.cancel()
        await asyncio.wait([self._run])
        assert self._run.cancelled(), self._run.exception()
        assert self.steps.overlaps == [], "two steps at once for one pod"
        assert len(self.answers) == self.asked, "somebody still waits, or was told twice"

    async def settle(self) -> None:
        """Until nothing happens any more by itself: under virtual time a timer comes after everything else."""
        await asyncio.sleep(0.001)

    def tell(
        self,
        type_: UpdateType,
        subject: NodePod | None = None,
        *,
        running: RunningPod | None = None,
        mirror: NodePod | None = None,
        kill: KillOptions | None = None,
        asked_at: float | None = None,
    ) -> None:
        self.workers.update_pod(PodUpdate(type_, subject, running, mirror, kill, asked_at))

    async def told(self, *arguments: Any, **options: Any) -> None:
        """As `tell`, and what comes of it has happened."""
        self.tell(*arguments, **options)
        await self.settle()

    async def open(self, gate: asyncio.Event) -> None:
        gate.set()
        await self.settle()

    def waiting(self, who: str = "", **options: Any) -> KillOptions:
        """Kill options with somebody who waits."""
        self.asked += 1
        return KillOptions(lambda outcome: self.answers.append((who, outcome)), **options)

    def state(self, uid: str = "u") -> PodState:
        state = self.workers.state(uid)
        assert state is not None, f"{uid} is not known"
        return state

    def active(self, uid: str = "u") -> PodUpdate:
        active = self.state(uid).active
        assert active is not None, f"{uid} was never synced"
        return active

    def pending(self, uid: str = "u") -> PodUpdate:
        pending = self.state(uid).pending
        assert pending is not None, f"nothing is pending for {uid}"
        return pending

    async def started(self, *pods: NodePod) -> None:
        """These pods, created and synced once; what happened so far is not told of again."""
        for each in pods:
            self.tell(CREATE, each)
        await self.settle()
        self.steps.calls.clear()
        self.steps.seen.clear()

    def hold(self, step: str, uid: str = "u") -> asyncio.Event:
        """That step of the pod waits until the event is set."""
        gate = self.steps.gates[step, uid] = asyncio.Event()
        return gate

    @contextmanager
    def failing(self, step: str, uid: str = "u", error: BaseException | None = None) -> Iterator[None]:
        self.steps.errors[step, uid] = error or RuntimeError("no")
        try:
            yield
        finally:
            del self.steps.errors[step, uid]

    def delay(self, uid: str = "u") -> float:
        """Seconds until the pod is due again."""
        due = self.workers.retries.due_at(uid)
        assert due is not None, f"{uid} is not due at all"
        return due - asyncio.get_running_loop().time()

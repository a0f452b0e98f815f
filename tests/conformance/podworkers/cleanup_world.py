"""Housekeeping over real pod workers, with steps, a runtime and an API server that a test directs."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, cast

from prometheus_client import CollectorRegistry

from podlife.aio import cancel_and_wait
from podlife.clock import ManualClock
from podlife.errors import NotFoundError
from podlife.kubelet.admission import Admitter
from podlife.kubelet.allocation import AllocationManager
from podlife.kubelet.cleanup_queue import CleanupQueue
from podlife.kubelet.core import KubeletCore
from podlife.kubelet.due_queue import DueQueue
from podlife.kubelet.hollow.fake_parts import NoObjects, NoProbes
from podlife.kubelet.interfaces import NoVolumes
from podlife.kubelet.kuberuntime.backoff import crash_loop_backoff
from podlife.kubelet.kuberuntime.container_config import ContainerConfigs
from podlife.kubelet.kuberuntime.container_gc import ContainerGC
from podlife.kubelet.kuberuntime.log_directory import LogDirectory
from podlife.kubelet.kuberuntime.manager import KubeRuntimeManager
from podlife.kubelet.observed_pod import ObservedPod
from podlife.kubelet.pleg.generic import GenericPLEG
from podlife.kubelet.pleg.pod_cache import PodCache
from podlife.kubelet.pod import NodePod
from podlife.kubelet.pod_cleanups import PodCleanups
from podlife.kubelet.pod_events import PodEvents
from podlife.kubelet.pod_manager import PodManager
from podlife.kubelet.podworkers import KillOptions, PodState, PodUpdate, PodWorkers, UpdateType
from podlife.kubelet.prometheus import pod_families
from podlife.kubelet.runtime import Runtime, SandboxConfig, SandboxState, SandboxStatus
from podlife.kubelet.status.generate import StatusGenerator
from podlife.kubelet.status.manager import StatusManager
from podlife.kubelet.sync_loop import SyncLoop
from tests.conformance.podworkers.world import Recorder, Steps, pod

Object = dict[str, Any]
START = datetime(2030, 1, 1, tzinfo=UTC)


def node_pod(uid: str = "u", *, name: str = "", is_deleted: bool = False, **options: Any) -> NodePod:
    return pod(uid, name=name or uid, deletion=5 if is_deleted else None, **options)


def static_pod(uid: str, *, name: str = "same", grace: int | None = 30) -> NodePod:
    return node_pod(uid, name=name, source="file", grace=grace)


def mirror_pod(uid: str = "mirror") -> NodePod:
    mirror = node_pod(uid, name="same", source="file")
    mirror["metadata"]["annotations"]["kubernetes.io/config.mirror"] = "digest"
    return NodePod(mirror)


class Mirrors:
    def __init__(self) -> None:
        self.deleted: list[tuple[str, str]] = []
        self.is_server_away = False

    async def ensure(self, pod: Any, mirror: Any) -> None: ...

    async def delete(self, full_name: str, uid: str) -> bool:
        if not self.is_server_away:
            self.deleted.append((full_name, uid))
        return not self.is_server_away


class _NoServer:
    async def get(self, namespace: str, name: str) -> Object:
        raise NotFoundError(f"pod {name} not found")

    async def patch_status(self, namespace: str, name: str, patch: Object) -> Object:
        raise NotFoundError(f"pod {name} not found")

    async def delete(self, namespace: str, name: str, *, uid: str) -> None: ...


class NotedCleanups(CleanupQueue):
    """Notes what was added; None is for a full pass."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[str | None] = []

    def add(self, uid: str) -> None:
        super().add(uid)
        self.noted.append(uid)

    def add_all(self) -> None:
        super().add_all()
        self.noted.append(None)


class CleanupWorld:
    """`async with world:` runs the workers; a test makes each pass of housekeeping itself."""

    def __init__(self) -> None:
        self.steps = Steps(is_plain=False)
        self.known = PodManager(self._could_run)
        self.cache = PodCache()
        self.mirrors = Mirrors()
        self.list_error: Exception | None = None
        self.tidied = NotedCleanups()
        clock, events, prober = ManualClock(START), PodEvents(Recorder()), NoProbes()
        self.manager = StatusManager(_NoServer(), self.known, clock)
        # Neither is run here: no verb of the runtime is asked for.
        runtime, hooks = cast(Runtime, None), cast(Any, None)
        configs = ContainerConfigs(NoVolumes(), NoObjects(), LogDirectory(None))
        kuberuntime = KubeRuntimeManager(runtime, configs, hooks, events, clock, crash_loop_backoff())
        self.statuses = StatusGenerator(self.manager, prober, events, clock, kuberuntime.reasons, "sim", ())
        self.allocatable = {"pods": "110"}
        node = {"metadata": {"name": "n1"}, "status": {"allocatable": self.allocatable}}
        self.admitter = Admitter(lambda: node)
        self.workers = PodWorkers(self.steps, self.cache, Recorder())
        self.loop = SyncLoop(
            self.known,
            self.workers,
            self.manager,
            events,
            allocation=AllocationManager(self.admitter, self.known.pod, events, self._sync),
            deadlines=DueQueue(),
            cleanups=self.tidied,
        )
        gc = ContainerGC(kuberuntime, self.known, self.workers, self.cache, NoVolumes())
        self.cleanups = PodCleanups(
            self.loop, self.workers, cast(GenericPLEG, self), self.statuses, prober, self.mirrors, gc
        )
        # What metrics ask of the core besides.
        self.pleg = self
        self._run: asyncio.Task[None]

    def _sync(self, uid: str) -> None:
        self.loop.sync(uid)

    def _could_run(self, uid: str) -> bool:
        return self.workers.could_have_running_containers(uid)

    async def relist(self) -> None:
        if self.list_error is not None:
            raise self.list_error
        # The list finds everything as it was put.
        self.cache.put_all_at(asyncio.get_running_loop().time())

    async def __aenter__(self) -> CleanupWorld:
        self._run = asyncio.get_running_loop().create_task(self.workers.run())
        await self.settle()
        return self

    async def __aexit__(self, *error: object) -> None:
        self._run.cancel()
        await asyncio.wait([self._run])
        assert self.steps.overlaps == []

    async def settle(self) -> None:
        """Until nothing happens any more by itself; steps see a runtime that was looked at since the last."""
        for _ in range(5):
            await asyncio.sleep(0.001)
            self.cache.put_all_at(asyncio.get_running_loop().time())
        await asyncio.sleep(0.001)

    @asynccontextmanager
    async def taking(self) -> AsyncIterator[None]:
        """The sync loop takes what its sources have."""
        taking = asyncio.get_running_loop().create_task(self.loop.run())
        try:
            yield
        finally:
            await cancel_and_wait(taking)

    async def clean_up(self) -> None:
        await self.cleanups.clean_up()
        await self.settle()

    async def started(self, *pods: NodePod) -> None:
        """Wanted, admitted and synced once; what happened so far is not told of again."""
        for each in pods:
            assert self.loop.add(each)
        await self.settle()
        self.steps.calls.clear()

    def kill(self, pod: NodePod, grace_seconds: int | None = None) -> None:
        kill = KillOptions(grace_seconds=grace_seconds)
        self.workers.update_pod(PodUpdate(UpdateType.KILL, pod, kill=kill))

    def run_in_runtime(self, uid: str) -> None:
        """The runtime has a ready sandbox of it."""
        status = SandboxStatus(f"s-{uid}", SandboxConfig(uid, "ns", uid), SandboxState.READY, START)
        self.cache.put(uid, ObservedPod((status,)), asyncio.get_running_loop().time())

    def stop_in_runtime(self, uid: str) -> None:
        self.cache.put(uid, ObservedPod(), asyncio.get_running_loop().time())

    def fail(self, step: str, uid: str) -> None:
        self.steps.errors[step, uid] = RuntimeError("no")

    def recover(self) -> None:
        self.steps.errors.clear()

    def state(self, uid: str = "u") -> PodState:
        state = self.workers.state(uid)
        assert state is not None, f"{uid} is not known"
        return state

    def active(self, uid: str = "u") -> PodUpdate:
        active = self.state(uid).active
        assert active is not None, f"{uid} was never synced"
        return active

    # Metrics

    def counts(self) -> tuple[int, Counter[str]]:
        return 0, Counter()

    def metric(self, name: str, **labels: str) -> float:
        registry = CollectorRegistry()
        registry.register(self)
        value = registry.get_sample_value(name, labels)
        assert value is not None, f"{name}{labels} is not there"
        return value

    def collect(self) -> Any:
        return pod_families(cast(KubeletCore, self), self.known)

"""The parts that run pods, put together: cache, changes, workers, loop and housekeeping, and the ways between them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from podlife.api.codec import Object
from podlife.clock import Clock
from podlife.kubelet.admission.admitter import Admitter
from podlife.kubelet.envvars.downward_api import DownwardContext
from podlife.kubelet.interfaces import (
    Hooks,
    ObjectCache,
    Probes,
    Volumes,
)
from podlife.kubelet.kuberuntime.backoff import Backoff
from podlife.kubelet.kuberuntime.container_config import ContainerConfigs
from podlife.kubelet.kuberuntime.container_gc import ContainerGC, Leftovers
from podlife.kubelet.kuberuntime.image_manager import ImageManager
from podlife.kubelet.kuberuntime.kill_container import ContainerKiller
from podlife.kubelet.kuberuntime.log_directory import LogDirectory
from podlife.kubelet.kuberuntime.start_container import ContainerStarter, Tools
from podlife.kubelet.kuberuntime.sync_pod import KubeRuntimeManager
from podlife.kubelet.monotonic import MonotonicSeconds
from podlife.kubelet.pleg.events import PodLifecycleEvent
from podlife.kubelet.pleg.generic import GenericPLEG
from podlife.kubelet.pleg.pod_cache import PodCache
from podlife.kubelet.pod_cleanups import PodCleanups, Rooms
from podlife.kubelet.pod_events import EventRecorder, PodEvents
from podlife.kubelet.pod_manager import PodManager
from podlife.kubelet.pod_syncer import MirrorClient, Parts, PodSyncer
from podlife.kubelet.podworkers import PodWorkers
from podlife.kubelet.runtime import Runtime
from podlife.kubelet.status.generate import StatusGenerator
from podlife.kubelet.status.manager import StatusManager
from podlife.kubelet.sync_loop import SyncLoop, Workers

__all__ = ["Around", "PodCore"]


@dataclass(frozen=True, slots=True)
class Around:
    """What the core is given: the parts that it asks, and what it is to know of its node."""

    runtime: Runtime
    clock: Clock
    recorder: EventRecorder
    known: PodManager
    manager: StatusManager
    volumes: Volumes
    references: ObjectCache
    hooks: Hooks
    probes: Probes
    mirrors: MirrorClient
    node: Callable[[], Object]
    host_ips: tuple[str, ...]
    logs: Path | None
    backoff: Backoff


class PodCore:
    def __init__(self, around: Around) -> None:
        self._around = around
        self._seconds = MonotonicSeconds()
        self.telling = PodEvents(around.recorder)
        self._images = ImageManager(around.runtime, around.clock, self.telling)
        self._killer = ContainerKiller(around.runtime, around.hooks, self.telling)
        self._admitter = Admitter(around.node)
        self._logs = LogDirectory(around.logs)
        self._statuses = StatusGenerator(
            around.manager,
            around.probes,
            self.telling,
            around.clock,
            runtime_name=around.runtime.name,
            host_ips=around.host_ips,
        )
        self.cache = PodCache()
        self.changes = GenericPLEG(around.runtime, self.cache, seconds=self._seconds, told=self._take_changes)
        steps = PodSyncer(self._parts(self._syncer()))
        self.workers: Workers = PodWorkers(
            steps, self.cache, around.recorder, seconds=self._seconds, failed=self._take_failure
        )
        around.known.could_run = self.workers.could_have_running_containers
        self.loop = SyncLoop(
            around.known,
            self.workers,
            around.manager,
            self.telling,
            admitter=self._admitter,
            tidy=self._tidy,
        )
        self.housekeeping = PodCleanups(self._rooms(), ContainerGC(self._leftovers()))

    async def run(self) -> None:
        """Until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.changes.run(), name="runtime")
            # What runs already is known before anything is decided about it.
            await self.changes.wait_for_relist()
            group.create_task(self._around.manager.run(), name="statuses")
            group.create_task(self.workers.run(), name="pod workers")
            group.create_task(self.loop.run(), name="pods")
            group.create_task(self.housekeeping.run(), name="housekeeping")

    def _syncer(self) -> KubeRuntimeManager:
        around = self._around
        configs = ContainerConfigs(
            around.volumes, around.references, self._logs, default_uid=_default_uid(around.runtime)
        )
        tools = Tools(
            around.runtime,
            self._images,
            configs,
            around.hooks,
            self._killer,
            self.telling,
            self._logs,
            around.clock,
        )
        return KubeRuntimeManager(
            tools, ContainerStarter(tools, around.backoff), self._statuses, self.surroundings
        )

    def _parts(self, syncer: KubeRuntimeManager) -> Parts:
        around = self._around
        return Parts(
            runtime=around.runtime,
            cache=self.cache,
            manager=around.manager,
            statuses=self._statuses,
            syncer=syncer,
            killer=self._killer,
            probes=around.probes,
            volumes=around.volumes,
            references=around.references,
            mirrors=around.mirrors,
            telling=self.telling,
            clock=around.clock,
            seconds=self._seconds,
            look_again=self._look_again,
            due_at=self._note_due,
            stopped=self._admitter.release,
            ended=self._tidy,
        )

    def _rooms(self) -> Rooms:
        around = self._around
        return Rooms(
            known=around.known,
            workers=self.workers,
            cache=self.cache,
            manager=around.manager,
            statuses=self._statuses,
            probes=around.probes,
            mirrors=around.mirrors,
            admitter=self._admitter,
            relist=self.changes.relist,
            add=self.loop.add,
            is_complete=lambda: self.loop.is_complete,
            collect_waits=self._collect_waits,
        )

    def _leftovers(self) -> Leftovers:
        around = self._around
        return Leftovers(
            known=around.known,
            workers=self.workers,
            cache=self.cache,
            runtime=around.runtime,
            volumes=around.volumes,
            killer=self._killer,
            statuses=self._statuses,
            logs=self._logs,
        )

    # What one part tells another

    def surroundings(self, uid: str = "") -> DownwardContext:
        """What a pod may be told of its node and, with its UID, of its own addresses."""
        status = self._around.node().get("status") or {}
        observed = self.cache.last_seen(uid)
        ips = next((each.ips for each in observed.ready_sandboxes if each.ips), ())
        return DownwardContext(self._around.host_ips, ips, status.get("allocatable") or {})

    def _take_changes(self, uid: str, changes: tuple[PodLifecycleEvent, ...]) -> None:
        self.loop.take_changes(uid, changes)

    def _look_again(self, uid: str) -> None:
        # Where events flow they tell of what a step has done.
        if not self.changes.is_evented:
            self.changes.reinspect(uid)

    def _note_due(self, uid: str, at: float) -> None:
        due = self.loop.deadlines.due_at(uid)
        # A deadline may be shortened while the pod runs.
        if due is None or at < due:
            self.loop.deadlines.put(uid, at)

    def _take_failure(self, uid: str) -> None:
        """A pod that left the configuration is ended by housekeeping alone (PW-101)."""
        if uid not in self._around.known:
            self._tidy(uid)

    def _tidy(self, uid: str | None) -> None:
        self.housekeeping.tidy(uid)

    def _collect_waits(self) -> None:
        """RB-08."""
        self._around.backoff.collect(self._around.clock.now())
        self._images.collect()


def _default_uid(runtime: Runtime) -> int | None:
    """Whom containers run as that do not say: processes run as the agent does, containers as their image says."""
    return os.geteuid() if runtime.name == "process" else None

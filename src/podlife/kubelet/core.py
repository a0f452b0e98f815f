"""Assembles the parts that run the pods of a node: PLEG, pod workers, sync loop, cleanups.

A real kubelet and a hollow node differ in what they inject (volumes, probes, mirrors). The constructor starts nothing.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from podlife.api.codec import Object
from podlife.clock import Clock
from podlife.kubelet.admission import Admitter
from podlife.kubelet.allocation import AllocationManager
from podlife.kubelet.cleanup_queue import CleanupQueue
from podlife.kubelet.due_queue import DueQueue
from podlife.kubelet.envvars import DownwardContext
from podlife.kubelet.interfaces import Hooks, ObjectCache, Probes, Volumes
from podlife.kubelet.kuberuntime import (
    Backoff,
    ContainerConfigs,
    ContainerGC,
    KubeRuntimeManager,
    LogDirectory,
)
from podlife.kubelet.monotonic import MonotonicSeconds
from podlife.kubelet.pleg import GenericPLEG, PodCache, PodLifecycleEvent
from podlife.kubelet.pod_cleanups import PodCleanups
from podlife.kubelet.pod_events import EventRecorder, PodEvents
from podlife.kubelet.pod_manager import PodManager
from podlife.kubelet.pod_syncer import MirrorClient, PodSyncer
from podlife.kubelet.podworkers import PodWorkers
from podlife.kubelet.runtime import Runtime
from podlife.kubelet.status import StatusGenerator, StatusManager
from podlife.kubelet.sync_loop import SyncLoop


class KubeletCore:
    """`node` returns the newest known Node; `logs` is None on a node without logs."""

    def __init__(  # noqa: PLR0913 - every collaborator is injected explicitly
        self,
        runtime: Runtime,
        pods: PodManager,
        status: StatusManager,
        recorder: EventRecorder,
        clock: Clock,
        *,
        volumes: Volumes,
        objects: ObjectCache,
        hooks: Hooks,
        prober: Probes,
        mirrors: MirrorClient,
        backoff: Backoff,
        node: Callable[[], Object],
        host_ips: tuple[str, ...],
        logs: Path | None,
    ) -> None:
        self._status = status
        self._pods = pods
        self._node = node
        self._host_ips = host_ips
        self.events = PodEvents(recorder)
        self.cache = PodCache()
        self.pleg = GenericPLEG(runtime, self.cache, seconds=MonotonicSeconds(), on_events=self._on_events)
        self._cleanup_queue = CleanupQueue()
        # Without runAsUser, processes run as the kubelet's user, containers as the image's.
        default_uid = os.geteuid() if runtime.name == "process" else None
        configs = ContainerConfigs(volumes, objects, LogDirectory(logs), default_uid)
        self.kuberuntime = KubeRuntimeManager(runtime, configs, hooks, self.events, clock, backoff)
        allocation = AllocationManager(Admitter(node), pods.pod, self.events, self._sync)
        generator = StatusGenerator(
            status,
            prober,
            self.events,
            clock,
            self.kuberuntime.reasons,
            runtime.name,
            host_ips,
            resizes=allocation.conditions,
        )
        deadlines = DueQueue()
        syncer = PodSyncer(
            self.kuberuntime,
            generator,
            volumes,
            prober,
            pleg=self.pleg,
            objects=objects,
            mirrors=mirrors,
            events=self.events,
            allocation=allocation,
            deadlines=deadlines,
            cleanups=self._cleanup_queue,
            clock=clock,
            context=self.downward_context,
        )
        self.workers = PodWorkers(
            syncer, self.cache, recorder, seconds=self.pleg.seconds, failed=self._on_failure
        )
        self.sync_loop = SyncLoop(
            pods,
            self.workers,
            status,
            self.events,
            allocation=allocation,
            deadlines=deadlines,
            cleanups=self._cleanup_queue,
        )
        gc = ContainerGC(self.kuberuntime, pods, self.workers, self.cache, volumes)
        self.cleanups = PodCleanups(self.sync_loop, self.workers, self.pleg, generator, prober, mirrors, gc)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.pleg.run(), name="pleg")
            # Running pods must be known before anything is decided about them.
            await self.pleg.wait_for_relist()
            group.create_task(self._status.run(), name="status manager")
            group.create_task(self.workers.run(), name="pod workers")
            group.create_task(self.sync_loop.run(), name="sync loop")
            group.create_task(self.cleanups.run(), name="pod cleanups")

    def downward_context(self, uid: str = "") -> DownwardContext:
        """Values for the downward API: those of the node and, with a UID, the pod's addresses."""
        status = self._node().get("status") or {}
        ips = self.cache.last_seen(uid).ips
        return DownwardContext(self._host_ips, ips, status.get("allocatable") or {})

    def _sync(self, uid: str) -> None:
        self.sync_loop.sync(uid)

    def _on_events(self, uid: str, events: tuple[PodLifecycleEvent, ...]) -> None:
        self.sync_loop.handle_events(uid, events)

    def _on_failure(self, uid: str) -> None:
        """Only cleanups retry a pod that has left the configuration (PW-101)."""
        if uid not in self._pods:
            self._cleanup_queue.add(uid)

"""Terminates the pods of a node whose kubelet has ended, like a machine shutdown: hooks, TERM, grace period, KILL.

The API server is not informed: the pods are still wanted, and the node's next kubelet starts them again. A pod has its
own grace period, up to `grace_seconds`; a signal kills the remaining pods at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from podlife.clock import SystemClock
from podlife.daemons.event_loop import stopped_by_signals
from podlife.daemons.node import RuntimeSettings, make_runtime
from podlife.kubelet.kuberuntime.handler_runner import HandlerRunner
from podlife.kubelet.kuberuntime.kill_container import ContainerKiller
from podlife.kubelet.observed_pod import ObservedPod
from podlife.kubelet.pod_events import PodEvents
from podlife.kubelet.runtime import ContainerRuntimeError, ContainerStatus, Runtime, SandboxStatus
from podlife.kubelet.volumemanager import release_memory
from podlife.localcluster.forkserver import Message

log = logging.getLogger(__name__)


class _NoEvents:
    """No kubelet is left to send events."""

    def event(self, regarding: Mapping[str, Any], type_: str, reason: str, message: str) -> None: ...


class ProgressLink(Protocol):
    """Receives the number of pods that are left."""

    def send(self, message: Message) -> None: ...


async def shut_down_node(
    settings: RuntimeSettings, address: str, grace_seconds: float, link: ProgressLink
) -> None:
    at_once = asyncio.Event()
    async with make_runtime(settings, address, SystemClock()) as runtime:
        with stopped_by_signals(at_once.set):
            await end_pods(runtime, grace_seconds, at_once, link)
        await release_volumes(runtime, settings.data)


async def end_pods(
    runtime: Runtime, grace_seconds: float, at_once: asyncio.Event, link: ProgressLink
) -> None:
    """Return when no pod is running, or the rest could not be ended."""
    pods = await running_pods(runtime)
    left = len(pods)
    link.send({"left": left})
    killer = ContainerKiller(runtime, HandlerRunner(runtime, _NoEvents()), PodEvents(_NoEvents()))

    async def end(observed: ObservedPod) -> None:
        nonlocal left
        try:
            await killer.kill_pod(None, observed)
        except ContainerRuntimeError as error:
            log.warning("%s", error)
        left -= 1
        link.send({"left": left})

    async with asyncio.TaskGroup() as group:
        ending = [group.create_task(end(each), name="end of a pod") for each in pods]
        waiting = group.create_task(at_once.wait(), name="at once")
        everything = group.create_task(_all(ending), name="all pods")
        await asyncio.wait((waiting, everything), timeout=grace_seconds, return_when=asyncio.FIRST_COMPLETED)
        if not everything.done():
            await _end_now(runtime, pods)
        for task in (waiting, everything, *ending):
            task.cancel()


async def _all(tasks: list[asyncio.Task[None]]) -> None:
    if tasks:
        await asyncio.wait(tasks)


async def _end_now(runtime: Runtime, pods: list[ObservedPod]) -> None:
    sandboxes = [each.id for pod in pods for each in pod.sandboxes]
    outcomes = await asyncio.gather(*map(runtime.stop_sandbox, sandboxes), return_exceptions=True)
    for each in outcomes:
        if isinstance(each, Exception):
            log.warning("%s", each)


async def release_volumes(runtime: Runtime, data: Path) -> None:
    """Give back what the secrets of a node's pods take, unless one of them still runs."""
    if not await running_pods(runtime):
        try:
            release_memory(data)
        except OSError as error:
            log.warning("%s", error)


async def running_pods(runtime: Runtime) -> list[ObservedPod]:
    """The pods that may have running containers."""
    sandboxes: dict[str, list[SandboxStatus]] = defaultdict(list)
    containers: dict[str, list[ContainerStatus]] = defaultdict(list)
    for sandbox in await runtime.list_sandboxes():
        sandboxes[sandbox.config.pod_uid].append(sandbox)
    for container in await runtime.list_containers():
        containers[container.pod_uid].append(container)
    return [
        ObservedPod.of(each, containers[uid])
        for uid, each in sandboxes.items()
        if any(sandbox.is_ready for sandbox in each)
    ]

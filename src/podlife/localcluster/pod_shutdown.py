"""Ending the pods of a node whose agent has ended, as a machine that is shut down does: hooks, TERM, grace, KILL.

The API server is told nothing: the pods are still wanted, and the next agent of the node starts them again. A pod
has its own grace, but no longer than the bound that is given; a signal ends what is left at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Protocol

from podlife.cli.commands.node import NodeCommand
from podlife.clock import SystemClock
from podlife.daemons import event_loop as loop
from podlife.daemons.node import make_runtime
from podlife.kubelet.kuberuntime.handler_runner import HandlerRunner
from podlife.kubelet.kuberuntime.kill_container import ContainerKiller
from podlife.kubelet.observed_pod import ObservedPod
from podlife.kubelet.pod_events import PodEvents
from podlife.kubelet.runtime import ContainerRuntimeError, ContainerStatus, Runtime, SandboxStatus
from podlife.localcluster.forkserver import Message, TellingPart

__all__ = ["end_pods", "running_pods", "stop_pods"]

log = logging.getLogger(__name__)


class _Silent:
    """Nobody is there any more to be sent events."""

    def event(self, regarding: Mapping[str, Any], type_: str, reason: str, message: str) -> None: ...


async def stop_pods(asked: NodeCommand, grace_seconds: float, telling: TellingPart) -> None:
    clock = SystemClock()
    at_once = asyncio.Event()
    async with make_runtime(asked, asked.options.node_ip, clock) as runtime:
        with loop.stopped_by_signals(at_once.set):
            await end_pods(runtime, grace_seconds, at_once, telling)


class TellsProgress(Protocol):
    def tell(self, message: Message) -> None: ...


async def end_pods(
    runtime: Runtime, grace_seconds: float, at_once: asyncio.Event, telling: TellsProgress
) -> None:
    """Returns when nothing runs any more, or could not be ended."""
    pods = await running_pods(runtime)
    left = len(pods)
    telling.tell({"left": left})
    killer = ContainerKiller(runtime, HandlerRunner(runtime, _Silent()), PodEvents(_Silent()))

    async def end(observed: ObservedPod) -> None:
        nonlocal left
        try:
            await killer.kill_pod(None, observed)
        except ContainerRuntimeError as error:
            log.warning("%s", error)
        left -= 1
        telling.tell({"left": left})

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


async def running_pods(runtime: Runtime) -> list[ObservedPod]:
    """Those of which something could run."""
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

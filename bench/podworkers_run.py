"""`python -m bench.podworkers_run COUNT plain|awaited`: so many pods through the workers, alone; prints JSON.

In a process of its own, so that its memory is all there is to measure. Every pod is created and synced, killed with
somebody waiting, ended and cleaned up; then all of them are forgotten. The steps do nothing: what is measured is the
workers. `plain` steps answer at once, `awaited` ones are coroutines and get a task each.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

import uvloop

from bench.processes import cost_of
from podlife.aio import cancel_and_wait
from podlife.kubelet.observed_pod import ObservedPod
from podlife.kubelet.pod import NodePod
from podlife.kubelet.podworkers import KillOptions, KillOutcome, PodUpdate, PodWorkers, SyncResult, UpdateType


class Cache:
    def __init__(self) -> None:
        self.status = ObservedPod()

    def get(self, uid: str) -> ObservedPod:
        return self.status

    def get_newer_than(self, uid: str, seconds: float | None) -> ObservedPod:
        return self.status


class PlainSteps:
    def __init__(self, done: Callable[[], None]) -> None:
        self.synced = SyncResult()
        self.done = done

    def sync_pod(
        self, type_: UpdateType, pod: NodePod, mirror: NodePod | None, status: ObservedPod
    ) -> SyncResult:
        self.done()
        return self.synced

    def sync_terminating_pod(
        self, pod: NodePod, status: ObservedPod, grace_seconds: int | None, override: Any
    ) -> None:
        return None

    def sync_terminating_runtime_pod(self, running: Any) -> None:
        return None

    def sync_terminated_pod(self, pod: NodePod, status: ObservedPod) -> None:
        self.done()


class AwaitedSteps:
    def __init__(self, done: Callable[[], None]) -> None:
        self.synced = SyncResult()
        self.done = done

    async def sync_pod(
        self, type_: UpdateType, pod: NodePod, mirror: NodePod | None, status: ObservedPod
    ) -> SyncResult:
        self.done()
        return self.synced

    async def sync_terminating_pod(
        self, pod: NodePod, status: ObservedPod, grace_seconds: int | None, override: Any
    ) -> None:
        return None

    async def sync_terminating_runtime_pod(self, running: Any) -> None:
        return None

    async def sync_terminated_pod(self, pod: NodePod, status: ObservedPod) -> None:
        self.done()


class NoEvents:
    def event(self, regarding: Any, type_: str, reason: str, message: str) -> None:
        raise AssertionError(message)


def _pod(number: int) -> NodePod:
    metadata = {
        "name": f"service-7d9c5b8f6d-{number:05}",
        "namespace": "default",
        "uid": f"{number:08x}-0000-4000-8000-000000000000",
        "annotations": {"kubernetes.io/config.source": "api"},
    }
    spec = {
        "containers": [{"name": "main", "image": "registry.example/service:1"}],
        "terminationGracePeriodSeconds": 30,
    }
    return NodePod({"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}})


async def _measure(count: int, kind: str) -> dict[str, float]:
    pods = [_pod(number) for number in range(count)]
    left = stopped = 0
    all_done = asyncio.Event()

    def done() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            all_done.set()

    def answer(outcome: KillOutcome) -> None:
        nonlocal stopped
        stopped += outcome is KillOutcome.STOPPED

    workers = PodWorkers(PlainSteps(done) if kind == "plain" else AwaitedSteps(done), Cache(), NoEvents())
    runner = asyncio.get_running_loop().create_task(workers.run())
    began, cpu = perf_counter(), process_time()
    left = count
    for pod in pods:
        workers.update_pod(PodUpdate(UpdateType.CREATE, pod))
    await all_done.wait()
    all_done.clear()
    left = count
    for pod in pods:
        workers.update_pod(PodUpdate(UpdateType.KILL, pod, kill=KillOptions(answer)))
    await all_done.wait()
    while workers.sync_known_pods(()):
        await asyncio.sleep(0)
    seconds, cpu_seconds = perf_counter() - began, process_time() - cpu
    assert stopped == count, f"{stopped} of {count} were answered"
    assert len(workers) == 0
    await cancel_and_wait(runner)
    cost = cost_of(os.getpid())
    assert cost is not None
    return {"seconds": seconds, "cpu_seconds": cpu_seconds, "peak_mb": cost.peak_mb}


if __name__ == "__main__":
    print(json.dumps(uvloop.run(_measure(int(sys.argv[1]), sys.argv[2]))))

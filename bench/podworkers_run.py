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

import msgspec
import uvloop

from bench.processes import cost_of
from podlife.aio import cancel_and_wait
from podlife.kubelet.podworkers import KillOptions, KillOutcome, PodUpdate, PodWorkers, SyncResult, UpdateType


class Metadata(msgspec.Struct, gc=False):
    name: str
    namespace: str
    uid: str
    annotations: dict[str, str]
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None


class Container(msgspec.Struct, gc=False):
    name: str
    image: str


class Spec(msgspec.Struct, gc=False):
    containers: tuple[Container, ...]
    termination_grace_period_seconds: int | None = 30


class Status(msgspec.Struct, gc=False):
    phase: str = "Pending"


class Pod(msgspec.Struct, gc=False):
    metadata: Metadata
    spec: Spec
    status: Status


class Nothing(msgspec.Struct, frozen=True):
    """What the runtime says: nothing runs."""

    containers: tuple[Any, ...] = ()
    sandboxes: tuple[Any, ...] = ()


class Cache:
    def __init__(self) -> None:
        self.status = Nothing()

    def get(self, uid: str) -> Nothing:
        return self.status

    def get_newer_than(self, uid: str, seconds: float | None) -> Nothing:
        return self.status


class PlainSteps:
    def __init__(self, done: Callable[[], None]) -> None:
        self.synced = SyncResult()
        self.done = done

    def sync_pod(self, type_: UpdateType, pod: Pod, mirror: Pod | None, status: Nothing) -> SyncResult:
        self.done()
        return self.synced

    def sync_terminating_pod(
        self, pod: Pod, status: Nothing, grace_seconds: int | None, override: Any
    ) -> None:
        return None

    def sync_terminating_runtime_pod(self, running: Any) -> None:
        return None

    def sync_terminated_pod(self, pod: Pod, status: Nothing) -> None:
        self.done()


class AwaitedSteps:
    def __init__(self, done: Callable[[], None]) -> None:
        self.synced = SyncResult()
        self.done = done

    async def sync_pod(self, type_: UpdateType, pod: Pod, mirror: Pod | None, status: Nothing) -> SyncResult:
        self.done()
        return self.synced

    async def sync_terminating_pod(
        self, pod: Pod, status: Nothing, grace_seconds: int | None, override: Any
    ) -> None:
        return None

    async def sync_terminating_runtime_pod(self, running: Any) -> None:
        return None

    async def sync_terminated_pod(self, pod: Pod, status: Nothing) -> None:
        self.done()


class NoEvents:
    def event(self, regarding: Any, type_: str, reason: str, message: str) -> None:
        raise AssertionError(message)


def _pod(number: int) -> Pod:
    metadata = Metadata(
        f"service-7d9c5b8f6d-{number:05}",
        "default",
        f"{number:08x}-0000-4000-8000-000000000000",
        {"kubernetes.io/config.source": "api"},
    )
    return Pod(metadata, Spec((Container("main", "registry.example/service:1"),)), Status())


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

    workers: PodWorkers[Pod, Nothing, Any] = PodWorkers(
        PlainSteps(done) if kind == "plain" else AwaitedSteps(done), Cache(), NoEvents()
    )
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

"""`podlife up` as a whole: how soon the first pod runs, a thousand processes as pods, and ten thousand simulated pods
through the failure of a tenth of their nodes.

Time runs from the start of the command's process. Memory is that of all processes of `up` together, what they share
counted once (PSS), the most of what was seen each second. Nothing may be left: no pod, no process, nothing that
terminates for ever.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.kit.up_process import UpProcess, running_up

from bench.report import Goal, Table
from podlife.aio import cancel_and_wait, spawn
from podlife.client import DEPLOYMENTS, NODES, PODS, Client, DeleteOptions, Flags, load
from podlife.clock import SystemClock
from podlife.localcluster.cluster_state import ClusterState, follow
from podlife.localcluster.control_socket import ask
from podlife.localcluster.state_dir import StateDir

MOST_SECONDS = 900.0
LOOK_SECONDS = 0.05
NODES_OF_FLEET = 100
FAILING = 10
# As long as a real node takes, apart from what only waits.
QUICK = (
    "--node-monitor-grace-period=20s",
    "--node-eviction-rate=10",
    "--default-unreachable-toleration-seconds=5",
    "--pod-gc-quarantine=5s",
)


@dataclass(frozen=True)
class Size:
    """How much is done; `quick` is for trying the benchmark itself."""

    processes: int = 1_000
    simulated: int = 10_000

    @classmethod
    def quick(cls) -> Size:
        return cls(processes=100, simulated=1_000)


@dataclass(frozen=True)
class Watched:
    up: UpProcess
    client: Client
    state: ClusterState

    async def until(self, is_so: Callable[[], bool], what: str) -> float:
        """How long it took."""
        began = time.monotonic()
        while not is_so():
            assert self.up.is_running, self.up.said
            assert time.monotonic() - began < MOST_SECONDS, f"{what}: {self.state.states}"
            await asyncio.sleep(LOOK_SECONDS)
        return time.monotonic() - began


@asynccontextmanager
async def watched(up: UpProcess) -> AsyncIterator[Watched]:
    async with Client.connect(load(Flags(kubeconfig=str(up.kubeconfig)))) as client:
        state = ClusterState(SystemClock())
        following = spawn(follow(state, client), name="state", on_failure=print)
        try:
            yield Watched(up, client, state)
        finally:
            await cancel_and_wait(following)


def run(folder: Path, size: Size) -> Table:
    table = Table(f"podlife up, {os.cpu_count()} cores", ("", "podlife"))
    up_seconds, pod_seconds = _first_pod(folder / "first")
    table.add("cold start to all nodes ready, s", None, up_seconds, Goal.at_most_value(3))
    table.add("cold start to first pod running, s", None, pod_seconds, Goal.at_most_value(5))
    _with(folder / "many", ("--max-pods=500",), lambda seen: _processes(seen, size, table))
    fleet = ("--runtime=sim", f"--nodes={NODES_OF_FLEET}", "--max-pods=200", *QUICK)
    _with(folder / "fleet", fleet, lambda seen: _failure(seen, size, table))
    return table


def _with(folder: Path, flags: tuple[str, ...], measure: Callable[[Watched], Awaitable[None]]) -> None:
    async def look(up: UpProcess) -> None:
        async with watched(up) as seen:
            await measure(seen)

    with running_up(folder, *flags) as up:
        asyncio.run(look(up))


def _first_pod(folder: Path) -> tuple[float, float]:
    async def look(up: UpProcess) -> None:
        async with watched(up) as seen:
            await seen.client.create(PODS, _pod("first"), "default")
            await seen.until(lambda: seen.state.states["Running"] == 1, "the first pod")

    began = time.monotonic()
    with running_up(folder) as up:
        up_seconds = time.monotonic() - began
        asyncio.run(look(up))
        return up_seconds, time.monotonic() - began


async def _processes(seen: Watched, size: Size, table: Table) -> None:
    began = time.monotonic()
    line = asyncio.Semaphore(32)

    async def create(number: int) -> None:
        async with line:
            await seen.client.create(PODS, _pod(f"p{number}"), "default")

    await asyncio.gather(*map(create, range(size.processes)))
    await seen.until(lambda: seen.state.states["Running"] == size.processes, "processes")
    table.add(f"{size.processes} process pods running, s", None, time.monotonic() - began, None)
    memory = _memory(seen.up)
    began = time.monotonic()
    await seen.client.delete_collection(PODS, "default")
    await seen.until(lambda: not seen.state.states, "the end of processes")
    table.add(f"{size.processes} process pods deleted, s", None, time.monotonic() - began, None)
    table.add("of them left as processes", None, float(_left_over(seen.up)), Goal.at_most_value(0))
    table.note(
        f"with {size.processes} process pods `up` itself took {memory:.0f} MB, without what runs in the pods"
    )


async def _failure(seen: Watched, size: Size, table: Table) -> None:
    peak = 0.0

    async def sample() -> None:
        nonlocal peak
        while True:
            peak = max(peak, _memory(seen.up))
            await asyncio.sleep(1.0)

    sampling = spawn(sample(), name="memory", on_failure=print)
    try:
        await _fail_nodes(seen, size, table)
    finally:
        await cancel_and_wait(sampling)
    table.add("memory of the whole, at most, MB", None, peak, Goal.at_most_value(1024))


async def _fail_nodes(seen: Watched, size: Size, table: Table) -> None:
    wanted, state = size.simulated, seen.state
    await seen.client.create(DEPLOYMENTS, _deployment(wanted), "default")
    seconds = await seen.until(lambda: state.states == {"Running": wanted}, "simulated pods")
    table.add(f"{wanted} simulated pods running, s", None, seconds, None)
    failed = [f"node-{number}" for number in range(FAILING)]
    lost = sum(state.on_node(name).total() for name in failed)
    for name in failed:
        ask(StateDir(seen.up.data), {"do": "stop", "node": name})
    seconds = await seen.until(
        lambda: state.states["Running"] == wanted and state.states["Terminating"] >= lost, "replacements"
    )
    table.add(f"{lost} pods of {FAILING} nodes replaced, s", None, seconds, None)
    for name in failed:
        uid = state.nodes[name].metadata.uid
        await seen.client.delete(NODES, name, options=DeleteOptions(uid=uid))
    seconds = await seen.until(lambda: state.states == {"Running": wanted}, "what is to be collected")
    table.add(f"{lost} pods collected, s", None, seconds, None)
    assert not any(state.on_node(name) for name in failed)
    table.note("40 s of silence are 20 here, and 300 s of toleration 5: what only waits is no measure")


def _pod(name: str) -> dict[str, Any]:
    container = {"name": "main", "image": "demo", "command": ["sleep", "100000"]}
    return {"metadata": {"name": name}, "spec": {"containers": [container]}}


def _deployment(replicas: int) -> dict[str, Any]:
    labels = {"app": "many"}
    template = {"metadata": {"labels": labels}, "spec": _pod("")["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": "many"}, "spec": spec}


def _memory(up: UpProcess) -> float:
    """In MB, of `up` and all its parts; what runs for pods is not among them."""
    nursery = _children(up.pid)
    return sum(_pss(pid) for pid in (up.pid, *nursery, *(part for pid in nursery for part in _children(pid))))


def _children(pid: int) -> list[int]:
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _pss(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:")), 0.0)


def _left_over(up: UpProcess) -> int:
    """Processes that have the folder of a container of these nodes."""
    left = 0
    for each in Path("/proc").iterdir():
        if each.name.isdecimal():
            try:
                left += (each / "cwd").readlink().is_relative_to(up.data / "nodes")
            except OSError:
                continue
    return left

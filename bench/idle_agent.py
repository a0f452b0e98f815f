"""What a node's agent costs when nothing happens: hundreds of pods run as processes, and for a minute the processor
time of the agent and of all its supervisors is counted.

The pods sleep; what they use themselves is not counted. Everything that was started is ended, however the run ends.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.kit.agent_process import AgentProcess
from tests.kit.real_parts import Server, kube_apiserver

from bench.load import Load
from bench.processes import cost_of, cpu_seconds, resident_bytes
from bench.report import Goal, Table

NODE = "n1"
PODS = "/api/v1/namespaces/default/pods"
REST_SECONDS = 15.0
MOST_SECONDS = 300.0


@dataclass(frozen=True)
class Size:
    """How much is done; `quick` is for trying the benchmark itself."""

    pods: int = 500
    seconds: float = 60.0

    @classmethod
    def quick(cls) -> Size:
        return cls(pods=50, seconds=15.0)


@dataclass(frozen=True)
class Idleness:
    """Processor time of the agent and of its supervisors in `seconds`, and what they hold in memory."""

    seconds: float
    agent_seconds: float
    supervisor_seconds: float
    agent_mb: float
    start_seconds: float

    @property
    def percent(self) -> float:
        """Of one core."""
        return 100 * (self.agent_seconds + self.supervisor_seconds) / self.seconds


def run(folder: Path, size: Size) -> Table:
    with kube_apiserver(folder / "kube-apiserver") as server, _agent(folder, server, size) as agent:
        started = asyncio.run(_start(server, size.pods))
        # Registration, first probes of everything and the last of the statuses are not what is measured.
        time.sleep(REST_SECONDS)
        idle = _measure(agent.pid, size, started)
    return judge(size, idle)


@contextmanager
def _agent(folder: Path, server: Server, size: Size) -> Iterator[AgentProcess]:
    """The agent; with it go its pods, which would outlive it."""
    flags = ("--runtime", "process", "--max-pods", str(size.pods + 10))
    agent = AgentProcess(folder, server.kubeconfig, *flags, name=NODE)
    try:
        agent.start()
        yield agent
    finally:
        below = _descendants(agent.pid)
        if agent.is_running:
            agent.stop()
        # A supervisor's container is in a session of its own, and goes with it only if it is asked.
        for pid in reversed(below):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


async def _start(server: Server, pods: int) -> float:
    began = time.perf_counter()
    async with Load(server.host, server.port, server.ca_file, server.tokens["admin"]) as load:
        rate = await load.run(load.request("POST", PODS, _pod(f"p-{i}")) for i in range(pods))
        assert not rate.failed
        others = load.request("GET", f"{PODS}?limit=1&fieldSelector=status.phase%21%3DRunning")
        while b'"uid"' in await load.text(others):
            assert time.perf_counter() - began < MOST_SECONDS, "not all pods came to run"
            await asyncio.sleep(0.2)
    return time.perf_counter() - began


def _pod(name: str) -> bytes:
    container = {"name": "c", "image": "i", "command": ["sleep", "100000"]}
    spec = {"nodeName": NODE, "containers": [container], "terminationGracePeriodSeconds": 0}
    return json.dumps({"metadata": {"name": name}, "spec": spec}).encode()


def _measure(agent: int, size: Size, started: float) -> Idleness:
    below = _descendants(agent)
    assert len(below) >= 2 * size.pods, "there is less than a supervisor and a process for each pod"
    before, before_below, began = cpu_seconds(agent), cpu_seconds(*below), time.perf_counter()
    time.sleep(size.seconds)
    assert cost_of(agent) is not None, "the agent has ended"
    return Idleness(
        time.perf_counter() - began,
        cpu_seconds(agent) - before,
        cpu_seconds(*below) - before_below,
        resident_bytes(agent) / 1e6,
        started,
    )


def _descendants(pid: int) -> list[int]:
    """All processes below this one, parents before their children."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, IndexError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    found = [pid]
    for each in found:
        found += children.get(each, ())
    return found[1:]


def judge(size: Size, idle: Idleness) -> Table:
    table = Table(f"idle agent: {size.pods} running process pods for {size.seconds:.0f} s", ("", "podlife"))
    table.add("% of a core", None, idle.percent, Goal.at_most_value(1.0))
    table.add("agent MB", None, idle.agent_mb, None)
    table.note(
        f"agent {idle.agent_seconds:.2f} s of CPU, its supervisors {idle.supervisor_seconds:.2f} s, in "
        f"{idle.seconds:.0f} s; all pods ran {idle.start_seconds:.1f} s after the first was created"
    )
    return table

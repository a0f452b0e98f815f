"""Simulated pods by the thousand on one node: ours beside kwok, each on a kube-apiserver of its own, of one kind.

Pods are created bound to the node, and the clock runs until the API server shows all of them Running; then they are
deleted as users delete them, with their grace, and the clock runs until etcd holds none. Whether all run is asked for
once the last is created, for one pod that does not. What an agent cost is what its process has used from its start.
Ours runs twice: as quick as kwok about the ends of pods, and as a node does, which tells how a pod ended before it
goes.
"""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.kit.real_parts import Server, kube_apiserver, tail

from bench.kwok import kwok, prepare_kwok
from bench.load import Load
from bench.processes import Cost, cost_of, cpu_seconds, most_per_second
from bench.report import Goal, Table

NAMESPACE = "many"
NODE = "sim-0"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
ACCEPT = b"Accept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
LOOK_SECONDS = 0.1
REST_SECONDS = 3.0
MOST_SECONDS = 600.0


@dataclass(frozen=True)
class Size:
    """How much is done; `quick` is for trying the benchmark itself."""

    pods: int = 10_000

    @classmethod
    def quick(cls) -> Size:
        return cls(pods=1_000)


@dataclass(frozen=True)
class Life:
    """What was measured of one agent: from the first create until all pods ran, from the first delete until all were
    gone, and what it cost it and the servers."""

    start_seconds: float
    end_seconds: float
    cost: Cost
    server_seconds: float

    @property
    def seconds(self) -> float:
        return self.start_seconds + self.end_seconds


def run(folder: Path, size: Size) -> Table:
    prepare_kwok()
    theirs = _measure(folder / "theirs", size, kwok)
    ours = _measure(folder / "ours", size, lambda *where: podlife_sim(*where, "--quick-ends"))
    whole = _measure(folder / "whole", size, podlife_sim)
    return compare(size, theirs, ours, whole)


Start = Callable[[Path, Server], AbstractContextManager[subprocess.Popen[bytes]]]


def _measure(folder: Path, size: Size, start: Start) -> Life:
    with kube_apiserver(folder / "kube-apiserver") as server, start(folder, server) as process:
        return asyncio.run(Cluster(server, size.pods).live(process))


class Cluster:
    def __init__(self, server: Server, pods: int) -> None:
        self._server = server
        self._pods = pods

    async def live(self, process: subprocess.Popen[bytes]) -> Life:
        server = self._server
        async with Load(server.host, server.port, server.ca_file, server.tokens["admin"]) as load:
            await self._build(load)
            await asyncio.sleep(REST_SECONDS)
            servers = (server.pid, server.etcd_pid)
            before = cpu_seconds(*servers)
            began = time.perf_counter()
            creates = (load.request("POST", PODS, _pod(f"p-{i}")) for i in range(self._pods))
            assert not (await load.run(creates)).failed
            await self._until(lambda: self._all_run(load), process)
            started = time.perf_counter() - began
            began = time.perf_counter()
            deletes = (load.request("DELETE", f"{PODS}/p-{i}") for i in range(self._pods))
            assert not (await load.run(deletes)).failed
            await self._until(self._none_is_left, process)
            ended = time.perf_counter() - began
            cost, spent = cost_of(process.pid), cpu_seconds(*servers) - before
            assert cost is not None
            return Life(started, ended, cost, spent)

    async def _build(self, load: Load) -> None:
        """The namespace, and the node; an agent that registers its own has done so already."""
        node = {"metadata": {"name": NODE, "labels": {"kubernetes.io/hostname": NODE}}}
        await load.one(load.request("POST", "/api/v1/nodes", json.dumps(node).encode()))
        namespace = json.dumps({"metadata": {"name": NAMESPACE}}).encode()
        await load.one(load.request("POST", "/api/v1/namespaces", namespace))

    async def _until(self, done: Callable[[], Awaitable[bool]], process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + MOST_SECONDS
        while not await done():
            assert process.poll() is None, f"the agent ended with {process.returncode}"
            assert time.monotonic() < deadline, f"{self.count()} of {self._pods} pods are there"
            await asyncio.sleep(LOOK_SECONDS)

    async def _none_is_left(self) -> bool:
        return self.count() == 0

    def count(self) -> int:
        """How many pods of NAMESPACE etcd holds."""
        begin = f"/registry/pods/{NAMESPACE}/".encode()
        end = begin[:-1] + bytes([begin[-1] + 1])
        wanted = {"key": _base64(begin), "range_end": _base64(end), "count_only": True}
        request = urllib.request.Request(f"{self._server.etcd_url}/v3/kv/range", json.dumps(wanted).encode())
        with urllib.request.urlopen(request, timeout=10) as answer:
            return int(json.load(answer).get("count", 0))

    async def _all_run(self, load: Load) -> bool:
        others = f"{PODS}?limit=1&fieldSelector=status.phase%21%3DRunning"
        request = load.request("GET", others).replace(b"Accept: application/json", ACCEPT)
        return b'"uid"' not in await load.text(request)


def _pod(name: str) -> bytes:
    container = {"name": "c", "image": "i"}
    pod = {"metadata": {"name": name}, "spec": {"nodeName": NODE, "containers": [container]}}
    return json.dumps(pod).encode()


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


@contextmanager
def podlife_sim(folder: Path, server: Server, *flags: str) -> Iterator[subprocess.Popen[bytes]]:
    """`podlife sim` with one node, as a user starts it."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "podlife", "sim", "--nodes=1", "--max-pods=20000", *flags]
    command += ["--kubeconfig", str(server.kubeconfig)]
    log = folder / "podlife-sim.log"
    with log.open("wb") as output, ExitStack() as stack:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        stack.callback(process.wait, 30)
        stack.callback(process.terminate)
        deadline = time.monotonic() + 60
        while b"1 node is ready" not in log.read_bytes():
            assert process.poll() is None, tail(log)
            assert time.monotonic() < deadline, tail(log)
            time.sleep(0.05)
        yield process


def compare(size: Size, theirs: Life, ours: Life, whole: Life) -> Table:
    """kwok does not tell how a pod ended before it removes it, so the like of it is held against it."""
    table = Table(f"simulated pods: {size.pods} on one node, on kube-apiserver v1.36", ("kwok", "podlife"))
    pods = size.pods
    table.add("lives/s", pods / theirs.seconds, pods / ours.seconds, Goal.at_least(1.0))
    table.add("to Running/s", pods / theirs.start_seconds, pods / ours.start_seconds, None)
    table.add("deleted/s", pods / theirs.end_seconds, pods / ours.end_seconds, None)
    table.add("CPU s", theirs.cost.cpu_seconds, ours.cost.cpu_seconds, None)
    table.add("peak MB", theirs.cost.peak_mb, ours.cost.peak_mb, None)
    for name, life in (("kwok", theirs), ("podlife", ours), ("with ends told", whole)):
        table.note(
            f"{name}: all Running after {life.start_seconds:.1f} s, all gone {life.end_seconds:.1f} s after the "
            f"first delete; servers: {life.server_seconds:.1f} s of CPU"
        )
        table.note(f"{name}: {most_per_second(life.server_seconds, pods)}")
    return table

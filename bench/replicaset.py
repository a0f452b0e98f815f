"""One ReplicaSet of thousands of pods: ours beside kube-controller-manager, on the same kube-apiserver, one after the
other.

A controller is started and given time to come to rest; then the ReplicaSet is created, and the clock runs until its
status counts all its pods. What a controller cost is what its process has used from its start to then. Progress is
asked of etcd and of one object, which costs the API server next to nothing. Before the next one comes everything is
gone.
"""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.kit.real_parts import Server, controller_manager_process, kube_apiserver

from bench.apiserver import _json
from bench.load import Load
from bench.processes import Cost, cost_of, cpu_seconds, most_per_second
from bench.report import Goal, Table

NAMESPACE = "many"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
REPLICA_SETS = f"/apis/apps/v1/namespaces/{NAMESPACE}/replicasets"
LOOK_SECONDS = 0.05
REST_SECONDS = 3.0


@dataclass(frozen=True)
class Size:
    """How much is done; `quick` is for trying the benchmark itself."""

    pods: int = 5_000

    @classmethod
    def quick(cls) -> Size:
        return cls(pods=500)


@dataclass(frozen=True)
class Scaling:
    """What was measured of one controller: until all pods were there, until its status said so, and what it cost."""

    pods_seconds: float
    seconds: float
    start_cost: Cost
    cost: Cost
    # What the servers spent on it.
    server_seconds: float


def run(folder: Path, size: Size) -> Table:
    with kube_apiserver(folder / "kube-apiserver") as server:
        cluster = Cluster(server, size.pods)
        asyncio.run(cluster.build())
        theirs = cluster.measure(lambda: _kube_controller_manager(folder / "kcm", server))
        ours = cluster.measure(lambda: _podlife(folder, server))
    return compare(size, theirs, ours)


class Cluster:
    def __init__(self, server: Server, pods: int) -> None:
        self._server = server
        self._pods = pods

    def _load(self) -> Load:
        server = self._server
        return Load(server.host, server.port, server.ca_file, server.tokens["admin"])

    async def build(self) -> None:
        async with self._load() as load:
            namespace = _json({"metadata": {"name": NAMESPACE}})
            await load.one(load.request("POST", "/api/v1/namespaces", namespace))

    def measure(
        self, start: Callable[[], AbstractContextManager[subprocess.Popen[bytes]]], seconds: float = 600.0
    ) -> Scaling:
        """Start the controller, have it make all pods, end it, and take everything away again."""
        with start() as process:
            time.sleep(REST_SECONDS)
            start_cost = cost_of(process.pid)
            servers = (self._server.pid, self._server.etcd_pid)
            before = cpu_seconds(*servers)
            scaling = asyncio.run(self._scale(process, seconds))
            spent = cpu_seconds(*servers) - before
        assert start_cost is not None
        asyncio.run(self._clear())
        time.sleep(REST_SECONDS)  # what the servers do after that is not what is measured
        return Scaling(scaling[0], scaling[1], start_cost, scaling[2], spent)

    async def _scale(self, process: subprocess.Popen[bytes], seconds: float) -> tuple[float, float, Cost]:
        async with self._load() as load:
            began = time.perf_counter()
            await load.one(load.request("POST", REPLICA_SETS, _json(replica_set(self._pods))))
            all_at = 0.0
            while True:
                now = time.perf_counter()
                assert now - began < seconds, f"{self.count()} of {self._pods} pods were there"
                assert process.poll() is None, f"the controller ended with {process.returncode}"
                if not all_at and self.count() >= self._pods:
                    all_at = time.perf_counter()
                if all_at:
                    text = await load.text(load.request("GET", f"{REPLICA_SETS}/web"))
                    if json.loads(text)["status"].get("replicas") == self._pods:
                        break
                await asyncio.sleep(LOOK_SECONDS)
            ended = time.perf_counter()
            cost = cost_of(process.pid)
            assert cost is not None
            assert self.count() == self._pods, "there are pods too many"
            return all_at - began, ended - began, cost

    def count(self) -> int:
        """How many pods of NAMESPACE etcd holds."""
        return int(self._ask_etcd(count_only=True).get("count", 0))

    def _names(self) -> list[str]:
        found = self._ask_etcd(keys_only=True).get("kvs", [])
        return [base64.b64decode(each["key"]).decode().rpartition("/")[2] for each in found]

    def _ask_etcd(self, **how: bool) -> dict[str, Any]:
        begin = f"/registry/pods/{NAMESPACE}/".encode()
        end = begin[:-1] + bytes([begin[-1] + 1])
        wanted = {"key": _base64(begin), "range_end": _base64(end), **how}
        request = urllib.request.Request(f"{self._server.etcd_url}/v3/kv/range", json.dumps(wanted).encode())
        with urllib.request.urlopen(request, timeout=10) as answer:
            found: dict[str, Any] = json.load(answer)
            return found

    async def _clear(self) -> None:
        """No controller is at work: what is deleted stays away."""
        at_once = _json({"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})
        async with self._load() as load:
            await load.one(load.request("DELETE", f"{REPLICA_SETS}/web"))
            rate = await load.run(load.request("DELETE", f"{PODS}/{name}", at_once) for name in self._names())
            assert not rate.failed, "pods could not be deleted"
        assert self.count() == 0


def replica_set(replicas: int) -> dict[str, object]:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web"}, "spec": spec}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


@contextmanager
def _kube_controller_manager(folder: Path, server: Server) -> Iterator[subprocess.Popen[bytes]]:
    """With its limits lifted, and in the format that it speaks by default."""
    flags = (
        "--concurrent-replicaset-syncs=50",
        "--kube-api-qps=100000",
        "--kube-api-burst=100000",
        "--kube-api-content-type=application/vnd.kubernetes.protobuf",
    )
    with controller_manager_process(folder, server, ["replicaset-controller"], *flags) as process:
        yield process


@contextmanager
def _podlife(folder: Path, server: Server) -> Iterator[subprocess.Popen[bytes]]:
    """`podlife controllers run`, as a user starts it."""
    command = [sys.executable, "-m", "podlife", "controllers", "run", "--controllers=replicaset"]
    command += ["--leader-elect=false", "--kubeconfig", str(server.kubeconfig)]
    path = folder / "podlife-controllers.log"
    with path.open("wb") as log, ExitStack() as stack:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        stack.callback(process.wait, 30)
        stack.callback(process.terminate)
        deadline = time.monotonic() + 60
        while b"running: replicaset-controller" not in path.read_bytes():
            assert process.poll() is None, path.read_text()
            assert time.monotonic() < deadline, path.read_text()
            time.sleep(0.05)
        yield process


def compare(size: Size, theirs: Scaling, ours: Scaling) -> Table:
    table = Table(
        f"ReplicaSet: {size.pods} pods of one, on kube-apiserver v1.36", ("kube-c-manager", "podlife")
    )
    table.add("pods/s", size.pods / theirs.seconds, size.pods / ours.seconds, Goal.at_least(1.5))
    table.add("CPU s", theirs.cost.cpu_seconds, ours.cost.cpu_seconds, Goal.at_most(1.0))
    table.add("peak MB", theirs.cost.peak_mb, ours.cost.peak_mb, Goal.at_most(2 / 3))
    for name, scaling in zip(table.names, (theirs, ours), strict=True):
        spent = scaling.cost.cpu_seconds - scaling.start_cost.cpu_seconds
        table.note(
            f"{name}: all pods after {scaling.pods_seconds:.1f} s, status after {scaling.seconds:.1f} s; "
            f"of the CPU {scaling.start_cost.cpu_seconds:.1f} s to start and {spent:.1f} s to scale; "
            f"{scaling.start_cost.peak_mb:.0f} MB at rest"
        )
        table.note(f"{name}: {most_per_second(scaling.server_seconds, size.pods)}")
    return table

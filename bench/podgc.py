"""The pod collector beside kube-controller-manager's: the same pods, on the same kube-apiserver, one after the other.

The cluster is built once; what a collector took is put back before the next one comes. How many pods are left is
asked of etcd, which costs the API server nothing. A collector's rate is that of its deletions, from the first to the
last; what it cost is what its process has used from its start to the last deletion.
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

from tests.kit.real_parts import Server, controller_manager_process, kube_apiserver, write_kubeconfig

from bench.apiserver import _json, _pod
from bench.load import Load
from bench.processes import Cost, cost_of, cpu_seconds, most_per_second
from bench.relay import relay
from bench.report import Goal, Table

CONTROLLER = "pod-garbage-collector-controller"
NAMESPACE = "ended"
ENDED = f"/api/v1/namespaces/{NAMESPACE}/pods"
OTHERS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"
LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class Size:
    """How much is done; `quick` is for trying the benchmark itself."""

    pods: int = 36_000
    victims: int = 5_000
    indexed: int = 1_000_000
    reactions: int = 500

    @classmethod
    def quick(cls) -> Size:
        return cls(pods=6_000, victims=1_000, indexed=100_000, reactions=100)


@dataclass(frozen=True)
class Sweep:
    """What was measured of one collector."""

    per_second: float
    start_seconds: float
    cost: Cost
    # What the servers spent on the deletions.
    server_seconds: float


def run(folder: Path, size: Size) -> Table:
    with kube_apiserver(folder / "kube-apiserver") as server:
        cluster = Cluster(server, size)
        cluster.build()
        theirs = cluster.measure(lambda: _kube_controller_manager(folder / "kcm", server))
        sweep = cluster.measure(lambda: _podlife(folder, server, "sweep", "--yes"))
        controller = cluster.measure(lambda: _podlife(folder, server, "run", "--no-leader-elect"))
        reactions = asyncio.run(_measure_reactions(folder, cluster, size.reactions))
    return _compare(size, theirs, sweep, controller, reactions, _measure_index(size.indexed))


class Cluster:
    """All pods of NAMESPACE have ended, but for a threshold of one they are all to be collected."""

    def __init__(self, server: Server, size: Size) -> None:
        self.server = server
        self._size = size

    def build(self) -> None:
        asyncio.run(self._build())
        self.restore()

    async def _build(self) -> None:
        async with self.load() as load:
            node = {
                "metadata": {"name": "node-1"},
                "status": {"conditions": [{"type": "Ready", "status": "True"}]},
            }
            await load.one(load.request("POST", "/api/v1/nodes", _json(node)))
            namespace = _json({"metadata": {"name": NAMESPACE}})
            await load.one(load.request("POST", "/api/v1/namespaces", namespace))
            count = self._size.pods - self._size.victims - 1
            rate = await load.run(load.request("POST", OTHERS, _pod(f"pod-{n:06d}")) for n in range(count))
            assert not rate.failed, "the cluster could not be built"

    def load(self) -> Load:
        server = self.server
        return Load(server.host, server.port, server.ca_file, server.tokens["admin"])

    def restore(self) -> None:
        """Put back what was taken."""
        asyncio.run(self._restore())

    async def _restore(self) -> None:
        async with self.load() as load:
            text = await load.text(load.request("GET", ENDED))
            names = [f"ended-{n:06d}" for n in range(self._size.victims + 1)]
            await self.end(load, [name for name in names if f'"name":"{name}"'.encode() not in text])

    async def end(self, load: Load, names: list[str]) -> None:
        """Pods that have ended."""
        made = await load.run(load.request("POST", ENDED, _pod(name)) for name in names)
        ended = await load.run(
            load.request("PATCH", f"{ENDED}/{name}/status", b'{"status":{"phase":"Succeeded"}}', MERGE)
            for name in names
        )
        assert made.failed == ended.failed == 0, "the pods could not be put back"

    def left(self) -> int:
        """How many pods of NAMESPACE etcd holds."""
        begin = f"/registry/pods/{NAMESPACE}/".encode()
        end = begin[:-1] + bytes([begin[-1] + 1])
        wanted = {"key": _base64(begin), "range_end": _base64(end), "count_only": True}
        request = urllib.request.Request(f"{self.server.etcd_url}/v3/kv/range", json.dumps(wanted).encode())
        with urllib.request.urlopen(request, timeout=10) as answer:
            return int(json.load(answer).get("count", 0))

    def measure(
        self, start: Callable[[], AbstractContextManager[subprocess.Popen[bytes]]], seconds: float = 600.0
    ) -> Sweep:
        """Start the collector, wait for its last deletion, and put everything back."""
        time.sleep(3)  # what the servers do after a restore is not what is measured
        began = time.perf_counter()
        servers = (self.server.pid, self.server.etcd_pid)
        total, first_at, first, last = self.left(), 0.0, 0, None
        spent = 0.0
        with start() as process:
            while (left := self.left()) > 1:
                now = time.perf_counter()
                if left < total and not first_at:
                    first_at, first, spent = now, left, cpu_seconds(*servers)
                assert now - began < seconds, f"{left} pods were still there"
                assert process.poll() in (None, 0), f"the collector ended with {process.returncode}"
                last = cost_of(process.pid) or last
                time.sleep(LOOK_SECONDS)
            ended_at = time.perf_counter()
            last = cost_of(process.pid) or last
            spent = cpu_seconds(*servers) - spent
        assert last is not None
        self.restore()
        # The servers' share of the few that were gone at the first look is left out of both numbers.
        return Sweep(
            (first - 1) / (ended_at - first_at), first_at - began, last, spent * total / max(1, first - 1)
        )


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


@contextmanager
def _kube_controller_manager(folder: Path, server: Server) -> Iterator[subprocess.Popen[bytes]]:
    """With its limits lifted, and in the format that it speaks by default."""
    flags = (
        "--terminated-pod-gc-threshold=1",
        "--kube-api-qps=100000",
        "--kube-api-burst=100000",
        "--kube-api-content-type=application/vnd.kubernetes.protobuf",
    )
    with controller_manager_process(folder, server, [CONTROLLER], *flags) as process:
        yield process


@contextmanager
def _podlife(
    folder: Path, server: Server, *arguments: str, kubeconfig: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """`podlife gc …`, as a user starts it."""
    command = [sys.executable, "-m", "podlife", "gc", *arguments, "--terminated-pod-gc-threshold=1"]
    command += ["--kubeconfig", str(kubeconfig or server.kubeconfig)]
    with (folder / f"podlife-gc-{arguments[0]}.log").open("wb") as log, ExitStack() as stack:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        stack.callback(process.wait, 30)
        stack.callback(process.terminate)
        yield process


async def _measure_reactions(folder: Path, cluster: Cluster, count: int) -> list[float]:
    """From the request that ends one pod too many to the DELETE that the collector sends for it: what the server
    takes to do and to tell it is in there too."""
    server = cluster.server
    seen: asyncio.Queue[float] = asyncio.Queue()
    async with (
        cluster.load() as load,
        relay((server.host, server.port), server.ca_file, "DELETE", seen.put_nowait) as port,
    ):
        kubeconfig = folder / "relay.kubeconfig"
        write_kubeconfig(kubeconfig, server, {"token": server.tokens["admin"]})
        kubeconfig.write_text(kubeconfig.read_text().replace(server.url, f"http://127.0.0.1:{port}"))
        names = [f"late-{n:06d}" for n in range(count)]
        await load.run(load.request("POST", ENDED, _pod(name)) for name in names)
        with _podlife(folder, server, "run", "--no-leader-elect", kubeconfig=kubeconfig):
            # Once what there was is collected, one has ended and may stay.
            while await asyncio.to_thread(cluster.left) > count + 1:
                await asyncio.sleep(0.2)
            await asyncio.sleep(1)
            while not seen.empty():
                seen.get_nowait()
            return [await _react(load, name, seen) for name in names]


async def _react(load: Load, name: str, seen: asyncio.Queue[float]) -> float:
    body = b'{"status":{"phase":"Succeeded"}}'
    began = time.perf_counter()
    await load.one(load.request("PATCH", f"{ENDED}/{name}/status", body, MERGE))
    sent = await asyncio.wait_for(seen.get(), 30)
    return sent - began


def _measure_index(count: int) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "bench.podgc_index", str(count)],
        check=True,
        stdout=subprocess.PIPE,
        timeout=1200,
    )
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def _compare(
    size: Size,
    theirs: Sweep,
    sweep: Sweep,
    controller: Sweep,
    reactions: list[float],
    index: dict[str, float],
) -> Table:
    table = Table(
        f"Pod collector: {size.victims} of {size.pods} pods, on kube-apiserver v1.36",
        ("kube-c-manager", "podlife"),
    )
    for name, ours in (("sweep", sweep), ("run", controller)):
        table.add(f"gc {name}: pods/s", theirs.per_second, ours.per_second, Goal.at_least(3.0))
        table.add(f"gc {name}: CPU s", theirs.cost.cpu_seconds, ours.cost.cpu_seconds, Goal.at_most(1 / 3))
        table.add(f"gc {name}: peak MB", theirs.cost.peak_mb, ours.cost.peak_mb, Goal.at_most(1 / 5))
        table.add(f"gc {name}: first deletion after s", theirs.start_seconds, ours.start_seconds, None)
    table.add(f"idle pass, {size.indexed} pods, ms", None, index["idle_pass_ms"], Goal.at_most_value(1.0))
    table.add("a pod in cache and index, bytes", None, index["bytes_per_pod"], Goal.at_most_value(1024))
    reactions.sort()
    p99 = reactions[int(len(reactions) * 0.99)] * 1e3
    table.add("event to DELETE, p99 ms", None, p99, Goal.at_most_value(100))
    table.note(
        f"event to DELETE: median {reactions[len(reactions) // 2] * 1e3:.1f} ms, with what the server takes"
    )
    for name, measured in zip(
        ("kube-c-manager", "gc sweep", "gc run"), (theirs, sweep, controller), strict=True
    ):
        table.note(f"{name}: {most_per_second(measured.server_seconds, size.victims)}")
    table.note(f"index: {size.indexed} pods read in {index['sync_seconds']:.1f} s")
    return table

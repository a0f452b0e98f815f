"""The page of a large cluster in Chromium: how fluid it is, what it and its server take, how soon it is complete.

Nodes, leases and pods are written straight into the API server. A process of its own makes pods ready and not ready
and renews the leases, while the page is scrolled all the time, as grid and as lanes.
`python -m bench.ui HOST PORT CA TOKEN PODS NODES CHANGES` is that process.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.kit.browser import Visit, chromium, visiting
from tests.kit.component_process import running
from tests.kit.real_parts import Server, podlife_apiserver
from tests.kit.ui_process import UiProcess, browser_pids
from tests.kit.wait import until

from bench.load import Load
from bench.processes import cpu_seconds, resident_bytes
from bench.report import Goal, Table
from podlife.api.codec import format_micro_time, format_time
from podlife.clock import SystemClock

PODS, NODES = "/api/v1/namespaces/default/pods", "/api/v1/nodes"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
MERGE = "application/merge-patch+json"
LEASE_SECONDS, TICK_SECONDS = 10.0, 0.1
SCROLL = """([id, seconds]) => new Promise((done) => {
  const scroller = document.getElementById(id), began = performance.now();
  let [frames, longest, last] = [0, 0, began];
  const step = (now) => {
    [frames, longest, last] = [frames + 1, Math.max(longest, now - last), now];
    const most = scroller.scrollHeight - scroller.clientHeight;
    scroller.scrollTop = scroller.scrollTop + 60 > most ? 0 : scroller.scrollTop + 60;
    if (now - began < seconds * 1000) requestAnimationFrame(step);
    else done([frames / ((now - began) / 1000), longest]);
  };
  requestAnimationFrame(step);
})"""


@dataclass(frozen=True)
class Size:
    """How much is done; `quick` is for trying the benchmark itself."""

    pods: int = 10_000
    nodes: int = 1_000
    changes: int = 200
    seconds: float = 20.0

    @classmethod
    def quick(cls) -> Size:
        return cls(pods=1_000, nodes=100, changes=20, seconds=5.0)


def run(folder: Path, size: Size) -> Table:
    with podlife_apiserver(folder / "apiserver") as server:
        asyncio.run(_build(server, size))
        ui = UiProcess(folder, "--kubeconfig", str(server.kubeconfig))
        with _changing(server, size), running(ui):
            return asyncio.run(_measure(ui, size))


async def _measure(ui: UiProcess, size: Size) -> Table:
    title = f"page: {size.pods} pods, {size.nodes} nodes, {size.changes} changes a second"
    table = Table(title, ("", "podlife"))
    complete = f"{size.pods:,} pods · {size.nodes:,} nodes"
    async with chromium() as browser:
        # The server has read the cluster, and the browser has started all of its processes.
        async with visiting(browser, ui.address) as visit:
            await _shows(visit, complete)
        async with visiting(browser, "about:blank") as visit:
            await asyncio.sleep(2)
            empty = sum(_browser_mb())
            spent, began = cpu_seconds(ui.pid, *browser_pids()), time.perf_counter()
            await visit.page.goto(ui.address)
            await _shows(visit, complete)
            table.add("s to the complete picture", None, time.perf_counter() - began, Goal.at_most_value(2))
            spent = cpu_seconds(ui.pid, *browser_pids()) - spent
            table.note(f"Chromium and the server spent {spent:.2f} s of CPU on that picture")
            before, since = cpu_seconds(ui.pid), time.perf_counter()
            for mode in ("grid", "lanes"):
                await visit.page.locator(f"#mode-{mode}").click()
                per_second, longest = await visit.page.evaluate(SCROLL, [f"{mode}-scroll", size.seconds])
                table.add(f"ms per frame, {mode}", None, 1000 / per_second, Goal.at_most_value(1000 / 30))
                table.note(f"{mode}: {per_second:.1f} frames a second, the longest took {longest:.0f} ms")
            share = 100 * (cpu_seconds(ui.pid) - before) / (time.perf_counter() - since)
            heap = await visit.page.evaluate("performance.memory.usedJSHeapSize") / 1e6
            # The bar is about the page: what the browser takes without it depends on the browser.
            page_mb = max(_browser_mb("--type=renderer"))
            table.add("MB of the page's own process", None, page_mb, Goal.at_most_value(300))
            table.add("MB of Chromium, all processes", None, sum(_browser_mb()), None)
            table.add("server: % of a core", None, share, Goal.at_most_value(25))
            table.add("server: MB", None, resident_bytes(ui.pid) / 1e6, Goal.at_most_value(200))
            table.note(
                f"Chromium: {empty:.0f} MB with an empty page; {heap:.0f} MB of JavaScript objects here"
            )
    return table


async def _shows(visit: Visit, counts: str) -> None:
    texts = "['connection', 'count-all'].map(id => document.getElementById(id)?.textContent)"

    async def is_complete() -> bool:
        return bool(await visit.page.evaluate(texts) == ["live", counts])

    try:
        await until(is_complete)
    except AssertionError:
        raise AssertionError(f"the page shows {await visit.page.evaluate(texts)}") from None


def _browser_mb(kind: str = "") -> list[float]:
    """Of each process of a kind, or of each; memory that they share counts once. The largest renderer is that of the
    page: others are spare ones, and one of the browser itself."""
    found = [0.0]
    for pid in browser_pids():
        with suppress(OSError):
            if kind.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                text = Path(f"/proc/{pid}/smaps_rollup").read_text()
                pss = re.search(r"^Pss: +(\d+)", text, re.MULTILINE)
                found += [int(pss[1]) * 1024 / 1e6] if pss else []
    return found


# The cluster


async def _build(server: Server, size: Size) -> None:
    async with Load(server.host, server.port, server.ca_file, server.tokens["admin"]) as load:
        ready = {"conditions": [_condition(is_ready=True)]}
        nodes = [{"metadata": {"name": f"node-{i}"}, "status": ready} for i in range(size.nodes)]
        leases = [{"metadata": {"name": f"node-{i}"}, "spec": _renewed()} for i in range(size.nodes)]
        for path, objects in (
            (NODES, nodes),
            (LEASES, leases),
            (PODS, [_pod(i, i % size.nodes) for i in range(size.pods)]),
        ):
            made = await load.run(load.request("POST", path, json.dumps(each).encode()) for each in objects)
            assert not made.failed, f"{made.failed} of {path} could not be created"
        await load.run(_patch(load, i, is_ready=True) for i in range(size.pods))
        await load.run(load.request("PATCH", f"{NODES}/node-{i}/status", json.dumps({"status": ready}).encode(), MERGE)
                       for i in range(size.nodes))  # fmt: skip


def _pod(number: int, node: int) -> dict[str, object]:
    named = {"name": f"app-{number % 200}-{number}", "labels": {"app": f"app-{number % 200}"}}
    return {
        "metadata": named,
        "spec": {"nodeName": f"node-{node}", "containers": [{"name": "app", "image": "i"}]},
    }


def _condition(*, is_ready: bool) -> dict[str, str]:
    now = format_time(SystemClock().now())
    return {"type": "Ready", "status": str(is_ready), "lastTransitionTime": now, "lastHeartbeatTime": now}


def _renewed() -> dict[str, object]:
    return {"renewTime": format_micro_time(SystemClock().now()), "leaseDurationSeconds": 40}


def _patch(load: Load, number: int, *, is_ready: bool) -> bytes:
    started = {"running": {"startedAt": format_time(SystemClock().now())}}
    app = {"name": "app", "ready": is_ready, "restartCount": 0, "image": "i", "imageID": "", "state": started}
    condition = _condition(is_ready=is_ready)
    condition.pop("lastHeartbeatTime")
    status = {"phase": "Running", "conditions": [condition], "containerStatuses": [app]}
    path = f"{PODS}/app-{number % 200}-{number}/status"
    return load.request("PATCH", path, json.dumps({"status": status}).encode(), MERGE)


@contextmanager
def _changing(server: Server, size: Size) -> Iterator[None]:
    where = [server.host, str(server.port), str(server.ca_file), server.tokens["admin"]]
    numbers = [str(size.pods), str(size.nodes), str(size.changes)]
    process = subprocess.Popen([sys.executable, "-m", "bench.ui", *where, *numbers], stdin=subprocess.DEVNULL)
    try:
        yield
        assert process.poll() is None, "the process that changes pods has ended"
    finally:
        process.terminate()
        process.wait(30)


async def _change(host: str, port: str, ca_file: str, token: str, *numbers: str) -> None:
    """At an even pace: pods become not ready and ready again, each node renews its lease."""
    size = Size(*map(int, numbers))
    pods, nodes = itertools.cycle(range(size.pods)), itertools.cycle(range(size.nodes))
    loop, done = asyncio.get_running_loop(), 0
    async with Load(host, int(port), Path(ca_file), token, connections=8) as load:
        began = loop.time()
        while True:
            wanted = int((loop.time() - began) * size.changes)
            requests = [
                _patch(load, next(pods), is_ready=i // size.pods % 2 == 1) for i in range(done, wanted)
            ]
            share = size.nodes / LEASE_SECONDS / size.changes
            for _ in range(int(wanted * share) - int(done * share)):
                body = json.dumps({"spec": _renewed()}).encode()
                requests.append(load.request("PATCH", f"{LEASES}/node-{next(nodes)}", body, MERGE))
            if requests:
                rate = await load.run(requests)
                assert not rate.failed
            done = wanted
            await asyncio.sleep(TICK_SECONDS)


if __name__ == "__main__":
    asyncio.run(_change(*sys.argv[1:]))

"""The page for an hour: pods come and go all the time, and every minute something is disturbed.

Two pages stay open: one of `podlife up`, whose server is killed now and then, and one of a `podlife ui` that runs all
the time. After each disturbance both must catch up by themselves. At the end neither they nor the server that ran all
the time may hold more than after five minutes. PODLIFE_SOAK_SECONDS is how long; each disturbance comes at least once.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, CDPSession, expect

from podlife.client import CONFIG_MAPS, PODS, Client, DeleteOptions, Flags, ListOptions, load
from podlife.errors import ExpiredError, NotFoundError, PodlifeError
from tests.kit.browser import PATIENCE_MS, Visit, chromium, visiting
from tests.kit.component_process import running
from tests.kit.objects import pod
from tests.kit.ui_process import UiProcess, browser_pids, page_address, stopped
from tests.kit.up_process import UpProcess, running_up
from tests.kit.wait import until
from tests.real.conftest import require

SECONDS = float(os.environ.get("PODLIFE_SOAK_SECONDS", "60"))
PODS_AT_ONCE, PACE_SECONDS = 40, 0.1
# Longer than the page waits for a sign of life, 16 s, before it gives up a connection.
SLEEP_SECONDS = min(30.0, max(20.0, SECONDS / 20))
# Only living pods, all of them in the window: rows outside of it are not in the document.
VIEW, HEIGHT = "#mode=lanes&group=namespace&query=kind%3Apod+-gone", 3200
ROWS = """[...document.querySelectorAll("#lanes-list button.pod")].map(each => each.getAttribute("aria-label"))"""
# The page and its server keep up to 5,000 ended lives, which they do not have after five minutes.
MOST_MORE = {"resident": 120e6, "JSHeapUsedSize": 40e6, "Nodes": 2_000, "JSEventListeners": 200}
OFFLINE = {"offline": True, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}

pytestmark = pytest.mark.real
expect.set_options(timeout=PATIENCE_MS)


@dataclass
class Soak:
    up: UpProcess
    steady: UiProcess
    client: Client
    browser: Browser
    pages: list[tuple[Visit, CDPSession]]
    goes_on: asyncio.Event = field(default_factory=asyncio.Event)
    churned: int = 0

    async def churn(self) -> None:
        """Pods come and go, each under a name of its own."""
        names: deque[str] = deque()
        while True:
            await self.goes_on.wait()
            # While the API server is down. A pod whose creation was not answered is deleted like the others.
            with suppress(PodlifeError):
                if len(names) < PODS_AT_ONCE:
                    self.churned += 1
                    names.append(f"churn-{self.churned}")
                    await self.client.create(PODS, pod(names[-1]), "default")
                else:
                    options = DeleteOptions(grace_period_seconds=1)
                    with suppress(NotFoundError):
                        await self.client.delete(PODS, names[0], "default", options=options)
                    names.popleft()
            await asyncio.sleep(PACE_SECONDS)

    async def check(self, *others: Visit) -> None:
        """The pages show what the API server has."""
        self.goes_on.clear()
        for visit in (*(visit for visit, _ in self.pages), *others):
            await expect(visit.page.locator("#connection")).to_have_text("live")

            async def is_equal(visit: Visit = visit) -> bool:
                shown = {_of_row(each) for each in await visit.page.evaluate(ROWS)}
                with suppress(PodlifeError):
                    return shown == {_of_pod(each) for each in (await self.client.list(PODS)).items}
                return False

            await until(is_equal, "the page does not show what the API server has")
        self.goes_on.set()

    async def measure(self) -> dict[str, float]:
        found: dict[str, float] = {"resident of the server": self.steady.resident_bytes}
        for place, (_, session) in enumerate(self.pages):
            await session.send("HeapProfiler.collectGarbage")
            for each in (await session.send("Performance.getMetrics"))["metrics"]:
                if each["name"] in MOST_MORE:
                    found[f"{each['name']} of page {place}"] = each["value"]
        return found

    async def cut_connection(self) -> None:
        """No packet arrives, no connection is closed. Chromium's offline mode fails new requests only: the servers
        stop as well until the page has noticed."""
        for _, session in self.pages:
            await session.send("Network.emulateNetworkConditions", OFFLINE)
        with stopped(self.up.part("ui")["pid"], self.steady.pid):
            for visit, _ in self.pages:
                await expect(visit.page.locator("#connection")).to_contain_text("connection lost")
        for _, session in self.pages:
            await session.send("Network.emulateNetworkConditions", {**OFFLINE, "offline": False})

    async def compact_history(self) -> None:
        """The API server keeps 64 MiB of it. More is written while the page's servers do not look, and their
        connections are cut: then their watches would go on from a revision that is gone."""
        old = (await self.client.list(PODS)).resource_version
        with stopped(self.up.part("ui")["pid"], self.steady.pid):
            for place in range(80):
                named = {"name": "filler", "namespace": "default"}
                filler = {"metadata": named, "data": {"text": f"{place:<900000}"}}
                await (self.client.update if place else self.client.create)(CONFIG_MAPS, filler)
            with pytest.raises(ExpiredError):
                exactly = ListOptions(resource_version=old, resource_version_match="Exact")
                await self.client.list(PODS, options=exactly)
            await self.client.delete(CONFIG_MAPS, "filler", "default")
            await self.kill("apiserver")

    async def sleep(self) -> None:
        """As a laptop: no process of the browser runs, and its connections stay open."""
        with stopped(*browser_pids()):
            await asyncio.sleep(SLEEP_SECONDS)

    async def reload(self) -> None:
        """A third page: those that stay open are measured."""
        async with visiting(self.browser, page_address(self.up.said) + VIEW, height=HEIGHT) as visit:
            await self.check(visit)
            await visit.page.reload()
            await self.check(visit)

    async def kill(self, name: str) -> None:
        """A component of `podlife up`, which starts it again."""
        old = self.up.part(name)["pid"]
        os.kill(old, signal.SIGKILL)
        await until(lambda: self.up.part(name)["pid"] not in (0, None, old))


def _of_row(label: str) -> tuple[str, ...]:
    """Name, state and node as a screen reader tells them: `pod default/churn-1, ready, on node-1, …`."""
    name, state, *rest = label.split(", ")
    return name.rpartition("/")[2], state, *(each[3:] for each in rest if each.startswith("on "))


def _of_pod(found: dict[str, Any]) -> tuple[str, ...]:
    true = {each["type"] for each in found["status"].get("conditions", ()) if each["status"] == "True"}
    is_deleted = "deletionTimestamp" in found["metadata"]
    state = "terminating" if is_deleted else "ready" if "Ready" in true else "not ready"
    return found["metadata"]["name"], state, found["spec"].get("nodeName", "")


@asynccontextmanager
async def soaking(folder: Path) -> AsyncIterator[Soak]:
    require("chromium")
    async with AsyncExitStack() as stack:
        up = stack.enter_context(running_up(folder, "--runtime", "sim", "--nodes", "10"))
        steady = stack.enter_context(running(UiProcess(folder, "--kubeconfig", str(up.kubeconfig))))
        client = Client.connect(load(Flags(kubeconfig=str(up.kubeconfig)), {}))
        browser = await stack.enter_async_context(chromium())
        soak = Soak(up, steady, await stack.enter_async_context(client), browser, [])
        for address in (page_address(up.said), steady.address):
            visit = await stack.enter_async_context(visiting(browser, address + VIEW, height=HEIGHT))
            session = await visit.page.context.new_cdp_session(visit.page)
            for domain in ("Network", "Performance", "HeapProfiler"):
                await session.send(f"{domain}.enable")
            soak.pages.append((visit, session))
        group = await stack.enter_async_context(asyncio.TaskGroup())
        stack.callback(group.create_task(soak.churn()).cancel)
        soak.goes_on.set()
        yield soak


@pytest.mark.timeout(SECONDS + 1800)
async def test_the_page_catches_up_by_itself_and_does_not_grow(tmp_path: Path) -> None:
    async with soaking(tmp_path) as soak:
        disturbances = (soak.cut_connection, partial(soak.kill, "ui"), partial(soak.kill, "apiserver"),
                        soak.compact_history, soak.sleep, soak.reload)  # fmt: skip
        rounds, began, measured = 0, time.monotonic(), list[tuple[float, dict[str, float]]]()
        while rounds < len(disturbances) or time.monotonic() - began < SECONDS:
            await disturbances[rounds % len(disturbances)]()
            await soak.check()
            measured.append((time.monotonic() - began, await soak.measure()))
            print(f"{measured[-1][0]:.0f} s, {soak.churned} pods: {measured[-1][1]}")  # noqa: T201 - its progress
            rounds += 1
            await asyncio.sleep(max(0.0, began + min(60.0, SECONDS / 60) * rounds - time.monotonic()))
        base = next(found for at, found in measured if at >= min(300.0, SECONDS / 2))
        last = measured[-1][1]
        most = {what: before + MOST_MORE[what.split()[0]] for what, before in base.items()}
        assert {what: (base[what], last[what]) for what in base if last[what] > most[what]} == {}

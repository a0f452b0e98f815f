"""One story on the page, on `podlife up` and on a real kube-apiserver, with pods that are processes of this machine.

A pod does not end on TERM and is killed, comes again under its name; one of a Deployment is restarted, fails its probe
and has a preStop hook; another one is held by a finalizer; a sweep archives and removes what has ended; a node fails,
from its silence to the collection of its pods. Then the page goes back in time, and a recording shows the same without
the cluster. What takes minutes in a cluster takes seconds here.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Locator, Page, expect

from podlife.api.codec import format_micro_time
from podlife.client import DEPLOYMENTS, LEASES, NODES, PODS, Client, DeleteOptions, Flags, load
from podlife.clock import SystemClock
from tests.kit.agent_process import AgentProcess
from tests.kit.browser import PATIENCE_MS, Visit, chromium, visiting
from tests.kit.component_process import ComponentProcess, running
from tests.kit.objects import container, pod
from tests.kit.real_parts import Settings, kube_apiserver, run_kubectl
from tests.kit.ui_process import UiProcess
from tests.kit.up_process import running_up
from tests.real.conftest import require

TOLERATION = "--default-unreachable-toleration-seconds=3"
TIMES = (
    *("--node-monitor-period=500ms", "--node-monitor-grace-period=15s", "--node-eviction-rate=10"),
    "--pod-gc-quarantine=3s",
)
LEASE = "--node-lease-duration-seconds=4"
STUBBORN = "trap 'echo not yet' TERM; echo '<b>hello</b>'; while true; do sleep 0.2; done"

expect.set_options(timeout=PATIENCE_MS)


class Controllers(ComponentProcess):
    def __init__(self, folder: Path, kubeconfig: Path) -> None:
        super().__init__(folder, "controllers", ready="running: ")
        self._kubeconfig = kubeconfig

    @property
    def arguments(self) -> list[str]:
        where = ["--kubeconfig", str(self._kubeconfig), "--no-leader-elect"]
        return ["controllers", "run", "--controllers=*,scheduler", *TIMES, *where]


@contextmanager
def on_up(folder: Path) -> Iterator[tuple[Path, dict[str, int]]]:
    with running_up(folder, "--nodes=2", "--no-ui", TOLERATION, LEASE, *TIMES) as up:
        yield up.kubeconfig, {f"node-{i}": up.part(f"node-{i}")["pid"] for i in (0, 1)}


@contextmanager
def on_kube_apiserver(folder: Path) -> Iterator[tuple[Path, dict[str, int]]]:
    require("etcd", "kube-apiserver")
    with ExitStack() as stack:
        stack.callback(end_pods, folder)
        server = stack.enter_context(kube_apiserver(folder / "kube", Settings(flags=(TOLERATION,))))
        stack.enter_context(running(Controllers(folder, server.kubeconfig)))
        agents = {}
        for name in ("node-0", "node-1"):
            agent = AgentProcess(folder / name, server.kubeconfig, LEASE, name=name)
            agents[name] = stack.enter_context(running(agent)).pid
        yield server.kubeconfig, agents


def end_pods(folder: Path) -> None:
    """They outlive their agents. A supervisor that is killed takes its container along."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "cwd").readlink().is_relative_to(folder):
                os.kill(int(process.name), signal.SIGKILL)


@dataclass
class Story:
    """`agents` are the pids of the node agents by node."""

    visit: Visit
    client: Client
    kubeconfig: Path
    agents: dict[str, int]

    @property
    def page(self) -> Page:
        return self.visit.page

    @property
    def panel(self) -> Locator:
        return self.page.locator("#panel")

    def row(self, name: str, kind: str = "pod") -> Locator:
        return self.page.locator(f"#lanes-list button.{kind}", has=self.page.get_by_text(name, exact=True))

    async def says(self, name: str, words: str, kind: str = "pod") -> None:
        """What a screen reader tells about the row, sooner or later."""
        await expect(self.row(name, kind)).to_have_attribute("aria-label", re.compile(words))

    async def create(self, name: str, script: str, node: str = "node-0", **more: Any) -> dict[str, Any]:
        made = pod(
            name,
            container("app", command=["sh", "-c", script]),
            nodeSelector={"kubernetes.io/hostname": node},
            **more,
        )
        created: dict[str, Any] = await self.client.create(PODS, made, "default")
        return created

    async def delete(self, name: str, grace: int) -> None:
        await self.client.delete(PODS, name, "default", options=DeleteOptions(grace_period_seconds=grace))

    async def open(self, name: str, tab: str = "Explain", kind: str = "pod") -> None:
        await self.row(name, kind).click()
        await self.page.get_by_role("tab", name=tab).click()

    async def kinds(self) -> list[str]:
        """The marks of the timeline that is open, oldest first."""
        marks = await self.panel.locator(".timeline li.mark").evaluate_all("all => all.map(e => e.className)")
        return [each.split()[-1] for each in reversed(marks)]

    async def steps(self, name: str, kind: str = "pod") -> str:
        """What is drawn on a row, from left to right, as the arrow keys tell it."""
        told: list[str] = []
        await self.row(name, kind).focus()
        while len(told) < 60:
            await self.page.keyboard.press("ArrowRight")
            text = await self.visit.text("#tooltip")
            if told and text == told[-1]:
                break
            told.append(text)
        return "\n".join(told)


def in_order(found: list[str], *wanted: str) -> bool:
    rest = iter(found)
    return all(each in rest for each in wanted)


async def killed_and_again(story: Story) -> None:
    await story.create("stubborn", STUBBORN)
    await story.says("stubborn", "ready.*containers ready 1/1")
    await story.open("stubborn")
    await expect(story.panel).to_contain_text("podlife explain pod stubborn")
    await story.page.get_by_role("tab", name="YAML").click()
    await expect(story.panel.locator("pre")).to_contain_text("name: stubborn")
    await story.page.get_by_role("tab", name="Logs").click()
    await expect(story.panel.locator("pre")).to_contain_text("<b>hello</b>")
    await story.delete("stubborn", 4)
    await story.says("stubborn", "terminating.*next .*kills")
    await expect(story.panel.locator("pre")).to_contain_text("not yet")
    await story.visit.picture("story-terminating")
    await story.says("stubborn", "gone since")
    await story.page.get_by_role("tab", name="Timeline").click()
    kinds = await story.kinds()
    assert in_order(kinds, "created", "scheduled", "started", "delete", "term", "kill", "gone"), " ".join(
        kinds
    )
    assert re.search("as predicted: .* kills", await story.steps("stubborn"))
    await story.create("stubborn", "sleep 1000")
    await story.says("stubborn", "ready.*life 2 under this name")
    assert await story.row("stubborn").count() == 1


def deployment(first: Path, ready: Path) -> dict[str, Any]:
    """Its container fails once, is ready when a file exists, and has a preStop hook."""
    script = f"[ -e {first} ] || {{ touch {first}; sleep 3; exit 1; }}; exec sleep 1000"
    probe = {"exec": {"command": ["test", "-e", str(ready)]}, "periodSeconds": 1, "failureThreshold": 1}
    hook = {"preStop": {"exec": {"command": ["sleep", "2"]}}}
    app = container("app", command=["sh", "-c", script], readinessProbe=probe, lifecycle=hook)
    made, labels = pod("shop", app, nodeSelector={"kubernetes.io/hostname": "node-0"}), {"app": "shop"}
    template = {"metadata": {"labels": labels}, "spec": made["spec"]}
    return {
        "metadata": {"name": "shop"},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }


async def probed_restarted_and_hooked(story: Story) -> None:
    page, folder = story.page, story.kubeconfig.parent
    await story.client.create(DEPLOYMENTS, deployment(folder / "first", folder / "ready"), "default")
    await page.keyboard.press("Escape")
    await page.select_option("#group", "owner")
    await expect(page.locator("#lanes-list .row.group .name", has_text="Deployment shop")).to_be_visible()
    row = page.locator("#lanes-list button.pod", has_text="shop-")
    name = await row.locator(".name").inner_text()
    await story.says(name, "not ready.*1 restart")
    await story.open(name, "Timeline")
    await expect(story.panel.locator(".timeline li.unhealthy").first).to_contain_text("probe failed")
    await story.visit.picture("story-restarted")
    (folder / "ready").touch()
    await story.says(name, "ready, on node-0, containers ready 1/1, 1 restart")
    await story.client.delete(DEPLOYMENTS, "shop", "default")
    await story.says(name, "gone since")
    kinds = await story.kinds()
    steps = ("created", "scheduled", "started", "ended", "restarted", "delete", "prestop", "gone")
    assert in_order(kinds, *steps), " ".join(kinds)
    told = await story.steps(name)
    assert told.index("Unhealthy") < told.index("Killing"), told
    await page.keyboard.press("Escape")
    await page.select_option("#group", "namespace")


async def held_by_a_finalizer(story: Story) -> None:
    await story.create("held", "sleep 1000", metadata={"finalizers": ["example.com/backup"]})
    await story.says("held", "ready, on node-0")
    await story.delete("held", 1)
    await story.says("held", "held by finalizers.*stuck")
    await story.open("held")
    await expect(story.panel).to_contain_text("example.com/backup")
    await story.visit.picture("story-held")
    command = await story.panel.locator("code", has_text="patch pod held").first.inner_text()
    await story.page.locator("#search").fill("stuck")
    await expect(story.page.locator("#lanes-list button.pod")).to_have_count(1)
    await story.page.locator("#search").fill("")
    done = await asyncio.to_thread(run_kubectl, *shlex.split(command)[1:], kubeconfig=story.kubeconfig)
    assert done.returncode == 0, done.stderr
    await story.says("held", "gone since")


async def swept_and_archived(story: Story) -> None:
    page = story.page
    for name in ("done-1", "done-2"):
        await story.create(name, "echo finished", restartPolicy="Never")
        await story.says(name, "succeeded")
    await page.keyboard.press("Escape")
    await page.locator("#mode-plan").click()
    await expect(page.locator("#plan-body")).to_contain_text("default/done-1")
    await expect(page.locator("#plan-body")).not_to_contain_text("default/done-2")
    await page.locator("#plan-sweep").click()
    await expect(page.locator("#sweep-question")).to_contain_text("Delete 1 pod now (1 terminated)")
    await page.locator("#sweep-answer").fill("yes")
    await story.visit.picture("story-sweep")
    await page.keyboard.press("Enter")
    await expect(page.locator("#sweep-result")).to_contain_text("deleted: 1")
    await page.locator("#sweep-cancel").click()
    await page.locator("#mode-lanes").click()
    await story.says("done-1", "gone since")
    await story.open("done-1", "Archive")
    await expect(story.panel.locator("pre")).to_contain_text("finished")
    await expect(story.row("done-2")).to_have_attribute("aria-label", re.compile("succeeded"))


async def node_fails(story: Story) -> None:
    """From silence to collection."""
    for name in ("evicted", "deleted"):
        await story.create(name, "sleep 1000", "node-1")
        await story.says(name, "ready, on node-1")
    os.kill(story.agents["node-1"], signal.SIGSTOP)
    await story.delete("deleted", 1)
    await story.says("deleted", "missed .*kills")
    # Silence is 40 s without a renewal. It is looked for at the end of them, or when something else changes.
    long_ago = format_micro_time(SystemClock().now() - timedelta(seconds=60))
    await story.client.patch(LEASES, "node-1", {"spec": {"renewTime": long_ago}}, "kube-node-lease")
    await story.client.patch(NODES, "node-1", {"spec": {"unschedulable": True}})
    await story.says("node-1", "silent, cordoned", "node")
    await story.visit.picture("story-silent")
    await story.says("node-1", r"unknown.*node\.kubernetes\.io/unreachable:NoExecute", "node")
    await story.says("evicted", "next .*taint.*deletes")
    await story.says("evicted", "terminating.*stuck")
    assert "missed" in await story.steps("deleted")
    await story.open("evicted", "Timeline")
    kinds = await story.kinds()
    assert in_order(kinds, "created", "started", "evicted") or in_order(kinds, "started", "delete"), kinds
    await story.open("node-1", "Explain", "node")
    await expect(story.panel).to_contain_text("node node-1 is not ready")
    await story.visit.picture("story-unreachable")
    await story.client.delete(NODES, "node-1")
    for name in ("evicted", "deleted"):
        await story.says(name, "gone since")
    await story.open("evicted", "Timeline")
    assert (await story.kinds())[-1] == "gone"
    await story.visit.picture("story-collected")


async def looked_at_otherwise(story: Story) -> None:
    """Grid, search, themes, widths and axe; then back in time."""
    page = story.page
    await page.keyboard.press("Escape")
    await page.locator("#mode-grid").click()
    await page.locator("#grid-scroll").focus()
    await page.keyboard.press("ArrowRight")
    await expect(page.locator("#grid-cell")).to_contain_text("node-0")
    await page.keyboard.press("Enter")
    await expect(page.locator("#lanes")).to_be_visible()
    for query, found in {"state:succeeded": {"done-2"}, "gone held": {"held"}, "nothing": set()}.items():
        await page.locator("#search").fill(query)
        names = page.locator("#lanes-list button.pod .name")
        await expect(names).to_have_count(len(found))
        assert set(await names.all_inner_texts()) == found
    await page.locator("#search").fill("")
    await story.open("stubborn")
    for scheme, width in (("light", 1280), ("dark", 1280), ("dark", 390), ("light", 390)):
        await page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        await page.set_viewport_size({"width": width, "height": 800})
        await story.visit.picture(f"story-{scheme}-{width}")
        assert (await Axe().run(page)).response["violations"] == []
    await page.set_viewport_size({"width": 1280, "height": 800})
    await page.keyboard.press("Escape")
    await back_in_time(story)
    await page.keyboard.press("n")
    await story.says("evicted", "gone since")


async def back_in_time(story: Story) -> None:
    """Some moment of the past shows the second pod on the failed node, still ready."""
    for place in range(950, 0, -25):
        await story.page.locator("#scrub").fill(str(place))
        label = await story.row("evicted").first.get_attribute("aria-label") or ""
        if "evicted, ready" in label:
            return
    raise AssertionError("the pod was never ready")


@asynccontextmanager
async def page_of(ui: UiProcess, *cluster: Any) -> AsyncIterator[Story]:
    """What the browser complains about fails the test, but for the answers that tabs of a pod that is gone get."""
    async with chromium() as browser, visiting(browser, ui.address + "#group=namespace") as visit:
        yield Story(visit, *cluster)
        allowed = ("status of 400", "status of 404")
        assert [each for each in visit.complaints if not any(text in each for text in allowed)] == []
        home = ui.address.partition("?")[0]
        assert [each for each in visit.requests if not each.startswith((home, "data:"))] == []


@pytest.mark.parametrize("cluster", [on_up, on_kube_apiserver], ids=["up", "kube-apiserver"])
async def test_the_story(tmp_path: Path, cluster: Any) -> None:
    require("chromium", "kubectl")
    with ExitStack() as stack:
        kubeconfig, agents = stack.enter_context(cluster(tmp_path))
        stack.callback(os.kill, agents["node-1"], signal.SIGCONT)
        flags = [
            "--allow-actions",
            "--terminated-pod-gc-threshold=1",
            "--record",
            str(tmp_path / "record.gz"),
        ]
        flags += ["--archive", str(tmp_path / "archive"), "--kubeconfig", str(kubeconfig)]
        ui = stack.enter_context(running(UiProcess(tmp_path, *flags)))
        async with (
            Client.connect(load(Flags(kubeconfig=str(kubeconfig)), {})) as client,
            page_of(ui, client, kubeconfig, agents) as story,
        ):
            await expect(story.page.locator("#connection")).to_have_text("live")
            await story.says("node-1", "ready", "node")
            for chapter in (killed_and_again, probed_restarted_and_hooked, held_by_a_finalizer,
                            swept_and_archived, node_fails):  # fmt: skip
                await chapter(story)
            await looked_at_otherwise(story)
        ui.stop()
        replayed = UiProcess(tmp_path, "--replay", str(tmp_path / "record.gz"), name="replay")
        async with page_of(stack.enter_context(running(replayed)), client, kubeconfig, agents) as story:
            await expect(story.page.locator("#connection")).to_have_text("replay")
            await story.says("held", "gone since")
            await back_in_time(story)
            await story.visit.picture("story-replay")

"""The page on a whole cluster: `podlife up` serves it, pods are processes of this machine."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import expect

from podlife.client import PODS, Client, DeleteOptions, Flags, load
from tests.kit.browser import PATIENCE_MS, Visit, chromium, visiting
from tests.kit.up_process import UpProcess, running_up
from tests.real.conftest import require

expect.set_options(timeout=PATIENCE_MS)


def stubborn_pod() -> dict[str, Any]:
    """One container writes a line and does not end on TERM, the other one does."""
    script = "trap 'echo not yet' TERM; echo '<b>hello</b>'; while true; do sleep 0.2; done"
    containers = [
        {"name": "app", "image": "demo", "command": ["sh", "-c", script]},
        {"name": "proxy", "image": "demo", "command": ["sleep", "1000"]},
    ]
    return {"metadata": {"name": "stubborn"}, "spec": {"containers": containers}}


@asynccontextmanager
async def cluster_page(folder: Path, *allowed: str) -> AsyncIterator[tuple[Visit, Client, UpProcess]]:
    """A cluster with its page, which may complain only about what is allowed."""
    require("chromium")
    with running_up(folder, "--nodes", "1") as up:
        address = _address(up)
        async with (
            Client.connect(load(Flags(kubeconfig=str(up.kubeconfig)), {})) as client,
            chromium() as browser,
            visiting(browser, address) as visit,
        ):
            await expect(visit.page.locator("#connection")).to_have_text("live")
            yield visit, client, up
            assert [each for each in visit.complaints if not any(part in each for part in allowed)] == []


def _address(up: UpProcess) -> str:
    """With the token, as `podlife up` prints it."""
    found = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", up.said)
    assert found is not None, up.said
    return found[0]


async def test_a_pod_is_shown_explained_and_seen_to_be_killed(tmp_path: Path) -> None:
    async with cluster_page(tmp_path, "status of 400") as (visit, client, _):
        page = visit.page
        await client.create(PODS, stubborn_pod(), "default")
        row = page.locator("#lanes-list button.pod", has_text="stubborn")
        await expect(row.locator(".note")).to_have_text("running and ready · 2/2")
        await row.click()
        panel = page.locator("#panel")
        await expect(panel).to_contain_text("Nothing holds it up.")
        await page.get_by_role("tab", name="YAML").click()
        await expect(panel.locator("pre")).to_contain_text("name: stubborn")
        await page.get_by_role("tab", name="Logs").click()
        await expect(panel.locator("pre")).to_contain_text("<b>hello</b>")
        uid = (await client.get(PODS, "stubborn", "default"))["metadata"]["uid"]
        await client.delete(
            PODS, "stubborn", "default", options=DeleteOptions(uid=uid, grace_period_seconds=4)
        )
        await expect(row).to_have_attribute("aria-label", re.compile("terminating.*kills what still runs"))
        await expect(panel.locator("pre")).to_contain_text("not yet")
        await expect(row.locator(".note")).to_contain_text("gone")
        await page.get_by_role("tab", name="Timeline").click()
        marks = await panel.locator(".timeline li").evaluate_all("all => all.map(each => each.className)")
        kinds = [each.split()[-1] for each in reversed(marks)]
        story = [kinds.index(kind) for kind in ("created", "started", "delete", "kill", "gone")]
        assert story == sorted(story)


async def test_the_address_lets_in_once_and_others_are_refused(tmp_path: Path) -> None:
    async with cluster_page(tmp_path) as (visit, _, up):
        page, address = visit.page, _address(up)
        assert "token" not in page.url
        assert await page.evaluate("document.cookie") == ""
        assert all(each.startswith((address.partition("?")[0], "data:")) for each in visit.requests)
        browser = page.context.browser
        assert browser is not None
        stranger = await browser.new_context()
        refused = await (await stranger.new_page()).goto(page.url)
        assert refused is not None
        assert refused.status == 403
        await stranger.close()
        await page.reload()
        await expect(page.locator("#connection")).to_have_text("live")


async def test_the_page_reads_everything_again_when_its_server_was_killed(tmp_path: Path) -> None:
    async with cluster_page(tmp_path, "ERR_") as (visit, client, up):
        connection = visit.page.locator("#connection")
        os.kill(up.part("ui")["pid"], signal.SIGKILL)
        await expect(connection).to_have_text("connection lost, retrying")
        await client.create(PODS, stubborn_pod(), "default")
        await expect(connection).to_have_text("live")
        await expect(visit.page.locator("#lanes-list button.pod", has_text="stubborn")).to_be_visible()

"""The panel of a pod or node, in a real browser."""

from __future__ import annotations

import re

from playwright.async_api import expect

from podlife.errors import ApiError
from tests.kit.browser import PATIENCE_MS
from tests.kit.ui_stream import node, pod, story
from tests.real.ui.conftest import Shown, row

expect.set_options(timeout=PATIENCE_MS)


async def test_a_click_explains_with_commands_logs_and_yaml(shown: Shown) -> None:
    async with shown(story(), allowed=["status of 400"]) as (visit, _):
        page = visit.page
        await row(page, "backup-0").click()
        panel = page.locator("#panel")
        await expect(panel).to_contain_text("Stuck: finalizer")
        await expect(panel.locator("code").first).to_contain_text("kubectl patch pod backup-0")
        await visit.picture("ui-explain")
        await expect(panel.get_by_role("button", name="Copy: kubectl patch")).to_be_visible()
        await page.get_by_role("tab", name="Timeline").click()
        await expect(panel.locator(".timeline li").first).to_contain_text(
            "backup-operator removes its finalizer"
        )
        await page.get_by_role("tab", name="Logs").click()
        await expect(panel.locator("pre")).to_have_text(re.compile(r"line 5\n<img src=x onerror=alert\(1\)>"))
        assert await panel.get_by_label("Container").locator("option").all_inner_texts() == ["app", "proxy"]
        await page.get_by_role("tab", name="YAML").click()
        await expect(panel.locator("pre")).to_contain_text("name: <b>bold</b>")
        await page.keyboard.press("Escape")
        await expect(panel).to_be_hidden()
        await expect(row(page, "backup-0")).to_be_focused()


async def test_a_pod_that_is_gone_says_so_and_shows_its_archive_entry(shown: Shown) -> None:
    gone = [pod(name, segs=[(-150, "ready")], to=-30) for name in ("kept-1", "lost-1")]
    async with shown(gone) as (visit, ui):
        page, panel = visit.page, visit.page.locator("#panel")
        ui.archive = {"uid-kept-1": {"reason": "terminated"}}
        ui.explained = {"stage": "gone", "causes": [], "upcoming": []}
        for name in ("lost-1", "kept-1"):
            await row(page, name).click()
            await expect(page.locator("#panel-facts")).to_contain_text("lived 2m")
            await expect(panel).to_contain_text("Deleted by admin")
            await expect(panel).not_to_contain_text("Nothing holds it up")
            for tab, lost in (("Logs", "logs"), ("YAML", "YAML")):
                await page.get_by_role("tab", name=tab).click()
                await expect(panel).to_contain_text(re.compile(rf"Gone at [\d:]+; its {lost} went with it"))
            await expect(page.get_by_role("tab", name="Archive")).to_have_count(int(name == "kept-1"))
            await page.get_by_role("tab", name="Explain").click()
        await page.get_by_role("tab", name="Archive").click()
        await expect(panel).to_contain_text('"reason": "terminated"')
        await page.go_back()
        await expect(panel).to_be_hidden()


async def test_a_command_is_offered_once_and_a_failure_is_a_sentence(shown: Shown) -> None:
    again = {"command": "kubectl set image pod/x app=<IMAGE>", "risk": "another version runs"}
    cause = {
        "cause": "image",
        "stuck": True,
        "since": None,
        "text": "since 2020-01-01 12:00:00Z",
        "upcoming": [],
    }
    async with shown([node("node-a"), pod("web-1", segs=[(-60, "ready")])], allowed=["status of 502"],
                     timezone_id="Asia/Kolkata") as (visit, ui):  # fmt: skip
        page, panel = visit.page, visit.page.locator("#panel")
        ui.explained = {"causes": [cause | {"commands": [again]}, cause | {"commands": [again]}]}
        await row(page, "node-a", "node").click()
        await expect(panel.locator("article")).to_have_count(2)
        await expect(panel.locator("article code")).to_have_text([again["command"]])
        await expect(panel.locator("mark")).to_have_text("<IMAGE>")
        await expect(panel).to_contain_text("Fill in <IMAGE> before you run it")
        await expect(panel).to_contain_text("since 2020-01-01 17:30:00")
        await expect(page.locator("#clock")).to_contain_text("GMT+5:30, now")
        ui.log_error = ApiError("Get https://10.0.0.1:10250/containerLogs: dial tcp: refused", code=502)
        await row(page, "web-1").click()
        await page.get_by_role("tab", name="Logs").click()
        await expect(panel.get_by_role("alert")).to_have_text(
            re.compile("agent of its node does not respond")
        )

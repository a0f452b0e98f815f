"""Time on the page: the past, recordings, and what is written along the axis."""

from __future__ import annotations

import re

from playwright.async_api import expect

from tests.kit.browser import PATIENCE_MS
from tests.kit.ui_stream import at, node, pod, story
from tests.kit.wait import until
from tests.real.ui.conftest import COLOUR, Shown, labels, row, steps, written

expect.set_options(timeout=PATIENCE_MS)


async def test_scrubbing_shows_what_was_and_now_returns(shown: Shown) -> None:
    async with shown(story()) as (visit, _):
        note = row(visit.page, "worker-1").locator(".note")
        await expect(note).to_have_text("being deleted · 1/1")
        await visit.page.locator("#scrub").fill("800")
        await expect(visit.page.locator("#clock")).to_have_text(re.compile(r", 2m( \d+s)? ago"))
        await expect(note).to_have_text("ready")
        await visit.page.keyboard.press("n")
        await expect(note).to_have_text("being deleted · 1/1")


async def test_a_recording_is_played_from_its_start(shown: Shown) -> None:
    hello = {"mode": "replay", "started": at(-600), "now": at(-60)}
    async with shown([pod("web-1", segs=[(-590, "starting"), (-300, "failed")])], hello=hello) as (visit, _):
        note = row(visit.page, "web-1").locator(".note")
        await expect(visit.page.locator("#clock")).to_contain_text("end of the recording")
        await expect(visit.page.locator("#mode-plan")).to_be_hidden()
        await written(visit, "end of the recording")
        await visit.page.locator("#scrub").fill("540")
        await expect(note).to_have_text("starting")
        await visit.page.get_by_role("button", name="Play").click()
        await expect(note).to_have_text("failed")


async def test_the_past_shows_that_moment_or_says_that_it_is_of_now(shown: Shown) -> None:
    async with shown(story()) as (visit, _):
        page = visit.page
        await expect(page.locator("#count-stuck")).to_have_text("3 stuck · 1 node")
        crash = row(page, "api-5f6b-crash").locator(".note")
        await expect(crash).to_have_text("crash loop · 0/1 · ↻3")
        await row(page, "backup-0").click()
        await page.locator("#scrub").fill("680")
        await expect(crash).to_have_text("starting · ↻2")
        await until(lambda: page.evaluate("!document.body.textContent.includes('huge-1')"))
        assert "huge-1" not in await labels(page)
        await expect(page.locator("#panel-facts")).to_contain_text(re.compile(r"^terminating at [\d:]+ · "))
        await expect(page.locator("#panel-when")).to_have_text(re.compile(r"As of now, not of [\d:]+\."))
        told = await row(page, "node-b", "node").get_attribute("aria-label")
        assert told == "node node-b, ready"
        await expect(page.locator("#count-stuck")).to_have_text("0 stuck")
        await page.locator("#search").fill("stuck")
        await expect(page.locator("#found")).to_have_text("0 pods")
        # Of now: the finalizer has held it for 170 s, the crash loop is 100 s old.
        await page.locator("#scrub").fill("760")
        await expect(page.locator("#found")).to_have_text("1 pod")
        await expect(row(page, "backup-0")).to_have_attribute("aria-label", re.compile("stuck: finalizer"))
        await page.keyboard.press("Escape")
        await page.keyboard.press("p")
        await expect(page.locator("#plan-note")).to_contain_text("as of now, not of ")


async def test_what_was_concluded_is_drawn_lighter(shown: Shown) -> None:
    life = pod("web-1", segs=[(-100, "ready")])
    async with shown([node("node-a"), life], hello={"started": at(60)}) as (visit, _):
        await until(lambda: visit.page.evaluate(COLOUR, "muted"), "nothing is drawn")
        assert await visit.page.evaluate(COLOUR, "ready") == 0
        await expect(visit.page.locator("#legend")).to_contain_text("lighter: concluded")


async def test_words_along_a_lane_have_room_and_do_not_repeat(shown: Shown) -> None:
    marks = [(-20 * i, "unhealthy", "Readiness probe failed", "kubelet") for i in range(6, 0, -1)]
    due = [(88, "taint eviction", "deletes it"), (900, "pod GC", "removes it"), (None, "nobody", "cares")]
    life = pod("web-1", segs=[(-200, "ready")], marks=marks, next=due)
    other = pod("web-2", segs=[(-200, "ready")], next=[(5, "kubelet", "acts"), *due[1:]])
    async with shown([life, other], "#span=300") as (visit, _):
        page = visit.page
        await written(visit, "probe failed ×6", r"\d+s: taint eviction deletes it", r"\+2 later")
        await row(page, "web-1").focus()
        times = []
        for key in ("ArrowLeft", "ArrowLeft", "ArrowRight"):
            await page.keyboard.press(key)
            times.append((await visit.text("#tooltip")).split()[1])
        assert times[1] < times[0] == times[2]
        await page.keyboard.press("+")
        await expect(page.locator("#span option:checked")).to_have_text("2m 30s")
        await visit.until("location.hash.includes('span=150')")
        await page.reload()
        await expect(page.locator("#span option:checked")).to_have_text("2m 30s")
        assert "pod GC removes it" in (await steps(visit, "web-1"))[-1]

"""The page in a real browser, fed by a stream that each test plays."""

from __future__ import annotations

import re

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Locator, Page, expect

from tests.kit.browser import PATIENCE_MS, Visit
from tests.kit.ui_stream import at, crowd, node, pod, story
from tests.kit.wait import until
from tests.real.ui.conftest import Shown

expect.set_options(timeout=PATIENCE_MS)


def row(page: Page, name: str, kind: str = "pod") -> Locator:
    return page.locator(f"#lanes-list button.{kind}", has_text=name)


async def labels(page: Page) -> list[str]:
    """The rows from top to bottom, by their titles."""
    found = await page.locator("#lanes-list [role=listitem]").all()
    rows = [
        (int(await each.get_attribute("aria-posinset") or 0), await each.locator(".name").inner_text())
        for each in found
    ]
    return [name for _, name in sorted(rows)]


async def steps(visit: Visit, name: str) -> list[str]:
    """What is drawn on a row, from left to right, as the arrow keys tell it."""
    await row(visit.page, name).focus()
    told: list[str] = []
    for _ in range(30):
        await visit.page.keyboard.press("ArrowRight")
        text = await visit.text("#tooltip")
        if told and text == told[-1]:
            return told
        told.append(text)
    raise AssertionError(f"no end of {told}")


COLOUR = """(state) => {
  // Counts the pixels in the colour of a state on the bar of the first pod, just left of now.
  const canvas = document.getElementById("lanes-canvas"), box = canvas.getBoundingClientRect();
  const label = document.querySelector("#lanes-list button.pod").getBoundingClientRect();
  const nowX = label.right + (box.width - label.width - 14) * 0.7;
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.color = `var(--${state})`;
  const wanted = getComputedStyle(probe).color.match(/[0-9]+/g).slice(0, 3).join();
  probe.remove();
  const { data } = canvas.getContext("2d").getImageData(nowX - box.left - 24, label.top - box.top + 18, 20, 12);
  let count = 0;
  for (let i = 0; i < data.length; i += 4) count += data.slice(i, i + 3).join() === wanted;
  return count;
}"""


async def test_every_pod_and_node_has_a_lane_that_says_what_it_does(shown: Shown) -> None:
    async with shown(story()) as (visit, _):
        page = visit.page
        assert (await labels(page))[:4] == ["not on a node", "huge-1", "node-a", "api-5f6b-crash"]
        told = await row(page, "worker-1").get_attribute("aria-label")
        assert told is not None
        assert told.startswith("pod default/worker-1, terminating, on node-b")
        assert re.search(r"next (in \d+s|now|\d+s ago): kubelet sends KILL", told)
        told = await row(page, "node-b", "node").get_attribute("aria-label")
        assert told == "node node-b, ready, cordoned, taints dedicated=batch:NoSchedule"
        await expect(page.locator("#count-all")).to_have_text("10 pods · 3 nodes")
        await visit.picture("ui-lanes")
        await page.select_option("#group", "owner")
        await expect(page.locator("#lanes-list .row.group", has_text="Deployment web")).to_be_visible()
        assert (await labels(page))[:5] == ["Nodes", "node-a", "node-b", "node-c", "Deployment api"]


async def test_a_pod_created_again_is_a_second_life_on_its_lane(shown: Shown) -> None:
    async with shown(story()) as (visit, _):
        assert (await labels(visit.page)).count("db-0") == 1
        assert "life 2 under this name" in (await row(visit.page, "db-0").get_attribute("aria-label") or "")
        told = "\n".join(await steps(visit, "db-0"))
        assert told.index("DELETE") < told.index("removed") < told.index("created")


async def test_a_deletion_is_told_step_by_step_and_then_what_comes(shown: Shown) -> None:
    async with shown(story()) as (visit, _):
        told = "\n".join(await steps(visit, "worker-1"))
        order = [
            told.index(each) for each in ("DELETE with a grace", "preStop hook", "TERM sent", "sends KILL")
        ]
        assert order == sorted(order)


async def test_a_change_of_state_is_drawn(shown: Shown) -> None:
    steady = [(-100.0, "ready")]
    async with shown([node("node-a"), pod("web-1", segs=steady)]) as (visit, ui):
        await until(lambda: visit.page.evaluate(COLOUR, "ready"), "the bar is not drawn as ready")
        ui.push(pod("web-1", segs=[*steady, (-30, "failed")]))
        await until(lambda: visit.page.evaluate(COLOUR, "failed"), "the bar is not drawn as failed")
        assert await visit.page.evaluate(COLOUR, "ready") == 0
        await expect(row(visit.page, "web-1").locator(".note")).to_have_text("failed · 1/1")


async def test_a_prediction_becomes_the_event_or_is_missed(shown: Shown) -> None:
    steady = [(-100.0, "ready")]
    due = [(300, "kubelet", "restarts container app")]
    async with shown([pod("web-1", segs=steady, next=due), pod("web-2", segs=steady, next=due)]) as (
        visit,
        ui,
    ):
        assert re.search(r"in [\dms ]+: kubelet restarts", "\n".join(await steps(visit, "web-1")))
        kept = pod("web-1", segs=steady, next=[(-5, "kubelet", "restarts container app", "happened")])
        kept["next"][0]["until"] = at(-5)
        missed = pod("web-2", segs=steady, next=[(-5, "kubelet", "restarts container app", "missed")])
        ui.push(kept, missed)
        await visit.until(
            "document.querySelector('[aria-label*=\"web-2\"]').getAttribute('aria-label').includes('missed')"
        )
        assert "as predicted: kubelet restarts" in "\n".join(await steps(visit, "web-1"))
        assert re.search(r"missed [\dms ]+ ago: kubelet restarts", "\n".join(await steps(visit, "web-2")))


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


async def test_names_and_messages_of_the_cluster_are_never_markup(shown: Shown) -> None:
    hostile = '<img src=x onerror="document.title=1">'
    life = pod(hostile, hostile, segs=[(-60, "ready")], stage=hostile, waits=hostile, stuck=hostile,
               owner={"kind": hostile, "name": hostile}, labels={hostile: hostile}, next=[(9, hostile, hostile)],
               marks=[(-50, "warning", hostile, hostile)])  # fmt: skip
    async with shown([life], hello={"missing": [hostile], "cluster": hostile}) as (visit, _):
        assert hostile in await visit.text("#banner-missing")
        assert any(hostile in each for each in await steps(visit, hostile))
        await row(visit.page, hostile).click()
        await expect(visit.page.locator("#panel-title")).to_have_text(hostile)
        assert await visit.page.locator("img").count() == 0
        assert await visit.page.title() == "1 stuck · podlife"


async def test_search_keeps_what_matches(shown: Shown) -> None:
    searches = {
        "stuck": {"huge-1", "api-5f6b-crash", "backup-0"},
        "app=web node:node-b": {"web-7c9d-fghij"},
        "state:failed": {"import-x8"},
        "owner:import -state:f*": {"import-x7"},
        "gone": {"db-0"},
        "no-such-pod": set(),
        "constructor:x": set(),
    }
    async with shown(story()) as (visit, _):
        names = visit.page.locator("#lanes-list button.pod .name")
        for query, found in searches.items():
            await visit.page.keyboard.press("/")
            await visit.page.keyboard.type(query)
            await expect(names).to_have_count(len(found))
            assert set(await names.all_inner_texts()) == found
            await visit.page.keyboard.press("Escape")
            await expect(names).to_have_count(10)


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
        await visit.page.locator("#scrub").fill("540")
        await expect(note).to_have_text("starting")
        await visit.page.get_by_role("button", name="Play").click()
        await expect(note).to_have_text("failed")


async def test_a_lost_connection_is_said_and_everything_is_read_again(shown: Shown) -> None:
    life = pod("web-1", segs=[(-60, "ready")])
    async with shown([life], allowed=["Failed to load", "ERR_"]) as (visit, ui):
        lost, missing, panel = (
            visit.page.locator(each) for each in ("#banner-lost", "#banner-missing", "#panel")
        )
        await row(visit.page, "web-1").click()
        ui.heartbeat = {"live": False, "missing": ["leases (403 Forbidden)"]}
        await expect(lost).to_contain_text("The API server does not respond")
        await expect(missing).to_contain_text("leases (403 Forbidden)")
        ui.heartbeat = {"live": True, "missing": []}
        for connections, lives in ((2, {life["uid"]: life}), (3, {})):
            ui.lives = lives
            ui.cut()
            await until(lambda wanted=connections: ui.connections == wanted)
            await expect(lost).to_be_hidden()
            await expect(panel).to_be_visible(visible=bool(lives))
        await expect(visit.page.locator("#empty-title")).to_have_text("No pods yet")
        ui.status = 403
        ui.cut()
        await expect(lost).to_contain_text("open the address that podlife ui printed")


async def test_the_plan_is_read_only_unless_actions_are_allowed(shown: Shown) -> None:
    async with shown(story()) as (visit, _):
        await visit.page.keyboard.press("p")
        plan = visit.page.locator("#plan")
        await expect(plan).to_contain_text("Rule batch · 1 pod")
        await expect(plan).to_contain_text("share of 20 %, lifted by --max-share")
        await expect(plan).to_contain_text("read-only")
        await visit.picture("ui-plan")
        await expect(visit.page.locator("#plan-sweep")).to_be_hidden()


async def test_a_sweep_needs_a_typed_confirmation(shown: Shown) -> None:
    async with shown(story(), hello={"actions": True}) as (visit, ui):
        page = visit.page
        await page.keyboard.press("p")
        await page.locator("#plan-sweep").click()
        await expect(page.locator("#sweep-question")).to_have_text(
            "Delete 1 pod now (1 terminated) and 1 pod after quarantine?"
        )
        await page.locator("#sweep-answer").fill("no")
        await page.keyboard.press("Enter")
        await expect(page.locator("#sweep-result")).to_contain_text("Nothing was deleted")
        await page.locator("#sweep-answer").fill("yes")
        await page.keyboard.press("Enter")
        await expect(page.locator("#sweep-result")).to_contain_text("deleted: 1")
        assert ui.sweeps == [{"digest": "d1", "confirm": "yes"}]


async def test_ten_thousand_pods_are_a_grid_that_zooms_into_lanes(shown: Shown) -> None:
    async with shown(crowd()) as (visit, _):
        page = visit.page
        await expect(page.locator("#count-all")).to_have_text("10,000 pods · 1,000 nodes")
        await expect(page.locator("#grid")).to_be_visible()
        await visit.picture("ui-grid")
        await page.locator("#grid-scroll").focus()
        for key in ("ArrowDown", "ArrowRight"):
            await page.keyboard.press(key)
        await expect(page.locator("#grid-cell")).to_contain_text("pod default/app-1-1, ")
        await page.keyboard.press("Enter")
        assert await page.locator("#search").input_value() == "node:node-1"
        assert await labels(page) == ["node-1", *(f"app-1-{i}001" if i else "app-1-1" for i in range(10))]
        await page.locator("#search").fill("")
        await visit.until("document.getElementById('lanes-list').offsetHeight > 300000")
        await page.evaluate("document.getElementById('lanes-scroll').scrollTop = 200000")
        await visit.until("document.querySelector('#lanes-list [aria-posinset=\"5270\"]') !== null")
        await page.evaluate("document.getElementById('lanes-scroll').scrollTop = 199900")
        rows = page.locator("#lanes-list [role=listitem]")
        assert await rows.count() < 60
        order = await rows.evaluate_all("all => all.map(each => Number(each.getAttribute('aria-posinset')))")
        assert order == sorted(order)
        assert await page.evaluate("performance.memory.usedJSHeapSize") < 300e6


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_no_violation(shown: Shown, width: int, scheme: str) -> None:
    more = {"width": width, "color_scheme": scheme, "allowed": ["status of 400"]}
    async with shown(story(), hello={"missing": ["nodes"]}, **more) as (visit, _):
        page = visit.page
        await visit.picture(f"ui-lanes-{scheme}-{width}")
        assert await _violations(page) == {}
        assert await page.evaluate("document.scrollingElement.scrollWidth") <= width
        await row(page, "backup-0").click()
        await expect(page.locator("#panel")).to_contain_text("Stuck: finalizer")
        await visit.picture(f"ui-explain-{scheme}-{width}")
        assert await _violations(page) == {}
        for tab in ("Timeline", "Logs", "YAML"):
            await page.get_by_role("tab", name=tab).click()
            await expect(page.locator("#panel-body")).not_to_contain_text("Reading")
            assert await _violations(page) == {}
        await page.keyboard.press("Escape")
        for key in ("g", "p", "?"):
            await page.keyboard.press(key)
            assert await _violations(page) == {}


async def _violations(page: Page) -> dict[str, list[str]]:
    found = await Axe().run(page)
    return {each["id"]: [node["html"] for node in each["nodes"]] for each in found.response["violations"]}


async def test_the_theme_follows_the_system_and_can_be_changed(shown: Shown) -> None:
    background = "getComputedStyle(document.querySelector('main')).backgroundColor"
    async with shown(story(), color_scheme="dark") as (visit, _):
        dark = await visit.page.evaluate(background)
        await visit.page.keyboard.press("t")
        await visit.until(f"{background} === 'rgb(255, 255, 255)'")
        await visit.page.reload()
        await visit.until(f"{background} === 'rgb(255, 255, 255)'")
        assert dark != "rgb(255, 255, 255)"

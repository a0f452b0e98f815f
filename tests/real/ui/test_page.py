"""The page in a real browser, fed by a stream that each test plays."""

from __future__ import annotations

import re
from collections.abc import Awaitable
from dataclasses import replace

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page, expect

from tests.kit.browser import PATIENCE_MS
from tests.kit.ui_stream import at, crowd, node, pod, story
from tests.kit.wait import until
from tests.real.ui.conftest import COLOUR, Shown, labels, row, steps

expect.set_options(timeout=PATIENCE_MS)


async def test_every_pod_and_node_has_a_lane_that_says_what_it_does(shown: Shown) -> None:
    async with shown(story(), hello={"started": at(-160)}) as (visit, _):
        page = visit.page
        assert (await labels(page))[:4] == ["not on a node", "huge-1", "node-a", "api-5f6b-crash"]
        told = await row(page, "worker-1").get_attribute("aria-label")
        assert told is not None
        assert told.startswith("pod default/worker-1, terminating, on node-b")
        assert re.search(r"next (in \d+s|now|due \d+s ago): kubelet sends KILL", told)
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


async def test_a_pod_that_comes_back_on_another_node_has_one_lane_under_it(shown: Shown) -> None:
    first = pod("db-0", "node-a", uid="first", segs=[(-200, "ready")], to=-100)
    async with shown([node("node-a"), node("node-b"), first, pod("db-0", "", segs=[(-99, "pending")])]) as (
        visit,
        ui,
    ):
        assert await labels(visit.page) == ["not on a node", "db-0", "node-a", "node-b"]
        ui.push(pod("db-0", "node-b", segs=[(-99, "pending"), (-9, "ready")]))
        await until(lambda: _is(labels(visit.page), ["node-a", "node-b", "db-0"]))
        assert "life 2 under this name" in (await row(visit.page, "db-0").get_attribute("aria-label") or "")


async def _is(found: Awaitable[object], wanted: object) -> bool:
    return await found == wanted


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


async def test_a_prediction_that_came_late_was_missed_until_then(shown: Shown) -> None:
    late = pod("web-1", segs=[(-200, "ready")], next=[(-150, "kubelet", "acts", "happened", -180)])
    late["next"][0] |= {"until": at(-60), "missed": at(-148)}
    async with shown([late], "#span=900") as (visit, _):
        assert "late: kubelet acts" in "\n".join(await steps(visit, "web-1"))
        # 600 s are known: 480 s after their start is 120 s ago.
        await visit.page.locator("#scrub").fill("800")
        await expect(row(visit.page, "web-1")).to_have_attribute(
            "aria-label", re.compile(r"next missed [23]\ds ago: kubelet acts")
        )


async def test_names_and_messages_of_the_cluster_are_never_markup(shown: Shown) -> None:
    hostile = '<img src=x onerror="document.title=1">'
    life = pod(hostile, hostile, segs=[(-60, "ready")], stage=hostile, waits=hostile, stuck=hostile,
               owner={"kind": hostile, "name": hostile}, labels={hostile: hostile}, next=[(9, hostile, hostile)],
               marks=[(-50, "warning", hostile, hostile)])  # fmt: skip
    async with shown([life], hello={"missing": [hostile], "cluster": hostile}, allowed=["status of 404"]) as (
        visit,
        _,
    ):
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
        "label:app -app=web": {
            "api-5f6b-crash",
            "worker-1",
            "backup-0",
            "db-0",
            "huge-1",
            "import-x7",
            "import-x8",
        },
        "constructor:x": set(),
    }
    async with shown(story()) as (visit, _):
        names = visit.page.locator("#lanes-list button.pod .name")
        for query, found in searches.items():
            await visit.page.keyboard.press("/")
            await visit.page.keyboard.type(query)
            await expect(names).to_have_count(len(found))
            assert set(await names.all_inner_texts()) == found
            problem = "unknown field 'constructor': state, node" if ":x" in query else f"{len(found)} pod"
            await expect(visit.page.locator("#found")).to_contain_text(problem)
            await visit.page.keyboard.press("Escape")
            await expect(names).to_have_count(10)


async def test_a_lost_connection_is_said_and_everything_is_read_again(shown: Shown) -> None:
    life = pod("web-1", segs=[(-60, "ready")])
    async with shown([life], allowed=["Failed to load", "ERR_"]) as (visit, ui):
        connection, lost, missing, panel = (
            visit.page.locator(each) for each in ("#connection", "#banner-lost", "#banner-missing", "#panel")
        )
        await row(visit.page, "web-1").click()
        ui.heartbeat = {"live": False, "missing": ["leases (403 Forbidden)"]}
        await expect(lost).to_contain_text("The API server does not respond")
        await expect(missing).to_contain_text("leases (403 Forbidden)")
        ui.heartbeat = {"live": True, "missing": []}
        # A server that was replaced: what was shown stays, and is said to be old.
        await ui.stop()
        await expect(lost).to_contain_text("What is shown may be out of date")
        await expect(panel).to_be_visible()
        await ui.start()
        await expect(connection).to_have_text("live")
        await expect(panel).to_be_visible()
        # A stream that is too far behind.
        ui.lives.clear()
        ui.cut()
        await expect(visit.page.locator("#empty-title")).to_have_text("No pods yet")
        await expect(panel).to_be_hidden()
        ui.access = replace(ui.access, token="another")
        ui.cut()
        await expect(lost).to_contain_text("open the address that podlife ui printed")


SLEEP = """() => {
  const now = Date.now;
  Date.now = () => now() + 3600000;
  dispatchEvent(new Event("focus"));
}"""


async def test_a_page_that_slept_catches_up_by_itself_and_holds_nothing_more(shown: Shown) -> None:
    live = [node("node-a"), *(pod(f"web-{i}", segs=[(-60, "ready")]) for i in range(40))]
    async with shown(live, allowed=["ERR_"]) as (visit, ui):
        session = await visit.page.context.new_cdp_session(visit.page)

        async def held() -> dict[str, float]:
            for _ in range(3):
                await session.send("HeapProfiler.collectGarbage")
            return await session.send("Memory.getDOMCounters")

        counted: list[dict[str, float]] = []
        for i in range(4):
            # The clock on the wall goes on while nothing is heard: what a laptop's lid does.
            ui.lives = {
                life["uid"]: life for life in [*live[: 20 + i], pod(f"new-{i}", segs=[(-5, "ready")])]
            }
            greetings = ui.greetings
            await visit.page.evaluate(SLEEP)
            await expect(row(visit.page, f"new-{i}")).to_be_visible()
            await expect(visit.page.locator("#count-all")).to_have_text(f"{20 + i} pods · 1 node")
            assert ui.greetings > greetings
            await expect(visit.page.locator("#connection")).to_have_text("live")
            counted.append(await held())
        for each in ("jsEventListeners", "nodes"):
            assert counted[3][each] <= counted[0][each] + 2, counted


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
        assert ui.sweeps == ["d1"]


async def test_ten_thousand_pods_are_a_grid_that_zooms_into_lanes(shown: Shown) -> None:
    async with shown(crowd()) as (visit, _):
        page = visit.page
        await expect(page.locator("#count-all")).to_have_text("10,000 pods · 1,000 nodes")
        await expect(page.locator("#grid")).to_be_visible()
        await visit.picture("ui-grid")
        await page.locator("#grid-scroll").focus()
        for key in ("ArrowRight", "Shift+ArrowRight"):
            await page.keyboard.press(key)
        await expect(page.locator("#grid-cell")).to_contain_text("pod default/app-1-1, ")
        await page.keyboard.press("Enter")
        assert await page.locator("#search").input_value() == "node:node-1"
        for place in ("#lanes", "#grid"):
            await page.go_back()
            await expect(page.locator("#panel")).to_be_hidden()
            await expect(page.locator(place)).to_be_visible()
        await page.go_forward()
        await expect(page.locator("#lanes")).to_be_visible()
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
        slider = await page.locator("#scrub").bounding_box()
        assert slider is not None
        assert slider["width"] > 300
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

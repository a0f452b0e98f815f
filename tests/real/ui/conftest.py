"""Pages of a real Chromium: on a stream that a test plays, or on a whole cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
from playwright.async_api import Locator, Page

from tests.kit.browser import PATIENCE_MS, Visit, chromium, visiting
from tests.kit.ui_stream import Life, UiStream, serving
from tests.real.conftest import require

Shown = Callable[..., AbstractAsyncContextManager[tuple[Visit, UiStream]]]


@asynccontextmanager
async def _shown(
    lives: Iterable[Life],
    view: str = "",
    *,
    hello: Life | None = None,
    allowed: Iterable[str] = (),
    **context: Any,
) -> AsyncIterator[tuple[Visit, UiStream]]:
    """The page with these lives, at a view such as `#span=60`. It may not complain, but about what is `allowed`, and
    may ask only its own server."""
    async with serving(UiStream(lives, hello=hello)) as ui, chromium() as browser:
        async with visiting(browser, ui.access.url + view, **context) as visit:
            await visit.until("/live|replay/.test(document.getElementById('connection').textContent)")
            yield visit, ui
        complaints = [each for each in visit.complaints if not any(part in each for part in allowed)]
        assert complaints == []
        assert [each for each in visit.requests if not each.startswith((ui.origin, "data:"))] == []


@pytest.fixture
def shown() -> Shown:
    require("chromium")
    return _shown


def row(page: Page, name: str, kind: str = "pod") -> Locator:
    return page.locator(f"#lanes-list button.{kind}", has_text=name)


async def labels(page: Page) -> list[str]:
    """The rows from top to bottom, by their titles."""
    script = """all => all.sort((a, b) => a.ariaPosInSet - b.ariaPosInSet)
        .map(each => each.querySelector('.name').textContent)"""
    found: list[str] = await page.locator("#lanes-list [role=listitem]").evaluate_all(script)
    return found


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
  const { data } = canvas.getContext("2d").getImageData(nowX - box.left - 24, label.top - box.top + 18, 20, 13);
  let count = 0;
  for (let i = 0; i < data.length; i += 4) count += data.slice(i, i + 3).join() === wanted;
  return count;
}"""

_WRITTEN = """(wanted) => new Promise((resolve) => {
  // Until each of the patterns was written on a canvas.
  const [left, pen] = [new Set(wanted), CanvasRenderingContext2D.prototype], write = pen.fillText;
  pen.fillText = function (text, ...more) {
    for (const each of left) if (new RegExp(each).test(text)) left.delete(each);
    write.call(this, text, ...more);
    if (!left.size) { pen.fillText = write; resolve(); }
  };
  document.getElementById("lanes-scroll").dispatchEvent(new Event("scroll"));
})"""


async def written(visit: Visit, *patterns: str) -> None:
    """Wait until each of them is written on a canvas."""
    async with asyncio.timeout(PATIENCE_MS / 1000):
        await visit.page.evaluate(_WRITTEN, list(patterns))

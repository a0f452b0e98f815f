"""A real Chromium, the machine's own, driven by Playwright."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, ConsoleMessage, Page, async_playwright

from tests.kit.real_parts import part
from tests.kit.wait import until

# Every wait for something on the page: long, since a machine may be busy with something else.
PATIENCE_MS = 60_000
FLAGS = [
    # Tests run as root in containers, where Chromium's sandbox cannot start.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
]


@dataclass
class Visit:
    """A page that was opened, its requests, and the errors of its scripts and of its security policy."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def note_console(self, said: ConsoleMessage) -> None:
        if said.type == "error":
            self.complaints.append(said.text)

    async def text(self, selector: str) -> str:
        return await self.page.locator(selector).inner_text()

    async def picture(self, name: str) -> None:
        """Keep a picture of the page, if PODLIFE_PICTURES names a folder: docs/images has some of them."""
        if folder := os.environ.get("PODLIFE_PICTURES"):
            await self.page.screenshot(path=Path(folder) / f"{name}.png")

    async def until(self, script: str) -> Any:
        """Until the JavaScript expression is true. Playwright's own wait needs `eval`, which the policy forbids."""
        return await until(lambda: self.page.evaluate(script), script)


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """Raises MissingPartError when there is no Chromium."""
    program = part("chromium")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=str(program), args=FLAGS)
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def visiting(
    browser: Browser, url: str, *, width: int = 1280, height: int = 800, **more: Any
) -> AsyncIterator[Visit]:
    """The page in a fresh profile; `more` is what Playwright's new_context takes, such as color_scheme."""
    context = await browser.new_context(viewport={"width": width, "height": height}, **more)
    try:
        page = await context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        visit = Visit(page)
        page.on("console", visit.note_console)
        page.on("pageerror", lambda error: visit.complaints.append(str(error)))
        page.on("request", lambda asked: visit.requests.append(asked.url))
        await page.goto(url)
        yield visit
    finally:
        await context.close()

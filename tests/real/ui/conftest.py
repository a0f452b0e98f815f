"""Pages of a real Chromium: on a stream that a test plays, or on a whole cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from tests.kit.browser import Visit, chromium, visiting
from tests.kit.ui_stream import Life, UiStream, serving
from tests.real.conftest import require

Shown = Callable[..., AbstractAsyncContextManager[tuple[Visit, UiStream]]]


@asynccontextmanager
async def _shown(
    lives: Iterable[Life], *, hello: Life | None = None, allowed: Iterable[str] = (), **context: Any
) -> AsyncIterator[tuple[Visit, UiStream]]:
    """The page with these lives. It may not complain, but about what is `allowed`, and may ask only its own server."""
    async with serving(UiStream(lives, hello=hello)) as ui, chromium() as browser:
        async with visiting(browser, ui.url, **context) as visit:
            await visit.until("/live|replay/.test(document.getElementById('connection').textContent)")
            yield visit, ui
        complaints = [each for each in visit.complaints if not any(part in each for part in allowed)]
        assert complaints == []
        assert [each for each in visit.requests if not each.startswith((ui.url, "data:"))] == []


@pytest.fixture
def shown() -> Shown:
    require("chromium")
    return _shown

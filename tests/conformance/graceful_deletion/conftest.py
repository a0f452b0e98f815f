"""The world of a test: an API server of its own, on a memory store unless the test names another."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conformance.graceful_deletion import world as worlds


@pytest.fixture
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[worlds.World]:
    """Parametrise it indirectly (`on_both_stores`) where the store makes a difference."""
    async with worlds.serve(getattr(request, "param", "memory"), tmp_path) as world:
        yield world


on_both_stores = pytest.mark.parametrize("world", ["memory", "sqlite"], indirect=True)

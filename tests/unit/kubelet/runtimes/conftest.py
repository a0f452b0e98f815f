"""A process runtime for each test that asks for one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from .process.process_kit import ProcessWorld, opened


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[ProcessWorld]:
    async with opened(tmp_path) as made:
        yield made
        await made.clear()

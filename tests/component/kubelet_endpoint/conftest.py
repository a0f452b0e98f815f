"""The endpoint of a node before the embedded API server, which says who may do what."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.component.embedded import connect, start
from tests.component.kubelet_endpoint.kit import World, running


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with connect(await start()) as client, running(tmp_path, client) as made:
        yield made

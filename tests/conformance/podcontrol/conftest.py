from __future__ import annotations

import pytest

from tests.conformance.podcontrol import world as worlds


@pytest.fixture
async def world() -> worlds.World:
    return await worlds.open_world()

"""Every test of this suite runs over every runtime that needs nothing installed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from .machines import MACHINES, Machine, World


@pytest.fixture(params=list(MACHINES))
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    return MACHINES[request.param](tmp_path)


@pytest.fixture
async def world(machine: Machine, tmp_path: Path) -> AsyncIterator[World]:
    async with machine.open() as opened:
        made = World(opened, machine, tmp_path)
        yield made
        await made.clear()

"""Every test of this suite runs over every runtime that needs nothing installed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from podlife.kubelet.runtime import Runtime

from .machines import MACHINES, Machine


@pytest.fixture(params=list(MACHINES))
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    made: Machine = MACHINES[request.param](tmp_path)
    return made


@pytest.fixture
async def runtime(machine: Machine) -> AsyncIterator[Runtime]:
    async with machine.open() as opened:
        yield opened
        # Nothing that a failed test has left runs on.
        for sandbox in await opened.list_sandboxes():
            await opened.remove_sandbox(sandbox.id)

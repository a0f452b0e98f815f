"""A process runtime for each test that asks for one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from podlife.clock import SystemClock
from podlife.kubelet.runtimes.process import ProcessRuntime, ProcessSettings


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[ProcessRuntime]:
    async with ProcessRuntime(ProcessSettings(tmp_path / "runtime"), SystemClock()) as opened:
        yield opened
        for sandbox in await opened.list_sandboxes():
            await opened.remove_sandbox(sandbox.id)

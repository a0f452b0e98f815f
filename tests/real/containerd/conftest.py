"""One daemon for all tests of this folder; each test is an agent of its own, which sees only what it made itself."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from podlife.kubelet.runtimes.containerd import ContainerdRuntime
from tests.real.conftest import require

from .daemon import PARTS, Daemon, containerd_daemon
from .machine import ContainerdMachine
from .registry import registry


def require_containerd() -> None:
    """Skip, or fail in CI, where containers cannot be run."""
    require(*PARTS)
    if os.geteuid() != 0:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("containers need root")


@pytest.fixture(scope="session")
def daemon() -> Iterator[Daemon]:
    require_containerd()
    with containerd_daemon() as started:
        yield started


@pytest.fixture(scope="session")
def registry_address(daemon: Daemon) -> Iterator[str]:
    with registry(daemon.image) as address:
        daemon.trust_registry(address)
        yield address


@pytest.fixture
def machine(daemon: Daemon, registry_address: str, tmp_path: Path) -> ContainerdMachine:
    return ContainerdMachine(daemon, tmp_path, f"{registry_address}/image:1")


@pytest.fixture
async def runtime(machine: ContainerdMachine) -> AsyncIterator[ContainerdRuntime]:
    async with machine.open() as opened:
        yield opened
        await machine.quiet()
        # Nothing that a failed test has left runs on.
        for sandbox in await opened.list_sandboxes():
            await opened.remove_sandbox(sandbox.id)

"""One daemon for all tests of this folder; each test is an agent of its own, which sees only what it made itself."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from podlife.kubelet.runtimes.containerd import ContainerdRuntime
from tests.conformance.runtime.machines import World
from tests.real.conftest import require

from .daemon import PARTS, Daemon, containerd_daemon
from .machine import ContainerdMachine
from .registry import registry


class ContainerdWorld(World):
    runtime: ContainerdRuntime
    machine: ContainerdMachine


def require_containerd() -> None:
    """Skip, or fail in CI, where containers cannot be run."""
    require(*PARTS)
    if os.geteuid() != 0:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("containers need root")


def own_daemon() -> Iterator[Daemon]:
    """For a fixture."""
    require_containerd()
    with containerd_daemon() as started:
        yield started


daemon = pytest.fixture(scope="session")(own_daemon)


@pytest.fixture(scope="session")
def registry_address(daemon: Daemon) -> Iterator[str]:
    with registry(daemon.image) as address:
        daemon.trust_registry(address)
        yield address


@pytest.fixture
def machine(daemon: Daemon, registry_address: str, tmp_path: Path) -> ContainerdMachine:
    return ContainerdMachine(daemon, tmp_path, f"{registry_address}/image:1")


@pytest.fixture
async def world(machine: ContainerdMachine, tmp_path: Path) -> AsyncIterator[ContainerdWorld]:
    async with machine.open() as opened:
        made = ContainerdWorld(opened, machine, tmp_path)
        yield made
        await made.clear()

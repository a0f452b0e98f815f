"""`podlife up NODE` and `podlife down NODE`: what is printed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest

from podlife.aio import cancel_and_wait, spawn
from podlife.cli.commands.up.app import _order_nodes
from podlife.localcluster.cluster import LocalCluster
from podlife.localcluster.control_socket import serve_orders
from podlife.localcluster.state_dir import StateDir


class Nodes:
    """Of a cluster, that nodes can be stopped."""

    components = ()

    def __init__(self) -> None:
        self.stopped: set[str] = set()

    def is_stopped(self, name: str) -> bool:
        return name in self.stopped

    async def stop_node(self, name: str) -> None:
        self.stopped.add(name)

    def start_node(self, name: str) -> None:
        self.stopped.discard(name)


def _raise(failure: BaseException) -> None:
    raise failure


@pytest.fixture
async def folder(tmp_path: Path) -> AsyncIterator[StateDir]:
    folder = StateDir(tmp_path)
    serving = spawn(serve_orders(folder, cast(LocalCluster, Nodes())), name="orders", on_failure=_raise)
    while not folder.socket.exists():
        await asyncio.sleep(0)
    yield folder
    await cancel_and_wait(serving)


async def test_stopping_and_starting_a_node_says_what_was_so_before(
    folder: StateDir, capsys: pytest.CaptureFixture[str]
) -> None:
    for what in ("stop", "stop", "start", "start"):
        await asyncio.to_thread(_order_nodes, folder.path, what, ["node-2"])
    assert capsys.readouterr().out.splitlines() == [
        "node-2 is stopped; its pods run on",
        "node-2 is stopped already; its pods run on",
        "node-2 is started",
        "node-2 runs already",
    ]

"""The options of `podlife up`, and what `podlife up NODE` and `podlife down NODE` print."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest

from podlife.aio import cancel_and_wait, spawn
from podlife.cli.commands.up.app import _order_nodes
from podlife.localcluster.cluster import LocalCluster
from podlife.localcluster.control_socket import serve_requests
from podlife.localcluster.state_dir import StateDir
from tests.unit.cli.conftest import Refused


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--runtime", "docker"), "unknown runtime 'docker'; choose from process, containerd, sim"),
        (("--nodes", "-1"), "invalid value '-1': expected a whole number from 0 to 1000"),
        (("--controllers", "nobody"), "unknown --controllers value 'nobody'"),
        (
            ("--runtime", "containerd", "--containerd-socket", "/nowhere"),
            "containerd does not listen on /nowhere",
        ),
        (("--scenario", "x.yaml"), "--scenario is for simulated nodes"),
        (("--name", "no host"), "invalid host name or IP address 'no host'"),
        (("--stop-timeout", "-1s"), "duration must not be negative"),
    ],
)
def test_a_wrong_option_is_one_line_and_nothing_is_made(
    refused: Refused, flags: tuple[str, ...], told: str, tmp_path: Path
) -> None:
    assert told in refused("up", "--data", str(tmp_path / "data"), *flags)
    assert not (tmp_path / "data").exists()


def test_an_audit_log_is_turned_off_by_a_word_and_not_by_an_empty_one() -> None:
    from typer.main import get_command

    from podlife.cli.app import app

    command = get_command(app).commands["up"]  # type: ignore[attr-defined] # it is a group
    for words, path in ((["none"], ""), (["/x/log"], "/x/log"), ([], None)):
        flags = ["--audit-log-path", *words] if words else []
        assert command.make_context("up", flags).params["audit_log_path"] == path


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
    serving = spawn(serve_requests(folder, cast(LocalCluster, Nodes())), name="orders", on_failure=_raise)
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

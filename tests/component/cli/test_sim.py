"""`podlife sim` as a user runs it, against a server in the test's own process."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from podlife.cli.commands.sim_output import ConsoleReporter
from podlife.client import LEASES, NODES, PODS, Client
from podlife.daemons.simulation import Simulation, SimulationSettings
from podlife.testing import virtual_time
from podlife.wire import Handler, Request, Response
from tests.component.cli.commands import assert_one_line, on_terminal, podlife, started
from tests.component.cli.conftest import Server
from tests.kit.embedded import connect, start
from tests.kit.real_parts import free_port
from tests.kit.wait import until


async def names(client: Client) -> tuple[int, int, int]:
    """How many nodes, pods and leases of nodes there are."""
    nodes, pods = (await client.list_all(NODES)).items, (await client.list_all(PODS)).items
    return len(nodes), len(pods), len((await client.list_all(LEASES, "kube-node-lease")).items)


async def test_nodes_and_pods_come_and_what_was_made_is_gone_at_the_end(
    server: Server, client: Client
) -> None:
    async with started("sim", "--nodes=3", "--pods=12", *server.admin) as running:
        await running.wait_for("12 pods created in namespace default")

        async def all_run() -> bool:
            pods = (await client.list_all(PODS, "default")).items
            return len(pods) == 12 and all(each["status"].get("phase") == "Running" for each in pods)

        await until(all_run)
        assert await names(client) == (3, 12, 3)
        result = await running.end()
    assert result.code == 0, result.err
    assert "3 nodes are ready" in result.err
    assert re.search(r"12 pods started: created to Running p50 \d+\.\d\d s, p99 \d+\.\d\d s", result.out)
    assert await names(client) == (0, 0, 0)


async def test_it_ends_by_itself_after_its_duration(server: Server, client: Client) -> None:
    result = await podlife("sim", "--duration=100ms", *server.admin)
    assert result.code == 0, result.err
    assert "1 node for " in result.out
    assert await names(client) == (0, 0, 0)


async def test_it_leaves_what_it_is_told_to(server: Server, client: Client) -> None:
    async with started("sim", "--pods=2", "--keep", *server.admin) as running:
        await running.wait_for("2 pods created in namespace default")
        assert (await running.end()).code == 0
    assert await names(client) == (1, 2, 1)


async def test_on_a_terminal_one_line_shows_how_far_it_is(server: Server) -> None:
    async with on_terminal("sim", "--pods=5", *server.admin) as terminal:
        await terminal.wait_for("nodes: 1 of 1 ready; pods: 5 Running")
        terminal.interrupt()
        await terminal.wait_for("5 pods started")
        assert await terminal.exit_code() == 0


async def test_a_server_that_refuses_pods_ends_it_with_one_line_and_nothing_is_left(
    server: Server, client: Client
) -> None:
    result = await podlife("sim", "--pods=5", "-n", "no-such-namespace", *server.admin)
    assert result.code == 1
    assert result.out == ""
    assert re.search(r'^podlife: .*namespaces "no-such-namespace" not found', result.err, re.MULTILINE)
    assert "Traceback" not in result.err
    assert await names(client) == (0, 0, 0)


async def test_whoever_may_not_is_told_which_right_is_missing(server: Server) -> None:
    result = await podlife("sim", *server.nobody)
    assert result.code == 1
    assert "docs/sim.md has all that is needed" in result.err
    assert "Traceback" not in result.err


async def test_a_server_that_is_not_there_is_told_of_at_once() -> None:
    result = await podlife("sim", "--server", f"http://127.0.0.1:{free_port()}", "--token", "t")
    assert_one_line(result, "127.0.0.1")


async def test_a_scenario_is_checked_before_anything_is_connected_to(tmp_path: Path) -> None:
    wrong, right = tmp_path / "wrong.yaml", tmp_path / "right.yaml"
    wrong.write_text("pods:\n- crsh: 1s\n")
    right.write_text("seed: 4\nnodes: [{at: 1m}]\n")
    for command in (("sim", "check", str(wrong)), ("sim", "--scenario", str(wrong), "--server", "http://x")):
        assert_one_line(
            await podlife(*command), "wrong.yaml: line 2: unknown field pods[0].crsh: did you mean crash?"
        )
    result = await podlife("sim", "check", str(right))
    assert (result.code, result.out) == (0, "valid: 1 rule for nodes; seed 4\n")


async def test_more_pods_than_the_nodes_take_are_refused_with_one_line() -> None:
    result = await podlife("sim", "--pods=500", "--server", "http://x")
    assert result.code == 2
    assert "--pods 500 exceeds the capacity of --nodes 1 with --max-pods 110" in result.err


@virtual_time
async def test_pods_that_take_long_to_create_do_not_make_it_take_longer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Under virtual time: its duration bounds all that it does before it cleans up."""

    async def slow(request: Request, handler: Handler) -> Response:
        if request.method == "POST" and request.path.endswith("/pods"):
            await asyncio.sleep(50)
        return await handler(request)

    async with connect(await start(), slow) as client:
        began = asyncio.get_running_loop().time()
        settings = SimulationSettings(pods=100, duration_seconds=3.0)
        await Simulation(client, settings, ConsoleReporter(settings)).run()
        assert asyncio.get_running_loop().time() - began < 10
    assert "only 32 of 100 pods created within 3s" in capsys.readouterr().err

"""How long a simulation takes, under virtual time: its duration bounds all that it does before it cleans up."""

from __future__ import annotations

import asyncio

import pytest

from podlife.cli.commands.sim_output import ConsoleReporter
from podlife.daemons.simulation import Simulation, SimulationSettings
from podlife.testing import virtual_time
from podlife.wire import Handler, Request, Response
from tests.kit.embedded import connect, start


@virtual_time
async def test_pods_that_take_long_to_create_do_not_make_it_take_longer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def slow(request: Request, handler: Handler) -> Response:
        if request.method == "POST" and request.path.endswith("/pods"):
            await asyncio.sleep(50)
        return await handler(request)

    async with connect(await start(), slow) as client:
        began = asyncio.get_running_loop().time()
        settings = SimulationSettings(pods=100, duration_seconds=3.0)
        await Simulation(client, settings, ConsoleReporter(settings)).run()
        assert asyncio.get_running_loop().time() - began < 10
    assert "32 of 100 pods were asked for within 3s" in capsys.readouterr().err

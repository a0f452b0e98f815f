"""Every scenario with our controllers on the embedded server, under virtual time, against its golden outcome."""

from __future__ import annotations

import pytest

from podlife.testing import LoopClock, virtual_time
from tests.kit.embedded import connect, start
from tests.nodehealth.outcome import difference
from tests.nodehealth.runs import own_controllers, play_all
from tests.nodehealth.scenarios import SCENARIOS, Scenario, golden


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=str)
@virtual_time
async def test_comes_to_the_same_as_with_kube_controller_manager(scenario: Scenario) -> None:
    server = await start()
    async with (
        connect(server) as client,
        connect(server) as controllers,
        own_controllers(controllers, LoopClock()),
    ):
        outcomes = await play_all(client, LoopClock(), [scenario])
    outcome = outcomes[scenario.name]
    if isinstance(outcome, Exception):
        raise outcome
    found = difference(golden(scenario), outcome)
    assert not found, found

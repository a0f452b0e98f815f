"""Every scenario with our controllers on the embedded server, under virtual time, against its golden end state."""

from __future__ import annotations

import pytest

from podlife.apiserver.apiextensions.controller import CustomResourceDefinitionController
from podlife.testing import LoopClock, virtual_time
from tests.kit.embedded import connect, start
from tests.workloads.runs import EmbeddedQuota, at_work, observing, own_controllers, play
from tests.workloads.scenario import Scenario, all_scenarios, golden
from tests.workloads.snapshot import difference


@pytest.mark.parametrize("scenario", all_scenarios(), ids=str)
@virtual_time
async def test_ends_as_with_kube_controller_manager(scenario: Scenario) -> None:
    expected = golden(scenario)
    server, quota = await start(), EmbeddedQuota()
    # Users and controllers have clients of their own; the quota is the server's, so it stands in everybody's way.
    async with (
        at_work(CustomResourceDefinitionController(server.registry).run),
        connect(server, quota) as client,
        connect(server, quota) as controllers,
        own_controllers(controllers, LoopClock(), [scenario]),
        observing(client, quota, clock=LoopClock(), quiet_seconds=5) as cluster,
    ):
        left = await play(cluster, scenario, scenario.namespace(), expected)
    assert not difference(expected, left), difference(expected, left)

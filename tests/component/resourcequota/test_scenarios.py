"""Scenarios of quotas and limit ranges on the embedded server end as with kube-controller-manager on kube-apiserver."""

from __future__ import annotations

import asyncio

import pytest

from podlife.apiserver.apiextensions.controller import CustomResourceDefinitionController
from podlife.controller import ControlPlane
from podlife.resourcequota import ResourceQuotaController
from podlife.testing import LoopClock, virtual_time
from tests.kit.embedded import connect, start
from tests.resourcequota.runs import golden, play
from tests.resourcequota.scenarios import SCENARIOS
from tests.resourcequota.stage import prepare
from tests.workloads.runs import at_work


@pytest.mark.parametrize("name", SCENARIOS)
@virtual_time
async def test_it_ends_as_with_theirs(name: str) -> None:
    handler = await start()
    client = connect(handler)
    await prepare(client)
    plane = ControlPlane(connect(handler), clock=LoopClock())
    plane.add(ResourceQuotaController(plane))
    definitions = CustomResourceDefinitionController(handler.registry)
    async with at_work(definitions.run), at_work(plane.run):
        await asyncio.sleep(1)
        complaint = await play(client, name)
    if complaint:
        pytest.fail(complaint, pytrace=False)


def test_every_golden_outcome_is_of_a_scenario() -> None:
    assert golden().keys() == SCENARIOS.keys()

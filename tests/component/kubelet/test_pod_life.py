"""The life of a pod on a simulated node, as its user sees it through the API server."""

from __future__ import annotations

from tests.component.kubelet.node_world import node_world, pod
from tests.virtual_time import virtual_time


@virtual_time
async def test_a_pod_runs_and_is_deleted_for_good() -> None:
    async with node_world() as world:
        await world.create(pod())
        running = await world.until_phase("Running")
        status = running["status"]
        assert status["podIP"] == "10.0.0.7"
        assert status["hostIP"] == "192.0.2.1"
        assert status["containerStatuses"][0]["ready"] is True
        await world.delete()
        assert await world.until_gone() < 5
        assert not [each for each in world.machine.containers.values() if each.exit_code is None]

"""New nodes on kube-apiserver, which taints them: kube-controller-manager and ours leave them with the same taints."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from pathlib import Path

import pytest

from podlife.client import NODES, Client
from podlife.controller import ControlPlane
from podlife.nodehealth import NodeLifecycleController
from tests.kit.real_parts import Server, controller_manager
from tests.real.conftest import require
from tests.unit.apiserver.admission.test_node_taint import CASES, PREFIX, taints
from tests.workloads.runs import at_work, connect

_LOOKS, _DEADLINE_SECONDS = 10, 60.0


async def _left(client: Client, name: str, wanted: list[str]) -> list[str]:
    """The NoSchedule taints, once they have been as wanted for some looks, or at the deadline."""
    held, found = 0, list[str]()
    for _ in range(round(_DEADLINE_SECONDS / 0.1)):
        found = sorted(key for key, effect in await taints(client, name) if effect == "NoSchedule")
        held = held + 1 if found == wanted else 0
        if held > _LOOKS:
            break
        await asyncio.sleep(0.1)
    return found


async def _play(server: Server, prefix: str) -> list[list[str]]:
    async with connect(server.kubeconfig) as client:
        plane = ControlPlane(client)
        plane.add(NodeLifecycleController(plane))
        async with at_work(plane.run) if prefix == "ours" else nullcontext():
            results = []
            for number, (conditions, unschedulable, left) in enumerate(CASES):
                name = f"{prefix}-new-{number}"
                given = {"metadata": {"name": name}, "spec": {"unschedulable": unschedulable}}
                status = {"conditions": [{"type": key, "status": value} for key, value in conditions.items()]}
                made = await client.create(NODES, {**given, "status": status})
                assert {"key": f"{PREFIX}not-ready", "effect": "NoSchedule"} in made["spec"]["taints"]
                results.append(await _left(client, name, left))
                await client.delete(NODES, name)
            return results


@pytest.mark.parametrize("whose", ["theirs", "ours"])
def test_a_new_node_keeps_the_taints_of_its_conditions(whose: str, kube: Server, parts_folder: Path) -> None:
    require("kube-controller-manager")
    folder = parts_folder / "new-nodes"
    manager = controller_manager(folder, kube, ("node-lifecycle-controller",))
    with manager if whose == "theirs" else nullcontext():
        assert asyncio.run(_play(kube, whose)) == [left for _, _, left in CASES]

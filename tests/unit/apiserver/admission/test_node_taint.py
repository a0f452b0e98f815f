"""A new node is tainted, and the node lifecycle controller removes the taint as soon as it sees the node."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from podlife.apiserver.assembly import assemble
from podlife.apiserver.authn import Authenticator
from podlife.apiserver.storage import MemoryStore
from podlife.client import NODES, Client
from podlife.controller import ControlPlane
from podlife.nodehealth import NodeLifecycleController
from podlife.testing import LoopClock, virtual_time
from tests.kit.embedded import connect
from tests.workloads.runs import at_work

PREFIX = "node.kubernetes.io/"
NOT_READY = {"key": f"{PREFIX}not-ready", "effect": "NoSchedule"}
CASES: list[tuple[dict[str, str], bool, list[str]]] = [
    ({"Ready": "True"}, False, []),
    ({"Ready": "False"}, False, ["not-ready"]),
    ({"Ready": "Unknown"}, False, ["unreachable"]),
    ({"Ready": "True", "MemoryPressure": "True"}, False, ["memory-pressure"]),
    (
        {"Ready": "True", "DiskPressure": "True", "PIDPressure": "True"},
        False,
        ["disk-pressure", "pid-pressure"],
    ),
    ({"Ready": "True", "NetworkUnavailable": "True"}, False, ["network-unavailable"]),
    ({"Ready": "True"}, True, ["unschedulable"]),
    ({"Ready": "True", "MemoryPressure": "False"}, False, []),
]
"""Conditions of a new node, whether it is cordoned, and the NoSchedule taints that node health leaves it with."""
OTHER = {"key": "k", "value": "v", "effect": "NoSchedule"}


def tainting() -> Client:
    handler = assemble(MemoryStore(), clock=LoopClock(), authenticator=Authenticator(), taints_new_nodes=True)
    return connect(handler)


async def taints(client: Client, name: str) -> list[tuple[str, str]]:
    spec: dict[str, Any] = (await client.get(NODES, name)).get("spec") or {}
    return [(each["key"].removeprefix(PREFIX), each["effect"]) for each in spec.get("taints") or ()]


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ([], [NOT_READY]),
        ([OTHER], [OTHER, NOT_READY]),
        ([{**NOT_READY, "value": "mine"}], [{**NOT_READY, "value": "mine"}]),
        ([{**NOT_READY, "effect": "NoExecute"}], [{**NOT_READY, "effect": "NoExecute"}, NOT_READY]),
    ],
)
@virtual_time
async def test_a_new_node_is_tainted_once(given: list[Any], stored: list[Any]) -> None:
    client = tainting()
    made = await client.create(NODES, {"metadata": {"name": "n"}, "spec": {"taints": given}})
    assert made["spec"]["taints"] == stored
    await client.patch(NODES, "n", {"spec": {"taints": None}})
    await client.patch(NODES, "n", {"metadata": {"labels": {"a": "b"}}})
    assert await taints(client, "n") == []


@pytest.mark.parametrize(("conditions", "unschedulable", "left"), CASES)
@virtual_time
async def test_conditions_replace_it_at_once(
    conditions: dict[str, str], unschedulable: bool, left: list[str]
) -> None:
    client = tainting()
    plane = ControlPlane(client, clock=LoopClock())
    plane.add(NodeLifecycleController(plane))
    async with at_work(plane.run):
        status = {"conditions": [{"type": key, "status": value} for key, value in conditions.items()]}
        spec = {"unschedulable": True} if unschedulable else {}
        await client.create(NODES, {"metadata": {"name": "n"}, "spec": spec, "status": status})
        await asyncio.sleep(1)
        found = await taints(client, "n")
    assert sorted(key for key, effect in found if effect == "NoSchedule") == left

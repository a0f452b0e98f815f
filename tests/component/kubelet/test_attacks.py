"""What must not end an agent, nor make its node ill: things that nobody has foreseen."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from podlife.api.codec import Object
from podlife.kubelet.interfaces import NoVolumes
from podlife.kubelet.runtimes.sim import SimRuntime
from podlife.testing import virtual_time
from tests.component.kubelet.node_world import NodeWorld, node_world, on_a_node, pod


@on_a_node
async def test_a_clock_that_is_set_forward_makes_no_node_ill(
    world: NodeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PL-09"""
    await world.running(pod())
    now = world.clock.now
    monkeypatch.setattr(world.clock, "now", lambda: now() + timedelta(hours=8))
    assert world.agent.complaint == ""
    assert list(world.agent._problems()) == []


@virtual_time
async def test_what_cannot_be_removed_ends_no_agent_and_is_removed_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    remove = SimRuntime.remove_sandbox
    failures = [OSError("nobody has foreseen this"), RecursionError("nor this")]

    async def fail_at_first(*arguments: Any) -> None:
        if failures:
            raise failures.pop()
        await remove(*arguments)

    monkeypatch.setattr(SimRuntime, "remove_sandbox", fail_at_first)
    async with node_world() as world:
        await world.running(pod())
        await world.delete()
        await world.until_gone()
        await asyncio.sleep(700)
        assert failures == []
        assert await world.agent.runtime.list_sandboxes() == []
        await world.running(pod("next"))


@virtual_time
async def test_an_agent_that_cannot_look_at_its_volumes_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    def fail(_: object) -> tuple[str, ...]:
        nonlocal looks
        looks += 1
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(NoVolumes, "mounted", fail)
    async with node_world() as world:
        await world.running(pod())
        await asyncio.sleep(700)
        await world.delete()
        await world.until_gone()
    assert looks > 1


@pytest.mark.parametrize(
    ("verb", "reason"),
    [("create_container", "CreateContainerError"), ("start_container", "RunContainerError")],
)
@virtual_time
async def test_a_disk_that_refuses_a_container_is_the_reason_why_it_waits(
    monkeypatch: pytest.MonkeyPatch, verb: str, reason: str
) -> None:
    async def fail(*_: object) -> None:
        raise OSError(36, "File name too long")

    monkeypatch.setattr(SimRuntime, verb, fail)
    async with node_world() as world:
        await world.create(pod())
        found = await world.until(lambda each: _waits_for(each) not in ("", "ContainerCreating"))
        assert _waits_for(found) == reason
        told = [message for why, message, _ in await world.events() if why == "Failed"]
        assert "File name too long" in told[0]


def _waits_for(found: Object) -> str:
    statuses = found["status"].get("containerStatuses") or [{"state": {}}]
    return str((statuses[0]["state"].get("waiting") or {}).get("reason") or "")

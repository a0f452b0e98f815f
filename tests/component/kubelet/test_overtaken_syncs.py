"""Steps overtaken while a call of theirs is under way: hooks run once, calls to the runtime come to their end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from podlife.kubelet.kuberuntime.handler_runner import HandlerRunner
from podlife.kubelet.runtimes.sim import Behaviour, SimRuntime
from tests.component.kubelet.node_world import NodeWorld, on_a_node, pod
from tests.kit.objects import container

PRE_STOP = {"lifecycle": {"preStop": {"exec": {"command": ["bye"]}}}}


@on_a_node
async def test_a_pod_deleted_again_with_less_grace_while_its_pre_stop_hook_runs_runs_it_once(
    world: NodeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []

    async def slow(self: HandlerRunner, *arguments: Any, **options: Any) -> None:
        begun.append("bye")
        await asyncio.sleep(1000)

    monkeypatch.setattr(HandlerRunner, "run", slow)
    world.behaviours["main"] = Behaviour(stop_seconds=None)
    await world.running(pod(containers=[container(**PRE_STOP)], terminationGracePeriodSeconds=600))
    await world.delete()
    async with asyncio.timeout(10):
        while not begun:
            await asyncio.sleep(0.1)
    await world.delete(grace_seconds=20)
    # Without a second hook the container has all of the new grace.
    assert 20 <= await world.until_gone() < 23
    assert begun == ["bye"]


@pytest.mark.parametrize("verb", ["run_sandbox", "create_container", "start_container"])
@on_a_node
async def test_a_pod_deleted_during_a_call_to_the_runtime_is_gone_only_after_that_call(
    world: NodeWorld, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    real = getattr(SimRuntime, verb)

    async def slow(*arguments: Any, **options: Any) -> Any:
        calls.append("begun")
        await asyncio.sleep(30)
        answer = await real(*arguments, **options)
        calls.append("ended")
        return answer

    monkeypatch.setattr(SimRuntime, verb, slow)
    await world.create(pod())
    async with asyncio.timeout(10):
        while not calls:
            await asyncio.sleep(0.1)
    await world.delete(grace_seconds=5)
    await world.until_gone()
    assert calls == ["begun", "ended"]
    # What came to be after the pod was deleted was ended by the pod's own steps, not as an orphan.
    assert world.agent.core.cleanups.counts.orphaned_runtime_pods == 0

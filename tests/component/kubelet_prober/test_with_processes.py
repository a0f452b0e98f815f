"""Probes and hooks by command in containers that are real processes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from podlife.kubelet.interfaces import HookError
from podlife.kubelet.kuberuntime.handler_runner import HandlerRunner
from podlife.kubelet.prober.prober import ProbeOutcome, ProbeRequest, run_probe
from podlife.kubelet.runtime import Runtime
from tests.conformance.kubelet.kit import container, pod
from tests.conformance.runtime.machines import ProcessMachine, World


class Nobody:
    def event(self, *_: object) -> None: ...


async def test_commands_that_answer_flood_hang_or_are_not_there(tmp_path: Path) -> None:
    machine = ProcessMachine(tmp_path)
    async with machine.open() as runtime:
        world = World(runtime, machine, tmp_path)
        await _probe_and_hook(runtime, await world.started(machine.runs_for_ever()))
        await world.clear()


async def _probe_and_hook(runtime: Runtime, container_id: str) -> None:
    one = container(env=[{"name": "WORD", "value": "ready"}])
    of_pod = pod(one)

    async def probe(*command: str, seconds: float = 60) -> tuple[ProbeOutcome, str, str]:
        spec = {"exec": {"command": list(command)}}
        answer = await run_probe(runtime, ProbeRequest(spec, of_pod, one, container_id, "", seconds))
        return answer.outcome, answer.output, answer.error

    async def hook(*command: str) -> None:
        handler = {"exec": {"command": list(command)}}
        await HandlerRunner(runtime, Nobody()).run(of_pod, one, container_id, handler, pod_ip="")

    assert await probe("sh", "-c", "echo $(WORD); exit 0") == (ProbeOutcome.SUCCESS, "ready\n", "")
    assert await probe("sh", "-c", "echo no >&2; exit 3") == (ProbeOutcome.FAILURE, "no\n", "")
    flood = await probe("sh", "-c", "yes | head -c 3000000; exit 1")
    assert flood == (ProbeOutcome.FAILURE, "y\n" * 5120, "")
    outcome, output, _ = await probe("sleep", "1000", seconds=0.2)
    assert (outcome, output) == (ProbeOutcome.FAILURE, 'command timed out: "sleep 1000" timed out after 0.2s')
    outcome, _, error = await probe("/there/is/no/such/program")
    assert outcome is ProbeOutcome.UNKNOWN
    assert "/there/is/no/such/program" in error
    await hook("true")
    with pytest.raises(HookError, match="exited with 1"):
        await hook("false")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await hook("sleep", "1000")

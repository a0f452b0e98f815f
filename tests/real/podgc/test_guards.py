"""Guards as a user has them, on kube-apiserver: what they hold, and what lifts them, typed as it was told."""

from __future__ import annotations

import asyncio
import json
import shlex
from pathlib import Path

import pytest

from podlife.client import EVENTS, Client
from tests.component.cli.commands import podlife, started
from tests.kit.gc_states import States
from tests.kit.real_parts import Server, run_kubectl
from tests.kit.wait import until
from tests.real.podgc.cluster import until_left

POLICY = """\
apiVersion: podlife.dev/v1
kind: PodGCPolicy
rules:
  - name: failed
    select: {{namespaces: [{namespace}], phase: [Failed]}}
    ttlAfterFinished: 0s
guards:
  shareOfNamespace: 50%
  shareAtLeast: 2
"""


@pytest.fixture
def flags(gc_kube: Server, states: States, tmp_path: Path) -> list[str]:
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY.format(namespace=states.namespace))
    return ["--policy", str(path), "--kubeconfig", str(gc_kube.kubeconfig)]


async def type_in(server: Server, command: str) -> None:
    """A command of kubectl's, as it was told to a person."""
    name, *arguments = shlex.split(command)
    assert name == "kubectl"
    done = await asyncio.to_thread(run_kubectl, *arguments, kubeconfig=server.kubeconfig)
    assert done.returncode == 0, done.stderr


async def fail(states: States, count: int) -> set[str]:
    await states.pod("alive")
    for number in range(count):
        await states.pod(f"failed-{number}", phase="Failed")
    return await states.names()


async def test_a_running_collector_stops_at_a_mass_and_goes_on_when_the_told_command_is_typed(
    gc_kube: Server, client: Client, states: States, flags: list[str]
) -> None:
    everybody = await fail(states, 4)
    async with started("gc", "run", "--no-leader-elect", "--period", "1h", *flags) as run:
        await run.wait_for("a mass failure takes none")

        async def stops() -> list[str]:
            page = await client.list(EVENTS, states.namespace)
            return [event["message"] for event in page.items if event["reason"] == "PodGCStopped"]

        async def is_told() -> bool:
            return bool(await stops())

        await until(is_told)
        assert await states.names() == everybody
        [message] = await stops()
        await type_in(gc_kube, message.partition("If that is right: ")[2])

        await until_left(states, {"alive"})
        result = await run.end()
    assert result.code == 0, result.err


async def test_a_stop_on_the_namespace_holds_all_until_the_command_of_the_plan_is_typed(
    gc_kube: Server, states: States, flags: list[str]
) -> None:
    everybody = await fail(states, 2)
    await type_in(gc_kube, f"kubectl annotate namespace {states.namespace} podlife.dev/gc-stop=incident")
    async with started("gc", "run", "--no-leader-elect", "--period", "1h", *flags) as run:
        await run.wait_for("podlife.dev/gc-stop: incident")
        plan = json.loads((await podlife("gc", "plan", "-o", "json", *flags)).out)
        [held] = plan["heldBack"]
        assert (held["guard"], held["count"], plan["victims"]) == ("gc-stop", 2, [])
        assert await states.names() == everybody
        await type_in(gc_kube, held["liftedBy"])

        await until_left(states, {"alive"})
        result = await run.end()
    assert result.code == 0, result.err

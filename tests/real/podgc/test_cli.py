"""`podlife gc plan`, `sweep` and `run` as processes against kube-apiserver, with pods in real states."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from podlife.client import EVENTS, LEASES, Client
from tests.component.cli.commands import podlife, started
from tests.kit.gc_states import States
from tests.kit.real_parts import Server, part
from tests.real.podgc.cluster import until_left

ELECTION = [
    "--leader-elect-lease-duration=30s",
    "--leader-elect-renew-deadline=20s",
    "--leader-elect-retry-period=300ms",
]


async def everything(states: States) -> None:
    await states.terminated("done-0", "done-1", "done-2")
    await states.pod("evicted", phase="Failed", reason="Evicted")
    await states.orphaned("orphan")
    await states.out_of_service("stuck")
    await states.unscheduled("never")
    await states.pod("alive")


async def test_a_plan_shows_each_reason_and_a_sweep_does_what_it_shows(
    states: States, admin: list[str]
) -> None:
    await everything(states)
    flags = ["--terminated-pod-gc-threshold", "2", "--quarantine", "1s", *admin]
    planned = await podlife("gc", "plan", "-o", "json", *flags)
    plan = json.loads(planned.out)
    assert [(pod["name"], pod["reason"]) for pod in plan["victims"]] == [
        ("evicted", "terminated"),
        ("done-0", "terminated"),
        ("stuck", "out-of-service"),
        ("never", "unscheduled"),
    ]
    assert [pod["name"] for pod in plan["later"][0]["pods"]] == ["orphan"]

    swept = await podlife("gc", "sweep", "--yes", *flags)
    assert (swept.code, swept.err) == (0, "")
    assert swept.out.startswith("4 pods deleted (2 terminated, 1 out-of-service, 1 orphaned)")
    assert await states.names() == {"done-1", "done-2", "never", "alive"}
    assert (await states.get("never"))["status"]["phase"] == "Failed"

    again = await podlife("gc", "sweep", "--yes", *flags)
    assert (again.code, again.out.startswith("Nothing to collect in any namespace.")) == (0, True)


async def test_a_running_collector_collects_tells_and_gives_its_lease_back(
    states: States, client: Client, admin: list[str]
) -> None:
    flags = ["--terminated-pod-gc-threshold", "2", "--quarantine", "1s", "--period", "1s", *ELECTION, *admin]
    async with started("gc", "run", *flags) as run:
        await run.wait_for("became leader of lease kube-system/podlife-gc")
        await everything(states)

        await until_left(states, {"done-1", "done-2", "never", "alive"})
        result = await run.end()
    assert result.code == 0, result.err
    assert not [line for line in result.err.splitlines() if '"level": "error"' in line]
    messages = [event["message"] for event in (await client.list_all(EVENTS, states.namespace)).items]
    gone = f"podlife-gc deleted pod orphan (orphaned): node {states.node_name('gone')} no longer exists"
    assert gone in messages
    lease = await client.get(LEASES, "podlife-gc", "kube-system")
    assert not lease["spec"].get("holderIdentity")


def test_it_is_a_plug_in_of_kubectls(gc_kube: Server) -> None:
    programs = Path(sys.executable).parent
    assert (programs / "kubectl-podlife").exists()
    result = subprocess.run(
        [str(part("kubectl")), "podlife", "gc", "plan", "--kubeconfig", str(gc_kube.kubeconfig)],
        capture_output=True,
        text=True,
        timeout=180,
        env=os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"},
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert "collect" in result.stdout

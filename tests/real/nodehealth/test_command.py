"""`podlife controllers run --controllers=nodehealth` with the rights of `deploy/controllers`, on a kube-apiserver with
RBAC; and kubectl shows what people expect to see."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from podlife.clock import SystemClock
from tests.component.cli.commands import started
from tests.component.nodehealth.world import NOT_READY, UNREACHABLE, is_terminating, tolerates
from tests.kit.real_parts import ROOT, Server, kube_apiserver, run_kubectl
from tests.nodehealth.stage import staging
from tests.real.conftest import Kubectl, require
from tests.real.workloads.test_controllers_command import ACCOUNT, ELECTION, MANIFESTS, flags_of, token_of
from tests.workloads.runs import connect

TIMES = [
    "--node-monitor-period=500ms",
    "--node-monitor-grace-period=8s",
    "--node-startup-grace-period=8s",
    "--node-eviction-rate=10",
]


@pytest.fixture(scope="module")
def installed(parts_folder: Path) -> Iterator[Server]:
    require("etcd", "kube-apiserver", "kubectl")
    with kube_apiserver(parts_folder / "nodehealth-command") as server:
        result = run_kubectl("apply", "-k", str(MANIFESTS), kubeconfig=server.kubeconfig)
        assert result.returncode == 0, result.stderr
        yield server


def page_lines() -> list[str]:
    """What docs/node-health.md tells people to look at."""
    page = (ROOT / "docs" / "node-health.md").read_text()
    return re.findall(r"^kubectl .*$", page, re.MULTILINE)


async def test_a_node_dies_and_comes_back_with_these_rights_and_no_others(
    installed: Server, kubectl: Kubectl
) -> None:
    def shown(*arguments: str) -> str:
        result = kubectl(*arguments, kubeconfig=installed.kubeconfig)
        assert result.returncode == 0, result.stderr
        return result.stdout

    async with connect(installed.kubeconfig) as client:
        account = flags_of(installed, await token_of(client, ACCOUNT))
        run_flags = ["--controllers=nodehealth", *TIMES, *ELECTION, *account]
        async with (
            started("controllers", "run", *run_flags) as run,
            staging(client, SystemClock()) as make,
            make("").beating() as stage,
        ):
            await run.wait_for("running: ")
            for name in ("n1", "n2"):
                await stage.add_node(name)
            await stage.until_taints("n1")
            for name, seconds in (("web", 1), ("db", 3600)):
                bears = [tolerates(key, seconds) for key in (NOT_READY, UNREACHABLE)]
                await stage.add_pod(name, "n1", tolerations=bears)
            await asyncio.sleep(1)
            await stage.stop("n1")
            await stage.until_going("web")
            nodes = await asyncio.to_thread(shown, "get", "nodes", "--no-headers")
            assert [line.split()[:2] for line in nodes.splitlines()] == [["n1", "NotReady"], ["n2", "Ready"]]
            pods = await asyncio.to_thread(shown, "get", "pods", "--no-headers")
            assert [line.split()[2] for line in pods.splitlines()] == ["Running", "Terminating"]
            assert "Taints:             node.kubernetes.io/unreachable:NoExecute" in await asyncio.to_thread(
                shown, "describe", "node", "n1"
            )
            for line in page_lines():
                assert await asyncio.to_thread(shown, *shlex.split(line)[1:]), line
            stage.start("n1")
            await stage.post("n1")
            await stage.until_taints("n1")
            result = await run.end()
    assert result.code == 0, result.err
    assert "forbidden" not in result.err
    assert not is_terminating(stage.last("Pod", "db"))

"""docs/clean-up-a-managed-cluster.md, typed in order on a kube-apiserver with RBAC, as far as a cluster without nodes
goes: what the Deployment would run is run here, as the service account that it has.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from podlife.client import NAMESPACES, NODES, PODS, Client
from tests.component.cli.commands import started
from tests.kit.a_day_later import a_day_later, environment_of
from tests.kit.real_parts import ROOT, Server, part
from tests.kit.wait import until
from tests.real.podgc.cluster import connect

PAGE = (ROOT / "docs" / "clean-up-a-managed-cluster.md").read_text(encoding="utf-8")
ACCOUNT = "system:serviceaccount:podlife-system:podlife-gc"


def blocks() -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    return [text for name, text in found if not name]


class Shell:
    """Somebody in a folder of their own with what the repository has in `deploy` and `examples`."""

    def __init__(self, home: Path, server: Server) -> None:
        self.home = home
        for folder in ("deploy", "examples"):
            shutil.copytree(ROOT / folder, home / folder)
        shutil.copy(home / "examples" / "policies" / "managed-cluster.yaml", home / "policy.yaml")
        programs = f"{Path(sys.executable).parent}{os.pathsep}{part('kubectl').parent}"
        path = f"{programs}{os.pathsep}{os.environ['PATH']}"
        self.environment = os.environ | {
            "PATH": path,
            "KUBECONFIG": str(server.kubeconfig),
            "HOME": str(home),
        }
        (clock := home / "clock").mkdir()
        self.clock = environment_of(clock)
        self.environment |= self.clock

    def type(self, lines: str) -> str:
        result = subprocess.run(
            ["bash", "-euc", lines],
            capture_output=True,
            text=True,
            timeout=120,
            env=self.environment,
            cwd=self.home,
        )
        assert result.returncode == 0, f"{lines}\n{result.stdout}\n{result.stderr}"
        return result.stdout


@pytest.fixture
async def client(gc_kube: Server) -> AsyncIterator[Client]:
    async with connect(gc_kube) as connected:
        await connected.create(NAMESPACES, {"metadata": {"name": "shop"}})
        await connected.create(NODES, {"metadata": {"name": "n1"}})
        yield connected


@pytest.fixture
def shell(tmp_path: Path, gc_kube: Server) -> Shell:
    return Shell(tmp_path, gc_kube)


async def ended(client: Client, *names: str, namespace: str = "shop", reason: str = "Evicted") -> None:
    """Pods that were evicted an hour before what is typed."""
    moment = (a_day_later() - timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    end = {"terminated": {"exitCode": 137, "finishedAt": moment}}
    status = {"name": "c", "image": "i", "imageID": "", "ready": False, "restartCount": 0, "state": end}
    containers = {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}
    for name in names:
        await client.create(PODS, {"metadata": {"name": name}, "spec": containers}, namespace)
        patch = {"status": {"phase": "Failed", "reason": reason, "containerStatuses": [status]}}
        await client.patch(PODS, name, patch, namespace, subresource="status")


async def pods(client: Client, namespace: str = "shop") -> list[str]:
    listed = await client.list_all(PODS, namespace)
    return sorted(pod["metadata"]["name"] for pod in listed.items)


async def test_the_page_from_top_to_bottom(client: Client, shell: Shell) -> None:
    look, say, label, keep, sweep, install, change, stop = blocks()
    await ended(client, *(f"web-{number}" for number in range(4)))
    await ended(client, "dns", namespace="kube-system")
    assert shell.type(look).count("web-") == 4
    shown = shell.type(say)
    assert "policy.yaml: valid: 3 rules; observe-only" in shown
    assert len(re.findall(r"^shop +web-\d +evicted +expired", shown, re.MULTILINE)) == 4
    assert "dns" not in shown
    shown = shell.type(label)
    assert re.findall(r"web-\d", shown.partition("NAMESPACE")[2]) == ["web-1", "web-2", "web-3"]
    shell.type(keep)
    shell.type("podlife gc sweep --policy policy.yaml --yes || true")
    assert await pods(client) == ["web-0", "web-1", "web-2", "web-3"], "it only observes"
    swept = shell.type(sweep)
    assert "2 pods deleted" in swept
    assert "Nothing to collect now" in swept
    assert await pods(client) == ["web-0", "web-1"]
    assert await pods(client, "kube-system") == ["dns"]
    await _mess(client, shell)
    shell.type(install)
    shell.type(change)
    await _runs_as_the_account(client, shell)
    halt, go, halt_shop = stop.splitlines()
    await ended(client, "late")
    for line, is_stopped in ((halt, True), (go, False), (halt_shop, True)):
        shell.type(line)
        shell.type("podlife gc sweep --policy policy.yaml --yes || true")
        assert ("late" in await pods(client)) is is_stopped
        await ended(client, *(() if is_stopped else ("late",)))


async def _mess(client: Client, shell: Shell) -> None:
    """Nearly all of a namespace goes only when a person has said so."""
    (look,) = re.findall(r"`(podlife gc sweep [^`]*--force --dry-run)`", PAGE)
    await ended(client, *(f"mess-{number}" for number in range(15)))
    shell.type("podlife gc sweep --policy policy.yaml --yes || true")
    assert len(await pods(client)) == 17
    assert "15 pods to collect now" in shell.type(look)
    shell.type(f"{look.removesuffix(' --dry-run')} --yes")
    assert await pods(client) == ["web-0", "web-1"]


async def _runs_as_the_account(client: Client, shell: Shell) -> None:
    """What the pods of the Deployment run, with the rights that they have."""
    args = shell.type(
        "kubectl get deployment podlife-gc -n podlife-system -o jsonpath='{.spec.template.spec.containers[0].args[*]}'"
    ).split()
    assert "--policy=/etc/podlife/policy.yaml" in args
    flags = [f"--policy={shell.home}/policy.yaml" if "--policy" in each else each for each in args]
    flags = [each for each in flags if "--listen" not in each]
    await ended(client, "soon")
    kubeconfig = shell.environment["KUBECONFIG"]
    more = ("--as", ACCOUNT, "--kubeconfig", kubeconfig, "--leader-elect-resource-namespace=podlife-system")
    async with started(*flags, *more, **shell.clock) as collector:

        async def is_gone() -> bool:
            return "soon" not in await pods(client)

        await until(is_gone)
        result = await collector.end()
    assert result.code == 0, result.err
    assert "forbidden" not in result.err

"""docs/out-of-service.md on a kube-apiserver: what it tells people to save and to type, typed in order while a node
dies and comes back, does what it says; as the ServiceAccount of the manifests, and with no other rights."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from podlife.client import LEASES, NODES, PODS, Client, Ref
from podlife.clock import SystemClock
from podlife.errors import NotFoundError
from podlife.nodehealth.out_of_service.views import ANNOTATION
from tests.component.cli.commands import started
from tests.component.explain.test_pages import blocks
from tests.component.nodehealth.world import taints
from tests.kit.real_parts import ROOT, Server
from tests.kit.wait import until
from tests.nodehealth.stage import staging
from tests.real.conftest import Kubectl
from tests.real.nodehealth.test_command import TIMES
from tests.real.workloads.test_controllers_command import ACCOUNT, ELECTION, flags_of, token_of

PAGE = (ROOT / "docs" / "out-of-service.md").read_text(encoding="utf-8")
ATTACHMENTS = Ref("storage.k8s.io", "v1", "volumeattachments", namespaced=False, kind="VolumeAttachment")
TAINT = "out-of-service:NoExecute"
# Shorter than the page's, and for a cluster of three.
SHORT = [
    "--out-of-service-after=2s",
    "--out-of-service-cool-down=3s",
    "--out-of-service-min-healthy=1",
    "--fence-every=1s",
]


def typed() -> list[list[str]]:
    """Every command, in order."""
    return [shlex.split(line) for block in blocks(PAGE) for line in block.splitlines()]


def attachment(node: str) -> dict[str, Any]:
    spec = {"attacher": "test.podlife.io", "nodeName": node, "source": {"persistentVolumeName": "pv"}}
    return {"metadata": {"name": f"of-{node}"}, "spec": spec}


def is_out(client: Client, name: str, wanted: bool) -> Callable[[], Awaitable[bool]]:
    async def holds() -> bool:
        return (TAINT in taints(await client.get(NODES, name))) == wanted

    return holds


def has_state(client: Client, name: str, state: str | None) -> Callable[[], Awaitable[bool]]:
    async def holds() -> bool:
        annotations = (await client.get(NODES, name))["metadata"].get("annotations") or {}
        found = annotations.get(ANNOTATION)
        return (json.loads(found)["state"] if found else None) == state

    return holds


async def test_a_node_dies_and_comes_back_as_the_page_says(
    installed: Server, client: Client, kubectl: Kubectl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chmod, dry_run, told, refused, run_it, describe, set_it, take_it_off = typed()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "is-off").write_text(blocks(PAGE, "sh")[0])
    (tmp_path / "power").mkdir()
    power = tmp_path / "power" / "n1"
    power.write_text("on\n")
    assert (await (await asyncio.create_subprocess_exec(*chmod)).wait()) == 0

    async def shown(words: list[str]) -> str:
        assert words[0] == "kubectl"
        result = await asyncio.to_thread(kubectl, *words[1:], kubeconfig=installed.kubeconfig)
        assert result.returncode == 0, result.stderr
        return str(result.stdout)

    account = flags_of(installed, await token_of(client, ACCOUNT))
    rest = ["--controllers=nodehealth,podgc", *TIMES, *ELECTION, *account]
    ours = [*SHORT, "--leader-elect=false", *account]
    async with (
        started("controllers", "run", *rest) as others,
        staging(client, SystemClock()) as make,
        make("").beating() as stage,
    ):
        await others.wait_for("running: ")
        for name in ("n1", "n2", "n3"):
            await stage.add_node(name)
        # Its agent speaks every second.
        await client.patch(LEASES, "n1", {"spec": {"leaseDurationSeconds": 2}}, "kube-node-lease")
        await stage.add_pod("web", "n1")
        await client.create(ATTACHMENTS, attachment("n1"))
        await stage.stop("n1")
        async with started(*dry_run[1:], *ours) as run:
            await run.wait_for("0 of 1 fence checks confirm that it is dead")
            power.write_text("off\n")
            await run.wait_for("Dry run: would be set out of service, confirmed dead by command is-off")
            assert (await run.end()).code == 0
        assert await is_out(client, "n1", False)()
        assert "Dry run" in await shown(told)
        assert "exit code 1" in await shown(refused)

        async with started(*run_it[1:], *ours) as run:
            await until(is_out(client, "n1", True))
            assert "OutOfServiceTainted" in await shown(describe)

            async def is_freed() -> bool:
                try:
                    await client.get(PODS, "web", "default")
                except NotFoundError:
                    return True
                return False

            await until(is_freed)
            assert await is_out(client, "n1", True)(), "its volume is still attached"
            await client.delete(ATTACHMENTS, "of-n1")
            await until(is_out(client, "n1", False))
            assert await has_state(client, "n1", "freed")()
            stage.start("n1")
            await stage.post("n1")
            await until(has_state(client, "n1", "returned"))
            await until(has_state(client, "n1", None))
            await shown(set_it)
            await asyncio.sleep(2)
            assert await is_out(client, "n1", True)(), (
                "a person's is left alone, also on a node that is ready"
            )
            await shown(take_it_off)
            result = await run.end()
        await others.end()
    assert result.code == 0, result.err
    assert "forbidden" not in result.err

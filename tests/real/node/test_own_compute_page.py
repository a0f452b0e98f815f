"""The program of `docs/own-compute.md`, as the page shows it, in real clusters: a user reads logs and runs commands."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.own_compute_process import POD, running_page
from tests.kit.real_parts import Server
from tests.real.conftest import Kubectl

SECONDS = 120.0


def kubeconfig_of(server: Server, folder: Path) -> Path:
    kubeconfig = folder / "my-node.kubeconfig"
    if server.pki is not None:
        # In $KUBECONFIG a colon stands between two files.
        made = server.kubeconfig_with_certificate("system:node:my-node", "system:nodes")
        return made.rename(kubeconfig)
    flags = ["--data", str(server.folder / "data"), "--node", "my-node", "-o", str(kubeconfig)]
    subprocess.run([sys.executable, "-m", "podlife", "apiserver", "kubeconfig", *flags], check=True)
    return kubeconfig


@pytest.mark.parametrize("name", ["kube", "podlife_server"])
async def test_kubectl_reads_logs_and_runs_commands_on_own_compute(
    name: str, request: pytest.FixtureRequest, kubectl: Kubectl, tmp_path: Path
) -> None:
    server: Server = request.getfixturevalue(name)

    async def ask(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        return await asyncio.to_thread(kubectl, *arguments, kubeconfig=server.kubeconfig, stdin=stdin)

    async def until_said(text: str, *arguments: str) -> None:
        async with asyncio.timeout(SECONDS):
            while text not in (done := await ask(*arguments)).stdout:
                assert "dial tcp" not in done.stderr, done.stderr
                await asyncio.sleep(0.1)

    with running_page(tmp_path, kubeconfig_of(server, tmp_path)):
        try:
            await ask("apply", "-f", "-", stdin=POD)
            await until_said("hello node\n", "logs", "hello")
            await until_said("done\n", "exec", "hello", "--", "echo", "done")
            ended = await ask("delete", "pod", "hello", "--timeout=120s")
            assert ended.returncode == 0, ended.stderr
        finally:
            await ask("delete", "pod", "hello", "--ignore-not-found", "--grace-period=0", "--force")
            await ask("delete", "node", "my-node", "--ignore-not-found")

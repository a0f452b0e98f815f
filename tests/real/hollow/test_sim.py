"""`podlife sim` on a kube-apiserver, with the rights that docs/sim.md names and no others."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.real_parts import ROOT, Server, Settings
from tests.kit.wait import until_blocking
from tests.real.conftest import Kubectl

SECONDS = 180.0


def rights() -> str:
    """The ClusterRole of the page, and a user who has it."""
    page = (ROOT / "docs" / "sim.md").read_text()
    [role] = [
        each for each in re.findall(r"^```yaml\n(.*?)^```$", page, re.DOTALL | re.M) if "ClusterRole" in each
    ]
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "sim"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "podlife-sim"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "simulator"}],
    }
    return f"{role}\n---\n{json.dumps(binding)}"


@pytest.fixture
def server(start_kube: Callable[[Settings], Server], kubectl: Kubectl) -> Server:
    """One of its own: its nodes are nobody else's."""
    started = start_kube(Settings())
    done = kubectl("apply", "-f", "-", kubeconfig=started.kubeconfig, stdin=rights())
    assert done.returncode == 0, done.stderr
    return started


def test_nodes_are_ready_pods_run_and_are_deleted_and_nothing_is_left(
    server: Server, kubectl: Kubectl, tmp_path: Path
) -> None:
    def shown(*arguments: str) -> str:
        done = kubectl(*arguments, kubeconfig=server.kubeconfig)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def running() -> int:
        return shown("get", "pods", "--no-headers").count("Running")

    def all_run() -> bool:
        assert process.poll() is None, (tmp_path / "log").read_text()
        return running() == 100

    kubeconfig = server.kubeconfig_with_certificate("simulator")
    command = [sys.executable, "-m", "podlife", "sim", "--nodes=5", "--pods=100", "--events"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--kubeconfig", str(kubeconfig)], stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        until_blocking(all_run)
        nodes = shown("get", "nodes", "--no-headers").splitlines()
        assert [line.split()[1] for line in nodes] == ["Ready"] * 5
        names = shown("get", "pods", "-o", "name").split()
        shown("delete", *names[:10])
        assert running() == 90
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 0, (tmp_path / "log").read_text()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    said = (tmp_path / "log").read_text()
    assert "100 pods started" in said
    assert "cleanup incomplete" not in said
    assert shown("get", "pods,nodes", "-o", "name") == ""
    assert shown("get", "leases", "-n", "kube-node-lease", "-o", "name") == ""
    assert "Started" in shown("get", "events", "-o", "custom-columns=REASON:.reason")

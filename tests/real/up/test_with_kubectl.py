"""`podlife up` with the real kubectl: the README's first minutes as they stand, and a node that falls silent."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.component.test_readme import Reader, try_the_other_terminal
from tests.kit.real_parts import part
from tests.kit.up_process import UpProcess, podlife, running_up
from tests.kit.wait import until_blocking
from tests.real.conftest import Kubectl

# What takes minutes in a cluster, in seconds.
QUICK = (
    "--node-lease-duration-seconds=4",
    "--node-monitor-period=1s",
    "--node-monitor-grace-period=10s",
    "--default-unreachable-toleration-seconds=1",
    "--default-not-ready-toleration-seconds=1",
)
SLEEPER = ("--image=demo", "--", "sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.1; done")


def reading(kubectl: Kubectl, up: UpProcess) -> Callable[..., Any]:
    def read(*arguments: str) -> Any:
        done = kubectl(*arguments, "-o", "json", kubeconfig=up.kubeconfig)
        return json.loads(done.stdout) if done.returncode == 0 else {"items": []}

    return read


def nodes_of(pods: Any) -> list[str]:
    """Where pods run that are not about to go."""
    return [
        each["spec"]["nodeName"]
        for each in pods["items"]
        if each["status"].get("phase") == "Running" and "deletionTimestamp" not in each["metadata"]
    ]


def test_the_first_minutes_of_the_readme_are_true(kubectl: Kubectl, tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    reader.environment["PATH"] = f"{part('kubectl').parent}{os.pathsep}{reader.environment['PATH']}"
    try_the_other_terminal(reader)


def test_a_drain_goes_on_as_fast_as_a_budget_allows(kubectl: Kubectl, tmp_path: Path) -> None:
    with running_up(tmp_path, "--nodes", "2") as up:
        read = reading(kubectl, up)
        kubectl("create", "deployment", "web", "--replicas=2", *SLEEPER, kubeconfig=up.kubeconfig)
        until_blocking(lambda: len(nodes_of(read("get", "pods"))) == 2, up.logs())
        budget = ("create", "poddisruptionbudget", "web", "--selector=app=web", "--min-available=2")
        kubectl(*budget, kubeconfig=up.kubeconfig)
        until_blocking(
            lambda: (read("get", "pdb", "web").get("status") or {}).get("currentHealthy") == 2, up.logs()
        )
        held = kubectl("drain", "node-0", "--timeout=2s", kubeconfig=up.kubeconfig)
        assert held.returncode != 0
        assert "would violate the pod's disruption budget" in held.stderr
        kubectl("patch", "pdb", "web", "-p", '{"spec":{"minAvailable":1}}', kubeconfig=up.kubeconfig)
        drained = kubectl("drain", "node-0", "--timeout=120s", kubeconfig=up.kubeconfig)
        assert drained.returncode == 0, drained.stderr
        until_blocking(lambda: nodes_of(read("get", "pods")) == ["node-1", "node-1"], up.logs())


def test_pods_of_a_node_that_falls_silent_are_replaced_and_cleaned_up_when_it_returns(
    kubectl: Kubectl, tmp_path: Path
) -> None:
    with running_up(tmp_path, "--nodes", "2", *QUICK) as up:
        read = reading(kubectl, up)
        kubectl("create", "deployment", "web", "--replicas=2", *SLEEPER, kubeconfig=up.kubeconfig)
        until_blocking(lambda: len(nodes_of(read("get", "pods"))) == 2, up.logs())
        assert set(nodes_of(read("get", "pods"))) == {"node-0", "node-1"}
        assert podlife("down", "node-1", "--data", str(up.data)).returncode == 0
        until_blocking(lambda: nodes_of(read("get", "pods")) == ["node-0", "node-0"], up.logs())
        # Nobody but its node may say that the old one has ended.
        [left] = [each for each in read("get", "pods")["items"] if "deletionTimestamp" in each["metadata"]]
        assert left["spec"]["nodeName"] == "node-1"
        told = podlife("status", "--data", str(up.data)).stdout
        assert "its node node-1 does not respond" in told
        assert podlife("up", "node-1", "--data", str(up.data)).returncode == 0
        until_blocking(lambda: len(read("get", "pods")["items"]) == 2, up.logs())

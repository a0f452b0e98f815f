"""`podlife up` with containers: two nodes on one containerd, each with its own pods."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.kit.up_process import UpProcess, running_up
from tests.kit.wait import until_blocking
from tests.real.conftest import Kubectl
from tests.real.containerd.conftest import require_containerd
from tests.real.containerd.daemon import IMAGE, containerd_daemon


def pods_of(kubectl: Kubectl, up: UpProcess) -> list[Any]:
    done = kubectl("get", "pods", "-o", "json", kubeconfig=up.kubeconfig)
    items: list[Any] = json.loads(done.stdout)["items"] if done.returncode == 0 else []
    return items


def is_running(pod: Any, restarts: int) -> bool:
    [container] = pod["status"].get("containerStatuses") or [{"restartCount": -1, "state": {}}]
    return "running" in container["state"] and container["restartCount"] == restarts


def test_containers_of_two_nodes_run_are_stopped_and_run_again(kubectl: Kubectl, tmp_path: Path) -> None:
    require_containerd()
    flags = ("--runtime", "containerd", "--nodes", "2", "--containerd-socket")
    with containerd_daemon() as daemon, running_up(tmp_path, *flags, str(daemon.socket)) as up:
        script = "trap 'exit 0' TERM; echo begin; while :; do sleep 0.1; done"
        command = ("--replicas=2", f"--image={IMAGE}", "--", "sh", "-c", script)
        kubectl("create", "deployment", "web", *command, kubeconfig=up.kubeconfig)
        until_blocking(lambda: sum(is_running(each, 0) for each in pods_of(kubectl, up)) == 2, up.logs())
        before = pods_of(kubectl, up)
        assert {each["spec"]["nodeName"] for each in before} == {"node-0", "node-1"}
        name = before[0]["metadata"]["name"]
        # It runs before it has said a word.
        until_blocking(lambda: kubectl("logs", name, kubeconfig=up.kubeconfig).stdout == "begin\n", up.logs())
        assert kubectl("exec", name, "--", "hostname", kubeconfig=up.kubeconfig).stdout == f"{name}\n"
        assert up.stop() == 0
        up.start()
        until_blocking(lambda: sum(is_running(each, 1) for each in pods_of(kubectl, up)) == 2, up.logs())
        after = pods_of(kubectl, up)
        assert {each["metadata"]["uid"] for each in after} == {each["metadata"]["uid"] for each in before}

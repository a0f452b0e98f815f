"""Who deleted my pod: on a real cluster from the audit file of kube-apiserver, on podlife's own without a flag."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from podlife.apiserver.audit import DEFAULT_POLICY
from tests.kit.real_parts import Server, Settings
from tests.kit.up_process import podlife, running_up
from tests.kit.wait import until_blocking
from tests.real.conftest import Kubectl, StartControllerManager

CONTROLLERS = ("deployment-controller", "replicaset-controller", "garbage-collector-controller")
SLEEP = ("--image=demo", "--", "sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1; done")


class Cluster:
    def __init__(self, kubectl: Kubectl, kubeconfig: Path, *flags: str) -> None:
        self._kubectl = kubectl
        self._kubeconfig = kubeconfig
        self._flags = flags

    def kubectl(self, *arguments: str) -> str:
        done = self._kubectl(*arguments, kubeconfig=self._kubeconfig)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def pods(self, app: str) -> list[str]:
        names = self.kubectl("get", "pods", "-l", f"app={app}", "-o", "jsonpath={.items[*].metadata.name}")
        return names.split()

    def deployment(self, name: str, replicas: int) -> list[str]:
        """Its pods."""
        self.kubectl("create", "deployment", name, f"--replicas={replicas}", *SLEEP)
        until_blocking(lambda: len(self.pods(name)) == replicas, f"{replicas} pods of {name}")
        return self.pods(name)

    def deletion(self, pod: str) -> str:
        """What explain says, once the pod is gone and the log tells of it."""
        found: dict[str, str] = {}

        def is_told() -> bool:
            flags = ["--kubeconfig", str(self._kubeconfig), *self._flags]
            done = podlife("explain", "pod", pod, "-o", "json", *flags)
            assert done.returncode in (0, 1), done.stderr
            found.update(json.loads(done.stdout))
            return found["stage"] == "gone" and " by " in found["deletion"]

        until_blocking(is_told, f"who deleted {pod}")
        return found["deletion"]


def check_who_deleted(cluster: Cluster) -> None:
    [lost] = cluster.deployment("owned", 1)
    cluster.kubectl("delete", "deployment", "owned")
    said = cluster.deletion(lost)
    assert "by the garbage collector: its Deployment owned was deleted at" in said
    assert "by admin (system:masters), kubectl/v" in said
    assert said.endswith("from 127.0.0.1")
    [kept, other] = cluster.deployment("scaled", 2)
    cluster.kubectl("scale", "deployment", "scaled", "--replicas=1")
    until_blocking(lambda: len(cluster.pods("scaled")) == 1, "one pod")
    [left] = cluster.pods("scaled")
    said = cluster.deletion(kept if left == other else other)
    assert "after patch of deployments/scaled/scale at" in said
    assert "by admin (system:masters), kubectl/v" in said
    cluster.kubectl("delete", "pod", left)
    assert cluster.deletion(left).endswith("from 127.0.0.1: delete")


def test_on_a_real_cluster_the_audit_file_tells(
    start_kube: Callable[[Settings], Server],
    start_controller_manager: StartControllerManager,
    kubectl: Kubectl,
    tmp_path: Path,
) -> None:
    policy, log = tmp_path / "policy.yaml", tmp_path / "audit.log"
    policy.write_text(DEFAULT_POLICY)
    server = start_kube(Settings(flags=(f"--audit-policy-file={policy}", f"--audit-log-path={log}")))
    # As in a cluster made by kubeadm, where the manager has a user of its own.
    manager = server.kubeconfig_with_certificate("system:kube-controller-manager", "system:masters")
    start_controller_manager(CONTROLLERS, server, f"--kubeconfig={manager}")
    cluster = Cluster(kubectl, server.kubeconfig, "--audit-log", str(log))
    check_who_deleted(cluster)
    cluster.kubectl("run", "evicted", "--image=demo")
    eviction = tmp_path / "eviction.json"
    eviction.write_text(
        json.dumps({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "evicted"}})
    )
    path = "/api/v1/namespaces/default/pods/evicted/eviction"
    cluster.kubectl("create", "--raw", path, "-f", str(eviction))
    assert ": eviction, as kubectl drain does" in cluster.deletion("evicted")


@pytest.mark.parametrize("runtime", ["process", "sim"])
def test_on_podlife_up_its_own_log_is_found(kubectl: Kubectl, tmp_path: Path, runtime: str) -> None:
    with running_up(tmp_path / "up", "--nodes", "1", "--runtime", runtime) as up:
        cluster = Cluster(kubectl, up.kubeconfig)
        check_who_deleted(cluster)
        [drained] = cluster.deployment("drained", 1)
        until_blocking(lambda: "Running" in cluster.kubectl("get", "pod", drained), f"{drained} runs")
        cluster.kubectl("drain", "node-0", "--ignore-daemonsets")
        said = cluster.deletion(drained)
        assert "by admin (system:masters), kubectl/v" in said
        assert ": eviction, as kubectl drain does" in said

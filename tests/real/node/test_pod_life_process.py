"""The agent with plain processes as a node of a real kube-apiserver: a pod's whole life as kubectl shows it, and
kube-controller-manager's own ReplicaSets on it."""

from __future__ import annotations

import json
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kit.agent_process import AgentProcess
from tests.kit.real_parts import Server, part
from tests.kit.wait import until_blocking
from tests.real.conftest import Kubectl, StartControllerManager, require

Object = dict[str, Any]
NODE = "node-a"


class User:
    """Somebody with kubectl and a namespace of their own."""

    def __init__(self, kubectl: Kubectl, server: Server) -> None:
        self._kubectl = kubectl
        self.kubeconfig = server.kubeconfig
        self.namespace = f"life-{uuid.uuid4().hex[:8]}"

    def run(self, *arguments: str, stdin: str | None = None) -> str:
        done = self._kubectl("-n", self.namespace, *arguments, kubeconfig=self.kubeconfig, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def create(self, *objects: Object) -> None:
        self.run("create", "-f", "-", stdin=yaml.safe_dump_all(objects))

    def get(self, *what: str) -> Object:
        found: Object = json.loads(self.run("get", *what, "-o", "json"))
        return found

    def until_told(self, *reasons: str) -> None:
        """Events are sent behind everything else."""

        def are_told() -> bool:
            return set(reasons) <= {each["reason"] for each in self.get("events")["items"]}

        until_blocking(are_told, f"not all of {reasons} were told")


@pytest.fixture
def user(kube: Server, kubectl: Kubectl) -> Iterator[User]:
    one = User(kubectl, kube)
    one.run("create", "namespace", one.namespace)
    yield one
    one.run("delete", "namespace", one.namespace, "--wait=false")


@pytest.fixture
def agent(kube: Server, user: User, tmp_path: Path) -> Iterator[AgentProcess]:
    one = AgentProcess(tmp_path, kube.kubeconfig_for(NODE), name=NODE)
    one.start()
    try:
        yield one
    finally:
        user.run("delete", "pods,replicasets", "--all", "--timeout=120s")
        one.stop()
        user.run("delete", "node", NODE)


def pod(name: str, *containers: Object, **spec: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "nodeName": NODE,
            "terminationGracePeriodSeconds": 5,
            "containers": list(containers),
            **spec,
        },
    }


def container(name: str, script: str, **fields: Any) -> Object:
    return {"name": name, "image": "none:1", "command": ["sh", "-c", script], **fields}


def test_the_whole_life_of_a_pod_as_kubectl_shows_it(user: User, agent: AgentProcess, tmp_path: Path) -> None:
    require("kubectl")
    settings = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "settings"},
        "data": {"greeting": "hello"},
    }
    ready = {"exec": {"command": ["test", "-e", str(tmp_path / "ready")]}, "periodSeconds": 1}
    script = (
        'echo "$GREETING from $NAME"; trap "echo bye; exit 0" TERM; '
        f"touch {tmp_path}/ready; while :; do sleep 0.1; done"
    )
    main = container(
        "main",
        script,
        env=[
            {"name": "GREETING", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "greeting"}}},
            {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        ],
        readinessProbe=ready,
    )
    columns = "custom-columns=PHASE:.status.phase,DELETED:.metadata.deletionTimestamp"
    watch = [str(part("kubectl")), "--kubeconfig", str(user.kubeconfig), "-n", user.namespace]
    with (tmp_path / "watch").open("wb") as output, (tmp_path / "asked").open("wb") as asked:
        watching = subprocess.Popen(
            [*watch, "get", "pods", "-w", "--no-headers", "-o", columns, "-v=6"], stdout=output, stderr=asked
        )
    try:
        # What it says of its requests: from here on it misses nothing.
        until_blocking(lambda: "watch=true" in (tmp_path / "asked").read_text(), "kubectl does not watch")
        user.create(settings, pod("web", main, initContainers=[container("first", "sleep 0.2")]))
        user.run("wait", "--for=condition=Ready", "pod/web", "--timeout=120s")
        shown = user.get("pod", "web")["status"]
        assert shown["phase"] == "Running"
        assert shown["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
        assert shown["containerStatuses"][0]["containerID"].startswith("process://")
        logs = list((agent.data / "logs" / "pods").glob("*_web_*/main/0.log"))
        assert "hello from web" in logs[0].read_text()
        until_blocking(
            lambda: "Running" in (tmp_path / "watch").read_text(), "kubectl has not seen it running"
        )
        user.run("delete", "pod", "web", "--timeout=120s")
    finally:
        watching.terminate()
        watching.wait(60)
    phases = [line.split()[0] for line in (tmp_path / "watch").read_text().splitlines()]
    assert list(dict.fromkeys(phases)) in (["Pending", "Running", "Succeeded"], ["Pending", "Running"])
    user.until_told("Created", "Started", "Killing")
    until_blocking(lambda: not list((agent.data / "logs" / "pods").iterdir()), "its logs are still there")


def test_pods_that_cannot_run_say_why(user: User, agent: AgentProcess) -> None:
    no_command = {"name": "main", "image": "none:1"}
    no_map = container("main", "true", envFrom=[{"configMapRef": {"name": "nothing"}}])
    too_much = container("main", "true", resources={"requests": {"cpu": "4000"}})
    user.create(
        pod("no-command", no_command),
        pod("no-map", no_map),
        pod("too-much", too_much),
        pod("fails", container("main", "exit 3"), restartPolicy="Never"),
        pod("crashes", container("main", "exit 4")),
    )

    def waiting(name: str) -> str:
        statuses = user.get("pod", name)["status"].get("containerStatuses") or [{"state": {}}]
        return str(statuses[0]["state"].get("waiting", {}).get("reason"))

    def phase(name: str) -> str:
        return str(user.get("pod", name)["status"]["phase"])

    expected = {
        "no-command": "CreateContainerError",
        "no-map": "CreateContainerConfigError",
        "crashes": "CrashLoopBackOff",
    }
    for name, reason in expected.items():
        until_blocking(lambda name=name, reason=reason: waiting(name) == reason, f"{name}: {reason}")
    for name in ("too-much", "fails"):
        until_blocking(lambda name=name: phase(name) == "Failed", f"{name} has not failed")
    assert user.get("pod", "too-much")["status"]["reason"] == "OutOfcpu"
    failed = user.get("pod", "fails")["status"]
    assert failed["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3


def test_a_replica_set_of_kube_controller_manager_runs_on_the_node(
    kube: Server, user: User, agent: AgentProcess, start_controller_manager: StartControllerManager
) -> None:
    start_controller_manager(["replicaset-controller"], kube)
    template = pod("", container("main", "exec sleep 1000"))
    replica_set = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": template["spec"]},
        },
    }
    user.create(replica_set)

    def ready() -> bool:
        return bool(user.get("replicaset", "web")["status"].get("readyReplicas") == 2)

    until_blocking(ready, "two pods are not ready")
    before = {each["metadata"]["uid"] for each in user.get("pods")["items"]}
    user.run("delete", "pod", "-l", "app=web", "--timeout=120s")
    until_blocking(ready, "they were not replaced")
    assert not before & {each["metadata"]["uid"] for each in user.get("pods")["items"]}

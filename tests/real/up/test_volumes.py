"""`podlife up`: a StatefulSet with claims keeps its data when its pods are deleted, as processes and as containers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.kit.up_process import UpProcess, running_up
from tests.kit.wait import until_blocking
from tests.real.conftest import Kubectl
from tests.real.containerd.conftest import require_containerd
from tests.real.containerd.daemon import IMAGE, containerd_daemon

SCRIPT = "echo $HOSTNAME >> /data/starts; trap 'exit 0' TERM; while :; do sleep 0.1; done"
SET: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "serviceName": "web",
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "containers": [
                    {
                        "name": "main",
                        "image": IMAGE,
                        "command": ["sh", "-c", SCRIPT],
                        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                    }
                ]
            },
        },
        "volumeClaimTemplates": [
            {
                "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
            }
        ],
    },
}


@pytest.fixture(params=["process", "containerd"])
def up(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[UpProcess]:
    with ExitStack() as stack:
        flags = ["--runtime", request.param, "--nodes", "2"]
        if request.param == "containerd":
            require_containerd()
            flags += ["--containerd-socket", str(stack.enter_context(containerd_daemon()).socket)]
        yield stack.enter_context(running_up(tmp_path, *flags))


def test_a_stateful_set_keeps_its_data_over_the_deletion_of_its_pods(
    kubectl: Kubectl, up: UpProcess, tmp_path: Path
) -> None:
    def read(*arguments: str) -> Any:
        done = kubectl(*arguments, "-o", "json", kubeconfig=up.kubeconfig)
        return json.loads(done.stdout) if done.returncode == 0 else {}

    def starts(name: str) -> str:
        return kubectl("exec", name, "--", "cat", "/data/starts", kubeconfig=up.kubeconfig).stdout

    def ready() -> int:
        count: int = read("get", "statefulset", "web").get("status", {}).get("readyReplicas", 0)
        return count

    manifest = tmp_path / "set.json"
    manifest.write_text(json.dumps(SET))
    assert kubectl("apply", "-f", str(manifest), kubeconfig=up.kubeconfig).returncode == 0
    until_blocking(lambda: ready() == 2, up.logs())
    until_blocking(lambda: starts("web-0").split() == ["web-0"], up.logs())
    uid = read("get", "pod", "web-0")["metadata"]["uid"]
    kubectl("delete", "pod", "web-0", kubeconfig=up.kubeconfig)
    until_blocking(lambda: read("get", "pod", "web-0").get("metadata", {}).get("uid", uid) != uid, up.logs())
    until_blocking(lambda: starts("web-0").split() == ["web-0", "web-0"], up.logs())
    assert starts("web-1").split() == ["web-1"]
    paths = [Path(each["spec"]["hostPath"]["path"]) for each in read("get", "pv")["items"]]
    assert len(paths) == 2
    assert all((path / "starts").is_file() for path in paths)
    kubectl("delete", "statefulset", "web", kubeconfig=up.kubeconfig)
    kubectl("delete", "pvc", "--all", kubeconfig=up.kubeconfig)
    until_blocking(lambda: read("get", "pv").get("items") == [], up.logs())
    assert not any(path.exists() for path in paths)

"""A kopf operator, run unmodified as a user runs it: handlers, finalizers, annotations, events, status."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.real_parts import Server, tail
from tests.kit.wait import until_blocking
from tests.real.clients import objects
from tests.real.clients.pair import One, kubeconfig_in, manifest

OPERATOR = Path(__file__).parent / "kopf_operator.py"
FINALIZER = "kopf.zalando.org/KopfFinalizerMarker"


@pytest.fixture
def cluster(podlife_server: Server, namespace: str) -> One:
    return One(podlife_server, namespace)


@pytest.fixture
def operator(podlife_server: Server, namespace: str, tmp_path: Path) -> Iterator[Path]:
    """The operator at work in the namespace; gives its log."""
    log = tmp_path / "kopf.log"
    kubeconfig = kubeconfig_in(podlife_server, namespace)
    command = [sys.executable, "-m", "kopf", "run", "--standalone", "--namespace", namespace, str(OPERATOR)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            env={**os.environ, "KUBECONFIG": str(kubeconfig)},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield log
    finally:
        process.terminate()
        process.wait(120)
    assert "Traceback" not in log.read_text(), tail(log)


def operated(thing: dict[str, Any]) -> dict[str, Any]:
    thing["metadata"]["labels"] = {"operated": "yes"}
    return thing


def test_a_configmap_is_noticed_followed_and_let_go(cluster: One, operator: Path) -> None:
    cluster("create", "-f", "-", stdin=manifest(operated(objects.config_map("a", k="old"))))
    cluster.wait_for("configmap/a", r"{.metadata.annotations.example\.com/created}", "yes")
    assert cluster.get("configmap", "a")["metadata"]["finalizers"] == [FINALIZER]
    cluster("patch", "configmap", "a", "-p", '{"data":{"k":"new"}}')
    cluster.wait_for("configmap/a", r"{.metadata.annotations.example\.com/changed}", "old to new")
    # The finalizer holds the object until the operator has seen it go.
    cluster("delete", "configmap", "a", "--timeout=180s")
    assert cluster.is_gone("configmap", "a")
    assert cluster.get("configmap", "a-was-here")
    # kopf sends events beside everything else.
    until_blocking(lambda: noticed(cluster) != [], "no event was sent")
    assert noticed(cluster) == ["a"]


def noticed(cluster: One) -> list[str]:
    events = [item for item in cluster.get("events") if item["reason"] == "Noticed"]
    return [event["involvedObject"]["name"] for event in events]


def test_a_pod_gets_labels_and_status_from_the_operator(cluster: One, operator: Path) -> None:
    cluster("create", "-f", "-", stdin=manifest(operated(objects.pod("p")), objects.pod("other")))
    cluster.wait_for("pod/p", r"{.metadata.annotations.example\.com/phase}", "Running")
    pod = cluster.get("pod", "p")
    assert (pod["metadata"]["labels"]["adopted"], pod["status"]["phase"]) == ("yes", "Running")
    assert "adopted" not in cluster.get("pod", "other")["metadata"]["labels"]

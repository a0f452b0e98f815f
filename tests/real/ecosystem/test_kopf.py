"""A kopf operator of a custom resource, unmodified kopf, with the same outcome on kube-apiserver and on podlife."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from podlife.api.crd import definition_of
from tests.kit.real_parts import ROOT, Server, tail
from tests.kit.wait import until_blocking
from tests.real.clients.pair import Command, One, kubeconfig_in, manifest
from tests.real.conftest import require
from tests.real.ecosystem.kopf_pools import Pool

OPERATOR = Path(__file__).parent / "kopf_pools.py"
NUMBERS = itertools.count(1)
CRD = "pools.kopf.example.com"


@pytest.fixture(params=["kube", "podlife_server"])
def cluster(request: pytest.FixtureRequest) -> Iterator[One]:
    require("kubectl")
    server: Server = request.getfixturevalue(request.param)
    cluster = One(server, f"kopf-{next(NUMBERS)}")
    cluster("create", "namespace", cluster.namespace)
    yield cluster
    # What a failed test leaves is not held by an operator that has ended.
    for left in cluster.run(Command(("get", "pools", "-o", "name"))).out.split():
        cluster("patch", left, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    cluster("delete", "crd", CRD, "--ignore-not-found", "--timeout=120s")
    cluster("delete", "namespace", cluster.namespace, "--wait=false")


@contextmanager
def operator(cluster: One, log: Path) -> Iterator[None]:
    command = [
        sys.executable,
        "-m",
        "kopf",
        "run",
        "--standalone",
        "--namespace",
        cluster.namespace,
        str(OPERATOR),
    ]
    config = kubeconfig_in(cluster.server, cluster.namespace)
    environment = {**os.environ, "KUBECONFIG": str(config), "PYTHONPATH": str(ROOT)}
    with log.open("ab") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)
    try:
        yield
    finally:
        process.terminate()
        process.wait(120)
    assert "Traceback" not in log.read_text(), tail(log)


def pool(name: str, **spec: Any) -> str:
    made = {"apiVersion": "kopf.example.com/v1", "kind": "Pool", "metadata": {"name": name}, "spec": spec}
    return manifest(made)


def until_there(cluster: One, *names: str) -> None:
    for name in names:
        cluster("wait", f"configmap/{name}", "--for=create", "--timeout=180s")


def test_operator_lives_with_its_custom_resource(cluster: One, tmp_path: Path) -> None:
    log = tmp_path / "kopf.log"
    with operator(cluster, log):
        # kopf waits for the resource until its definition is there.
        until_blocking(lambda: "Unresolved resources" in log.read_text(), tail(log))
        cluster("create", "-f", "-", stdin=manifest(definition_of(Pool)))
        cluster("wait", f"crd/{CRD}", "--for=condition=Established", "--timeout=60s")
        cluster("create", "-f", "-", stdin=pool("a"))
        # Retried twice; its result is in the status, and the defaults of the class are in the spec.
        cluster.wait_for("pools/a", "{.status.create.retries}", "2")
        cluster.wait_for("pools/a", "{.status.ticks}", "3")
        until_there(cluster, "a-child", "a-daemon-started")
        stored = cluster.get("pools", "a")
        assert stored["spec"] == {"size": 1, "hold": False}
        assert stored["status"]["create"] == {"size": 1, "retries": 2}
        assert stored["metadata"]["finalizers"] == ["kopf.example.com/finalizer"]
        owner = cluster.get("configmap", "a-child")["metadata"]["ownerReferences"][0]
        assert (owner["kind"], owner["uid"]) == ("Pool", stored["metadata"]["uid"])

        cluster("patch", "pools", "a", "--type=merge", "-p", '{"spec":{"size":3,"hold":true}}')
        cluster.wait_for("pools/a", "{.status.resized}", "1 to 3")
        refused = cluster("patch", "pools", "a", "--type=merge", "-p", '{"spec":{"size":10}}', code=1)
        assert "should be less than or equal to 9" in refused.err
        # The columns of the class: its name and its size.
        assert cluster("get", "kp", "--no-headers").out.split() == ["a", "3"]

        # The finalizer holds it until the operator lets go.
        cluster("delete", "pools", "a", "--wait=false")
        until_there(cluster, "a-daemon-stopped")
        assert cluster.get("pools", "a")["metadata"]["deletionTimestamp"]
        cluster("patch", "pools", "a", "--type=merge", "-p", '{"spec":{"hold":false}}')
        until_there(cluster, "a-deleted")
        until_blocking(lambda: cluster.is_gone("pools", "a"), "the finalizer was not removed")


def test_operator_that_was_away_goes_on(cluster: One, tmp_path: Path) -> None:
    log = tmp_path / "kopf.log"
    cluster("create", "-f", "-", stdin=manifest(definition_of(Pool)))
    cluster("wait", f"crd/{CRD}", "--for=condition=Established", "--timeout=60s")
    cluster("create", "-f", "-", stdin=pool("b", size=2))
    with operator(cluster, log):
        cluster.wait_for("pools/b", "{.status.create.size}", "2")
        cluster.wait_for("pools/b", "{.status.ticks}", "3")
    cluster("patch", "pools", "b", "--type=merge", "-p", '{"spec":{"size":4}}')
    cluster("delete", "configmap", "b-daemon-started", "b-daemon-stopped", "--ignore-not-found")
    with operator(cluster, log):
        cluster.wait_for("pools/b", "{.status.resized}", "2 to 4")
        cluster.wait_for("pools/b", "{.status.resumed}", "1")
        cluster("delete", "pools", "b", "--timeout=180s")
        until_there(cluster, "b-deleted")
    assert cluster.is_gone("pools", "b")

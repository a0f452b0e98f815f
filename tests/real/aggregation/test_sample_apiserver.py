"""Kubernetes' sample API server behind an APIService, as a process: kubectl uses it through podlife's server."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kit.real_parts import Server, podlife_apiserver, run_kubectl, sample_apiserver
from tests.kit.real_pki import Pki
from tests.kit.wait import until_blocking
from tests.real.conftest import require

NAME = "v1alpha1.wardle.example.com"
FLUNDER = {
    "apiVersion": "wardle.example.com/v1alpha1",
    "kind": "Flunder",
    "metadata": {"name": "one", "labels": {"a": "b"}},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    require("etcd", "kubectl", "sample-apiserver")
    folder = tmp_path_factory.mktemp("aggregation")
    with podlife_apiserver(folder) as podlife:
        pki = Pki(folder / "wardle-pki")
        with sample_apiserver(folder / "wardle", podlife, pki.issue_server("wardle.default.svc")) as port:
            _register(podlife, pki, port)
            until_blocking(lambda: _available(podlife) == "True")
            yield podlife


def _register(server: Server, pki: Pki, port: int) -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "wardle"},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    }
    api_service = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": NAME},
        "spec": {
            "group": "wardle.example.com",
            "version": "v1alpha1",
            "groupPriorityMinimum": 2000,
            "versionPriority": 200,
            "caBundle": base64.b64encode(Path(pki.ca_file).read_bytes()).decode(),
            "service": {"namespace": "default", "name": "wardle", "port": port},
        },
    }
    kubectl(server, "apply", "-f", "-", stdin=yaml.safe_dump_all([service, api_service]))


def kubectl(server: Server, *arguments: str, stdin: str | None = None) -> str:
    done = run_kubectl(*arguments, kubeconfig=server.kubeconfig, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _available(server: Server) -> str:
    path = "jsonpath={.status.conditions[?(@.type=='Available')].status}"
    return kubectl(server, "get", "apiservice", NAME, "-o", path)


def test_kubectl_discovers_creates_lists_watches_and_deletes(server: Server) -> None:
    assert "flunders" in kubectl(server, "api-resources", "--api-group=wardle.example.com")
    assert "True" in kubectl(server, "get", "apiservices")
    kubectl(server, "create", "--validate=false", "-f", "-", stdin=json.dumps(FLUNDER))
    found: dict[str, Any] = json.loads(kubectl(server, "get", "flunders", "one", "-o", "json"))
    assert found["metadata"]["labels"] == {"a": "b"}
    assert "one" in kubectl(server, "get", "flunders", "-l", "a=b")
    kubectl(server, "label", "flunder", "one", "c=d")
    kubectl(server, "wait", "--for=jsonpath={.metadata.labels.c}=d", "flunder/one", "--timeout=30s")
    kubectl(server, "delete", "flunder", "one")
    assert kubectl(server, "get", "flunders") == ""


def test_the_other_server_knows_the_user_and_asks_for_rights(server: Server) -> None:
    done = run_kubectl("get", "flunders", kubeconfig=server.kubeconfig_for("nobody"))
    assert "Forbidden" in done.stderr
    # Its own authorization, by a SubjectAccessReview of the user in the headers.
    assert kubectl(server, "get", "flunders", "--as=ada", "--as-group=system:masters") == ""


def test_an_error_of_the_other_server_arrives_as_it_is(server: Server) -> None:
    done = run_kubectl("get", "flunder", "missing", kubeconfig=server.kubeconfig)
    assert 'flunders.wardle.example.com "missing" not found' in done.stderr

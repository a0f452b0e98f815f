"""`podlife node --static-pods` as a node of a real server: files become processes, and kubectl shows them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.agent_process import AgentProcess
from tests.kit.real_parts import Server
from tests.kit.wait import until_blocking
from tests.real.conftest import Kubectl

NAME = "node-a"
POD = f"web-{NAME}"


class Node:
    """An agent over a folder of manifests; each of its containers writes a line to `witness` when it begins."""

    def __init__(self, folder: Path, server: Server, kubectl: Kubectl) -> None:
        self.manifests = folder / "manifests"
        self.manifests.mkdir()
        self.witness = folder / "witness"
        self.witness.touch()
        self.agent = AgentProcess(
            folder, server.kubeconfig_for(NAME), "--static-pods", str(self.manifests), name=NAME
        )
        self._server = server
        self._kubectl = kubectl

    def write(self) -> None:
        script = f"echo begun >> {self.witness}; exec sleep 600"
        container = {"name": "c", "image": "none", "command": ["sh", "-c", script]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}}
        spec = {"containers": [container], "terminationGracePeriodSeconds": 1}
        (self.manifests / "web.json").write_text(json.dumps({**pod, "spec": spec}))

    def mirror(self) -> dict[str, Any] | None:
        asked = ("get", "pod", POD, "-o", "json", "--ignore-not-found")
        answer = self._kubectl(*asked, kubeconfig=self._server.kubeconfig)
        found: dict[str, Any] | None = json.loads(answer.stdout) if answer.stdout else None
        return found

    def until_running(self) -> dict[str, Any]:
        found: list[dict[str, Any]] = []

        def is_running() -> bool:
            mirror = self.mirror()
            if mirror is None or mirror["status"]["phase"] != "Running":
                return False
            found.append(mirror)
            return True

        until_blocking(is_running, "the static pod is not shown as running")
        return found[-1]

    def started(self) -> list[str]:
        return self.witness.read_text().split()


@pytest.fixture
def node(kube: Server, tmp_path: Path, kubectl: Kubectl) -> Iterator[Node]:
    here = Node(tmp_path, kube, kubectl)
    try:
        yield here
        for file in here.manifests.iterdir():
            file.unlink()
        if here.agent.is_running:
            until_blocking(lambda: here.mirror() is None, "the static pod is still shown")
    finally:
        if here.agent.is_running:
            here.agent.kill()
        kubectl("delete", "node", NAME, "--ignore-not-found", kubeconfig=kube.kubeconfig)


def test_a_file_is_run_and_shown_and_survives_its_spoiling_and_the_agent(node: Node) -> None:
    node.write()
    node.agent.start()
    first = node.until_running()
    assert first["metadata"]["annotations"]["kubernetes.io/config.source"] == "file"
    until_blocking(lambda: node.started() == ["begun"], "its container says nothing")

    # A file that is spoilt ends nothing, and is told of with its name.
    (node.manifests / "web.json").write_text("{")
    until_blocking(lambda: b"web.json: cannot be read" in node.agent.log.read_bytes(), "nothing was said")
    node.write()
    node.agent.kill()
    node.agent.start()
    again = node.until_running()
    assert again["metadata"]["uid"] == first["metadata"]["uid"]
    assert again["status"]["containerStatuses"] == first["status"]["containerStatuses"]
    assert node.started() == ["begun"]

    (node.manifests / "web.json").unlink()
    until_blocking(lambda: node.mirror() is None, "the static pod is still shown")

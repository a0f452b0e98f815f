"""A kube-apiserver with RBAC and the manifests of `deploy/controllers`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from podlife.client import Client
from tests.kit.real_parts import Server, kube_apiserver, run_kubectl
from tests.real.conftest import require
from tests.real.workloads.test_controllers_command import MANIFESTS
from tests.workloads.runs import connect


@pytest.fixture(scope="package")
def installed(parts_folder: Path) -> Iterator[Server]:
    require("etcd", "kube-apiserver", "kubectl")
    with kube_apiserver(parts_folder / "out-of-service") as server:
        result = run_kubectl("apply", "-k", str(MANIFESTS), kubeconfig=server.kubeconfig)
        assert result.returncode == 0, result.stderr
        yield server


@pytest.fixture
async def client(installed: Server) -> AsyncIterator[Client]:
    async with connect(installed.kubeconfig) as connected:
        yield connected

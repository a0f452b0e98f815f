"""A kube-apiserver of these tests alone: what they explain depends on all nodes there are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from podlife.client import NODES, Client, DeleteOptions
from podlife.errors import NotFoundError
from tests.kit.real_parts import Server, kube_apiserver
from tests.real.conftest import require
from tests.real.podgc.cluster import connect


@pytest.fixture(scope="package")
def explain_kube(parts_folder: Path) -> Iterator[Server]:
    require("etcd", "kube-apiserver", "kubectl")
    with kube_apiserver(parts_folder / "explain") as server:
        yield server


@pytest.fixture
async def client(explain_kube: Server) -> AsyncIterator[Client]:
    async with connect(explain_kube) as connected:
        yield connected


@pytest.fixture
async def cleared(client: Client) -> AsyncIterator[None]:
    """No node is left that another test's pod could go to."""
    yield
    for node in (await client.list(NODES)).items:
        options = DeleteOptions(uid=node["metadata"]["uid"])
        try:
            await client.delete(NODES, node["metadata"]["name"], options=options)
        except NotFoundError:
            continue

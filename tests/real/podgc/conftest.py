"""A kube-apiserver for the collector as a user runs it: it acts on the whole cluster, so no other tests are on it."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from podlife.client import Client, Connection, TokenAuth
from tests.kit.gc_states import States
from tests.kit.real_parts import Server, kube_apiserver
from tests.real.conftest import require
from tests.real.podgc.cluster import ACCOUNT, SYSTEM, connect

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def gc_kube(parts_folder: Path, request: pytest.FixtureRequest) -> Iterator[Server]:
    require("etcd", "kube-apiserver", "kubectl")
    with kube_apiserver(parts_folder / f"gc-{request.module.__name__.rpartition('.')[2]}") as server:
        yield server


@pytest.fixture
async def client(gc_kube: Server) -> AsyncIterator[Client]:
    async with connect(gc_kube) as connected:
        yield connected


@pytest.fixture
async def states(client: Client) -> AsyncIterator[States]:
    made = States(client, f"gc-{next(_NUMBERS)}")
    await made.begin()
    yield made
    await made.end()


@pytest.fixture
def admin(gc_kube: Server) -> list[str]:
    """The flags of the administrator."""
    return ["--kubeconfig", str(gc_kube.kubeconfig)]


@pytest.fixture
async def token(client: Client) -> str:
    """Of the service account of `deploy/gc`, which the module has applied."""
    path = f"/api/v1/namespaces/{SYSTEM}/serviceaccounts/{ACCOUNT}/token"
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 3600},
    }
    reply = await client.request("POST", path, body=request)
    issued: str = json.loads(reply.body)["status"]["token"]
    return issued


@pytest.fixture
def account(gc_kube: Server, token: str) -> list[str]:
    """The flags of somebody who is the service account."""
    return ["--server", gc_kube.url, "--certificate-authority", str(gc_kube.ca_file), "--token", token]


@pytest.fixture
async def account_client(gc_kube: Server, token: str) -> AsyncIterator[Client]:
    """Asks the server as the service account."""
    authority = gc_kube.ca_file.read_bytes()
    connection = Connection(gc_kube.url, auth=TokenAuth(token), certificate_authority=authority)
    async with Client.connect(connection) as connected:
        yield connected

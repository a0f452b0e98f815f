"""What the tests of real clients share: a namespace on one server, and the same one on two."""

from __future__ import annotations

import itertools
import json
import ssl
import urllib.request
from collections.abc import Callable, Iterator

import pytest

from tests.kit.real_parts import Server
from tests.real.clients.pair import Pair
from tests.real.conftest import require

StartPair = Callable[[], Pair]
"""Makes an empty namespace of the same name on kube-apiserver and on ours, with a kubectl for both."""

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def start_pair(kube: Server, podlife_server: Server) -> Iterator[StartPair]:
    """Pairs for as long as the module's tests run."""
    require("kubectl")
    made: list[str] = []

    def start() -> Pair:
        name = f"pair-{next(_NUMBERS)}"
        made.append(name)
        for server in (kube, podlife_server):
            make_namespace(server, name)
        return Pair(kube, podlife_server, name)

    yield start
    for name in made:
        for server in (kube, podlife_server):
            _ask(server, "DELETE", f"/api/v1/namespaces/{name}")


@pytest.fixture
def pair(start_pair: StartPair) -> Pair:
    """An empty namespace on both servers."""
    return start_pair()


@pytest.fixture
def namespace(podlife_server: Server) -> Iterator[str]:
    """An empty namespace on our server."""
    name = f"client-{next(_NUMBERS)}"
    make_namespace(podlife_server, name)
    yield name
    _ask(podlife_server, "DELETE", f"/api/v1/namespaces/{name}")


def make_namespace(server: Server, name: str) -> None:
    _ask(server, "POST", "/api/v1/namespaces", {"metadata": {"name": name}})


def _ask(server: Server, method: str, path: str, body: object = None) -> None:
    headers = {"Authorization": f"Bearer {server.tokens['admin']}", "Content-Type": "application/json"}
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(server.url + path, data, headers, method=method)
    context = ssl.create_default_context(cafile=str(server.ca_file))
    with urllib.request.urlopen(request, timeout=120, context=context) as answer:
        assert answer.status < 300

"""What importing the client costs, the paths of its resources, and the component it speaks for."""

from __future__ import annotations

import subprocess
import sys

import pytest

import podlife.client
from podlife.client import DEPLOYMENTS, NAMESPACES, NODES, PODS, Client, InProcessTransport, Ref, refs
from podlife.controller import ControlPlane
from podlife.wire import Request, Response
from tests.kit.real_parts import ROOT


def test_every_public_name_is_there() -> None:
    assert all(getattr(podlife.client, name) is not None for name in podlife.client.__all__)


def test_names_that_have_not_been_used_yet_are_listed_too() -> None:
    code = "import podlife.client; print(set(podlife.client.__all__) - set(dir(podlife.client)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "set()"


def test_heavy_libraries_are_imported_where_they_are_used() -> None:
    names = ("aiohttp", "yaml", "kubernetes_asyncio", "cryptography")
    code = (
        "import sys; from podlife.client import Client, Connection, TokenAuth, load\n"
        "Client.connect(Connection('https://host', auth=TokenAuth('t')))\n"
        f"print([name for name in {names!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


def test_naming_the_package_imports_none_of_its_modules() -> None:
    code = "import sys, podlife.client; print([m for m in sys.modules if m.startswith('podlife.client.')])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (PODS.path(), "/api/v1/pods"),
        (PODS.path("ns"), "/api/v1/namespaces/ns/pods"),
        (PODS.path("ns", "a", "log"), "/api/v1/namespaces/ns/pods/a/log"),
        (NODES.path("", "n1", "status"), "/api/v1/nodes/n1/status"),
        (DEPLOYMENTS.path("ns", "d"), "/apis/apps/v1/namespaces/ns/deployments/d"),
    ],
)
def test_a_path_follows_from_the_resource(path: str, expected: str) -> None:
    assert path == expected


@pytest.mark.parametrize(
    ("ref", "namespace", "name"),
    [(PODS, "", "a"), (NODES, "ns", "n1"), (PODS, "ns", ".."), (PODS, "a/b", ""), (PODS, "ns", "a%2f")],
)
def test_a_path_that_would_mean_something_else_is_refused(ref: Ref, namespace: str, name: str) -> None:
    with pytest.raises(ValueError):
        ref.path(namespace, name)


def test_every_resource_that_has_a_constant_is_on_the_page_of_the_client() -> None:
    page = (ROOT / "docs" / "client.md").read_text(encoding="utf-8")
    names = [name for name, value in vars(refs).items() if isinstance(value, refs.Ref)]
    assert [name for name in names if f"`{name}" not in page] == []


async def agents_of(*clients: Client) -> list[str]:
    return [(await client.get(NAMESPACES, "default"))["agent"] for client in clients]


async def answer(request: Request) -> Response:
    return Response(body=f'{{"agent": "{request.headers.get("User-Agent", "")}"}}'.encode())


async def test_its_requests_carry_the_name_and_those_of_the_others_do_not() -> None:
    client = Client(InProcessTransport(answer))
    plane = ControlPlane(client)
    named = plane.speaking_as("replicaset-controller")
    plain, controller, slow = await agents_of(client, named.client, named.client.with_timeout(5))
    assert plain == ""
    assert controller == slow
    assert controller.startswith("podlife/")
    assert controller.endswith("/replicaset-controller")
    # What is shared stays shared.
    assert named.recorder("x") is plane.recorder("x")

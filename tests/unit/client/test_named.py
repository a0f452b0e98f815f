"""A client that says which component it speaks for."""

from __future__ import annotations

from podlife.client import NAMESPACES, Client, InProcessTransport
from podlife.controller import ControlPlane
from podlife.wire import Request, Response


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

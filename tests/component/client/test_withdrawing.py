"""A caller who withdraws: what is on the wire is finished, and nothing else is sent."""

from __future__ import annotations

import asyncio

from podlife.client import PODS, Client, InProcessTransport, Limiter, LimiterSettings, WithdrawnError
from podlife.errors import PodlifeError
from podlife.testing import virtual_time
from podlife.wire import Request, Response
from tests.component.client.test_verbs import failure


class SlowServer:
    """Answers after ten seconds, or with what it is told to."""

    def __init__(self, answer: Response | None = None) -> None:
        self.asked: list[str] = []
        self._answer = answer

    async def __call__(self, request: Request) -> Response:
        self.asked.append(request.path.rpartition("/")[2])
        if self._answer is None:
            await asyncio.sleep(10)
        return self._answer or Response(200, b"{}")


async def outcomes(client: Client, names: str) -> list[object]:
    calls = (client.delete(PODS, name, "ns") for name in names)
    return await asyncio.gather(*calls, return_exceptions=True)


@virtual_time
async def test_calls_on_the_wire_are_answered_and_those_in_line_are_never_sent() -> None:
    server = SlowServer()
    limiter = Limiter(LimiterSettings(initial=2))
    client = Client(InProcessTransport(server), limiter=limiter)
    loop = asyncio.get_running_loop()
    loop.call_later(1, client.withdraw)
    answers = await outcomes(client, "abcde")
    assert [isinstance(answer, WithdrawnError) for answer in answers] == [False, False, True, True, True]
    assert (answers[:2], server.asked) == ([{}, {}], ["a", "b"])
    assert (loop.time(), limiter.waiting, limiter.state.in_flight) == (10, 0, 0)


@virtual_time
async def test_whoever_waits_to_try_again_withdraws_at_once() -> None:
    server = SlowServer(failure(429, "TooManyRequests", retryAfterSeconds=30))
    client = Client(InProcessTransport(server))
    loop = asyncio.get_running_loop()
    loop.call_later(1, client.withdraw)
    answers = await outcomes(client, "ab")
    assert all(isinstance(answer, WithdrawnError) for answer in answers)
    # The second stands behind the first, which was told to come back: it was never sent.
    assert (loop.time(), server.asked) == (1, ["a"])


@virtual_time
async def test_afterwards_nothing_is_sent_but_by_others_on_the_same_connection() -> None:
    server = SlowServer(Response(200, b"{}"))
    client = Client(InProcessTransport(server))
    apart = client.apart()
    apart.withdraw()
    [refused] = await outcomes(apart, "a")
    assert isinstance(refused, PodlifeError)
    assert await outcomes(client, "b") == [{}]
    assert server.asked == ["b"]

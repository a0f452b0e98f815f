"""What a call that had no answer in time says of it."""

from __future__ import annotations

import asyncio

import pytest

from podlife.client import PODS, Client, InProcessTransport
from podlife.errors import UnreachableError
from podlife.testing import virtual_time
from podlife.wire import Request, Response


@virtual_time
async def test_the_time_that_was_allowed_is_told_whatever_was_left_for_the_last_attempt() -> None:
    """Calls that fail alike say the same: a sweep tells of them together."""
    asked = 0

    async def refuse_then_hang(_: Request) -> Response:
        nonlocal asked
        asked += 1
        if asked == 1:
            return Response(429, b"{}", headers={"Retry-After": "1"})
        await asyncio.sleep(3600)
        raise AssertionError

    client = Client(InProcessTransport(refuse_then_hang), timeout_seconds=8)
    with pytest.raises(UnreachableError, match=r"^no answer to GET /api/v1/namespaces/ns/pods/a in 8 s$"):
        await client.get(PODS, "a", "ns")
    assert (asked, asyncio.get_running_loop().time()) == (2, 8)

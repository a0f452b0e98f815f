"""Pod subresources that are not served: the error says what to use instead."""

from __future__ import annotations

import json

import pytest

from podlife.wire import Peer, Query, Request
from tests.kit.embedded import start


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("pods/web/attach", "attach is not offered by this server: `kubectl logs -f` shows"),
        (
            "pods/web/portforward",
            "portforward is not offered by this server: connect to the pod's own address",
        ),
        ("pods/web/proxy", "proxy is not offered by this server: connect to the pod's own address"),
        ("pods/web/other", "the server could not find the requested resource"),
        ("nodes/web/attach", "the server could not find the requested resource"),
    ],
)
async def test_what_is_not_offered_is_a_404_that_says_what_is(path: str, message: str) -> None:
    handler = await start()
    asked = Request(
        "POST", f"/api/v1/namespaces/default/{path}", Query(""), peer=Peer("admin", ("system:masters",))
    )
    answer = await handler(asked)
    assert answer.status == 404
    assert isinstance(answer.body, bytes)
    assert json.loads(answer.body)["message"].startswith(message)

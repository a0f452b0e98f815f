"""A runtime that can neither attach nor forward ports says so."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from podlife.clock import SystemClock
from podlife.kubelet.server.request import HttpError, KubeletRequest, ServedNode
from podlife.kubelet.server.streaming.exec_handler import serve_attach
from podlife.kubelet.server.streaming.port_forward import serve_port_forward
from podlife.wire import Query

STATUS = {"name": "main", "state": {"running": {}}, "containerID": "sim://c"}
POD = {"metadata": {"name": "web", "uid": "u"}, "status": {"containerStatuses": [STATUS]}}


@pytest.mark.parametrize(
    ("serve", "parts", "message"),
    [
        (serve_attach, ("default", "web", "main"), "the sim runtime cannot attach to containers"),
        (serve_port_forward, ("default", "web"), "the sim runtime cannot forward ports"),
    ],
)
async def test_a_simulated_node_answers_501(serve: Any, parts: tuple[str, ...], message: str) -> None:
    pods: Any = SimpleNamespace(find_pod=lambda namespace, name: POD)
    runtime: Any = SimpleNamespace(name="sim")
    request = KubeletRequest(SimpleNamespace(headers={}), "", "", parts, Query("output=1"))  # type: ignore[arg-type]
    with pytest.raises(HttpError) as refused:
        await serve(ServedNode("n", pods, runtime, SystemClock()), request)
    assert (refused.value.code, str(refused.value)) == (501, message)

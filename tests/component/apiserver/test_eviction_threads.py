"""An eviction among budgets with long selectors, in one process: nobody else waits while they are matched."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from podlife.apiserver.subresources import eviction
from tests.component.apiserver.test_refusals import send
from tests.kit import embedded

PODS = "/api/v1/namespaces/default/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
EVICTION = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web"}}


@pytest.mark.parametrize(("expressions", "is_aside"), [(1, False), (8_000, True)])
async def test_long_selectors_are_matched_beside_the_event_loop(
    monkeypatch: pytest.MonkeyPatch, expressions: int, is_aside: bool
) -> None:
    handler = await embedded.start()
    containers = [{"name": "c", "image": "i"}]
    pod = {"metadata": {"name": "web"}, "spec": {"containers": containers}}
    _, pod = await send(handler, "POST", PODS, pod)
    pod["status"]["phase"] = "Running"
    assert (await send(handler, "PUT", f"{PODS}/web/status", pod))[0] == 200
    selector = {"matchExpressions": [{"key": f"k{n}", "operator": "Exists"} for n in range(expressions)]}
    budget = {"metadata": {"name": "b"}, "spec": {"selector": selector, "maxUnavailable": 1}}
    assert (await send(handler, "POST", BUDGETS, budget))[0] == 201
    threads: list[threading.Thread] = []
    matches = eviction.selector_matches

    def noted(*arguments: Any) -> bool:
        threads.append(threading.current_thread())
        return matches(*arguments)

    monkeypatch.setattr(eviction, "selector_matches", noted)
    assert (await send(handler, "POST", f"{PODS}/web/eviction", EVICTION))[0] == 201
    assert [thread is not threading.main_thread() for thread in threads] == [is_aside]

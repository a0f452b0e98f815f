"""Objects and selectors of the largest size: rejected, stored or matched without delaying other requests."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from podlife.api.labels import selector_matches
from podlife.apiserver.subresources import eviction
from podlife.wire import Handler, Response
from tests.component.apiserver.requests import CONFIG_MAPS, PODS, TABLE, ask, send
from tests.kit import embedded, objects

JSON_PATCH, MERGE = "json-patch+json", "merge-patch+json"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


@pytest.fixture
async def handler() -> Handler:
    return await embedded.start()


async def turns_during(handler: Handler, method: str, path: str, body: object = None, **how: Any) -> int:
    """How often the event loop ran other tasks while the request was served."""
    turns = 0

    async def somebody_else() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    other = asyncio.get_running_loop().create_task(somebody_else())
    await asyncio.sleep(0)
    before = turns
    response = await send(handler, method, path, body, **how)
    other.cancel()
    assert response.status in (201, 200, 422)
    return turns - before


def warnings(answer: Response) -> list[str]:
    assert not isinstance(answer.headers, Mapping)
    return [text for name, text in answer.headers if name == "Warning"]


async def turns_at_once(handler: Handler) -> int:
    """How many turns others get during a small request, which is answered on the event loop itself.

    How many more a large one lets them have is the scheduler's choice; without a thread it would be no more than this.
    """
    small = {"metadata": {"generateName": "small-"}}
    return await turns_during(handler, "POST", CONFIG_MAPS, small)


async def test_a_pod_with_thousands_of_mistakes_is_refused_while_others_get_their_turns(
    handler: Handler,
) -> None:
    pod = {"metadata": {"name": "huge"}, "spec": {"containers": [{}] * 20_000}}
    assert await turns_during(handler, "POST", PODS, pod) > await turns_at_once(handler)
    _, status = await ask(handler, "POST", PODS, pod)
    assert (status["code"], len(status["details"]["causes"])) == (422, 1_000)


async def test_a_large_object_is_stored_whole_and_changed_by_put_and_patch(handler: Handler) -> None:
    data = {f"key-{number}": "v" * 100 for number in range(5_000)}
    large = {"metadata": {"name": "large"}, "data": data}
    at_once = await turns_at_once(handler)
    assert await turns_during(handler, "POST", CONFIG_MAPS, large) > at_once
    large["data"] = {**data, "one-more": "x"}
    assert await turns_during(handler, "PUT", f"{CONFIG_MAPS}/large", large) > at_once
    change = {"data": dict.fromkeys(data, "w" * 100)}
    assert await turns_during(handler, "PATCH", f"{CONFIG_MAPS}/large", change, kind=MERGE) > at_once
    _, stored = await ask(handler, "GET", f"{CONFIG_MAPS}/large")
    assert stored["data"] == {**change["data"], "one-more": "x"}


async def with_large(handler: Handler) -> str:
    """The path of an object that is large, and made."""
    data = {f"key-{number}": "v" for number in range(20_000)}
    made = await send(handler, "POST", CONFIG_MAPS, {"metadata": {"name": "large"}, "data": data})
    assert made.status == 201
    return f"{CONFIG_MAPS}/large"


@pytest.mark.parametrize("accept", ["application/yaml", TABLE])
async def test_a_large_object_is_shown_in_another_form_while_others_get_their_turns(
    handler: Handler, accept: str
) -> None:
    path = await with_large(handler)
    at_once = await turns_at_once(handler)
    assert await turns_during(handler, "GET", path, accept=accept) > at_once


async def test_a_small_patch_of_a_large_object_is_applied_while_others_get_their_turns(
    handler: Handler,
) -> None:
    path = await with_large(handler)
    at_once = await turns_at_once(handler)
    assert await turns_during(handler, "PATCH", path, {"data": {"a": "b"}}, kind=MERGE) > at_once


async def test_small_patches_cannot_make_an_object_larger_than_a_request(handler: Handler) -> None:
    path = "/api/v1/namespaces/default/endpoints"
    addresses = [{"ip": f"10.0.{number // 250}.{number % 250}"} for number in range(5_000)]
    growing = {"metadata": {"name": "growing"}, "subsets": [{"addresses": addresses, "ports": [{"port": 1}]}]}
    assert (await send(handler, "POST", path, growing)).status == 201
    copy = [{"op": "copy", "from": "/subsets/0", "path": "/subsets/-"}]
    codes = [(await send(handler, "PATCH", f"{path}/growing", copy, JSON_PATCH)).status for _ in range(15)]
    assert (codes[0], codes[-1]) == (200, 413)


@pytest.mark.parametrize("kind", ["json", "yaml"])
async def test_more_fields_and_elements_than_anybody_means_are_refused(handler: Handler, kind: str) -> None:
    pod = {"metadata": {"name": "many"}, "spec": {"containers": [{}] * 300_000}}
    code, answer = await ask(handler, "POST", PODS, pod, kind=kind)
    assert code in (400, 413)
    assert "0000" in answer["message"]


async def test_commas_in_strings_are_no_elements(handler: Handler) -> None:
    table = {"metadata": {"name": "table"}, "data": {"csv": '\\",' * 200_000}}
    assert (await send(handler, "POST", CONFIG_MAPS, table)).status == 201


async def test_many_warnings_are_told_in_few_headers(handler: Handler) -> None:
    unknown = {f"field-{number}": 1 for number in range(120)}
    answer = await send(handler, "POST", CONFIG_MAPS, {"metadata": {"name": "odd"}, **unknown})
    told = warnings(answer)
    assert answer.status == 201
    assert len(told) == 51
    assert told[-1] == '299 - "and 50 more warnings"'


async def test_long_warnings_are_cut_as_upstream_cuts_them(handler: Handler) -> None:
    unknown = {f"{number}{'x' * 1_000}": 1 for number in range(10)}
    answer = await send(handler, "POST", CONFIG_MAPS, {"metadata": {"name": "odd"}, **unknown})
    told = warnings(answer)
    assert len(told) == 10
    assert max(map(len, told)) < 300


@pytest.mark.parametrize(("expressions", "is_aside"), [(1, False), (8_000, True)])
async def test_long_selectors_are_matched_beside_the_event_loop(
    handler: Handler, monkeypatch: pytest.MonkeyPatch, expressions: int, is_aside: bool
) -> None:
    _, pod = await ask(handler, "POST", PODS, objects.pod())
    pod["status"]["phase"] = "Running"
    assert (await send(handler, "PUT", f"{PODS}/web/status", pod)).status == 200
    selector = {"matchExpressions": [{"key": f"k{n}", "operator": "Exists"} for n in range(expressions)]}
    budget = {"metadata": {"name": "b"}, "spec": {"selector": selector, "maxUnavailable": 1}}
    assert (await send(handler, "POST", BUDGETS, budget)).status == 201
    threads: list[threading.Thread] = []

    def noted(*arguments: Any) -> bool:
        threads.append(threading.current_thread())
        return selector_matches(*arguments)

    monkeypatch.setattr(eviction, "selector_matches", noted)
    evicted = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web"}}
    assert (await send(handler, "POST", f"{PODS}/web/eviction", evicted)).status == 201
    assert [thread is not threading.main_thread() for thread in threads] == [is_aside]

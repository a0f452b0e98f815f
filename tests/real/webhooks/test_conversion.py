"""The same definitions, conversion webhooks and requests on kube-apiserver and on podlife: equal answers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import Any

import pytest

from tests.kit.real_parts import Server
from tests.kit.wait import until_blocking
from tests.kit.webhook_server import Json, WebhookServer, webhook_server
from tests.real.differential.compare import differences_between
from tests.real.differential.normalise import Normaliser
from tests.real.differential.target import Target
from tests.real.webhooks.cases import Request, send
from tests.real.webhooks.conversion_cases import BAD, CRDS, GOOD, V1, ConversionCase, convert, definition
from tests.real.webhooks.differences import CONVERSION_DIFFERENCES

_LATE = "context deadline exceeded"
_WHO_WAITED = " (Client.Timeout exceeded while awaiting headers)"
# How many cases are under way at once.
_AT_ONCE = 6
_DEADLINE_SECONDS = 600.0

Observed = list[Any]
Played = Future[list[Observed]]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebhookServer]:
    with webhook_server(tmp_path_factory.mktemp("webhook")) as server:
        yield server


@pytest.fixture(scope="module")
def played(
    request: pytest.FixtureRequest, served: WebhookServer, kube: Server, podlife_server: Server
) -> Iterator[Mapping[str, Played]]:
    """The cases that are going to be run, several at once: much of their time is waiting for kube-apiserver."""
    cases = [
        item.callspec.params["case"]  # type: ignore[attr-defined]
        for item in request.session.items
        if item.path == request.path and "played" in getattr(item, "fixturenames", ())
    ]
    with ThreadPoolExecutor(_AT_ONCE) as pool, ThreadPoolExecutor(2 * _AT_ONCE) as sides:
        yield {case.name: pool.submit(_play, case, served, (kube, podlife_server), sides) for case in cases}


def _filled(request: Request, group: str) -> Request:
    body = request.body
    if body is not None:
        body = json.loads(json.dumps(body).replace("{group}", group))
    return Request(request.method, request.path.replace("{group}", group), body, request.content_type)


def _play(
    case: ConversionCase, served: WebhookServer, servers: tuple[Server, Server], sides: Executor
) -> list[Observed]:
    """What kube-apiserver answered, and what podlife did."""
    path = f"/{case.name}"
    config = case.config(served, served.at(path, served.hang if case.hangs else case.answer))
    with ExitStack() as stack:
        targets = [stack.enter_context(closing(Target(server))) for server in servers]
        try:
            return list(sides.map(lambda target: _observed(target, case, config), targets))
        finally:
            served.answers[path] = convert
            for target in targets:
                send(target, Request("DELETE", f"{CRDS}/hosts.{case.group}"))


def _observed(target: Target, case: ConversionCase, config: Json) -> Observed:
    made = send(target, Request("POST", CRDS, definition(case.group, config, **case.conversion)))
    assert made.code == 201, made
    until_blocking(lambda: send(target, _filled(Request("GET", V1), case.group)).code == 200, seconds=60)
    normaliser = Normaliser()
    found = []
    for index, request in enumerate([*case.before, *case.requests]):
        answer = send(target, _filled(request, case.group))
        normaliser.begin(str(index))
        body = normaliser.body(answer.body)
        if case.hangs and "message" in body:
            # Go says any of these, as its timers happen to fire.
            text = body["message"].replace("net/http: request canceled", _LATE)
            body["message"] = text.removesuffix(_WHO_WAITED)
        warnings = answer.headers.get("Warning", [])
        found.append({"code": answer.code, "body": body, "warnings": warnings})
    return found[len(case.before) :]


@pytest.mark.parametrize("case", [*GOOD, *BAD], ids=lambda case: case.name)
def test_both_servers_convert_and_fail_the_same(case: ConversionCase, played: Mapping[str, Played]) -> None:
    real, ours = played[case.name].result(_DEADLINE_SECONDS)
    known = CONVERSION_DIFFERENCES.get(case.name, {})
    found = differences_between(real, ours)
    unknown = [each for each in found if each.path not in known]
    assert not unknown, "\n".join(map(str, unknown))
    assert {each.path for each in found} == set(known), "a listed difference is gone"


def test_every_listed_difference_names_a_case() -> None:
    assert CONVERSION_DIFFERENCES.keys() <= {case.name for case in [*GOOD, *BAD]}

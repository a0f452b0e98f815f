"""The same webhooks and requests on kube-apiserver and on podlife: equal answers, and equal reviews."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.kit.real_parts import Server
from tests.kit.wait import until_blocking
from tests.kit.webhook_server import Json, WebhookServer, allow, webhook, webhook_server
from tests.real.differential.compare import Difference, differences_between
from tests.real.differential.normalise import Normaliser
from tests.real.differential.target import Target
from tests.real.webhooks.cases import CASES, Case, Request, config_map, send
from tests.real.webhooks.differences import DIFFERENCES
from tests.real.webhooks.policy_cases import CASES as POLICY_CASES

GROUP = "/apis/admissionregistration.k8s.io/v1"
READY = "hooks-ready"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebhookServer]:
    with webhook_server(tmp_path_factory.mktemp("webhook")) as server:
        yield server


@pytest.fixture(scope="module")
def targets(kube: Server, podlife_server: Server) -> Iterator[tuple[Target, Target]]:
    both = Target(kube), Target(podlife_server)
    for target in both:
        send(target, Request("POST", "/api/v1/namespaces", {"metadata": {"name": READY}}))
    yield both
    for target in both:
        target.close()


def _in_namespace(name: str) -> Json:
    return {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}


def _observed(target: Target, case: Case, served: WebhookServer) -> list[Any]:
    """Every answer with the reviews that it took, in a form that can be compared."""
    send(target, Request("POST", "/api/v1/namespaces", {"metadata": {"name": case.namespace}}))
    for request in case.before:
        send(target, request, case.namespace)
    hooks = [{**hook, **_in_namespace(case.namespace)} for hook in case.hooks(served, case.name)]
    ready = f"/{case.name}/ready"
    hooks.append(webhook("ready", served.at(ready, allow), **_in_namespace(READY)))
    path = f"{GROUP}/{case.kind.lower()}webhookconfigurations"
    configuration = {"metadata": {"name": case.namespace}, "webhooks": hooks}
    made = send(target, Request("POST", path, configuration))
    assert made.code == 201, made
    served.reviews.clear()
    probe = Request("POST", f"/api/v1/namespaces/{READY}/configmaps?dryRun=All", config_map(case.name))

    def is_ready() -> bool:
        send(target, probe)
        return bool(served.asked(ready))

    try:
        until_blocking(is_ready, "the webhook is not called", seconds=30)
        normaliser = Normaliser()
        found = []
        for index, request in enumerate(case.requests):
            served.reviews.clear()
            answer = send(target, request, case.namespace)
            normaliser.begin(str(index))
            received = [review for at, review in served.reviews if at != ready]
            # Twice: a name that was generated is known when the whole review has been seen.
            reviews = [normaliser.body(dict(review)) for review in received + received][len(received) :]
            body = normaliser.body(answer.body)
            warnings = answer.headers.get("Warning", [])
            found.append({"code": answer.code, "body": body, "warnings": warnings, "reviews": reviews})
        return found
    finally:
        send(target, Request("DELETE", f"{path}/{case.namespace}"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_both_servers_ask_and_answer_the_same(
    case: Case, served: WebhookServer, targets: tuple[Target, Target]
) -> None:
    real, ours = (_observed(target, case, served) for target in targets)
    known = DIFFERENCES.get(case.name, {})
    found = differences_between(real, ours)
    unknown = [each for each in found if _place(each) not in known]
    assert not unknown, "\n".join(map(str, unknown))
    assert {_place(each) for each in found} == set(known), "a listed difference is gone"


def _place(difference: Difference) -> str:
    return difference.path


def test_every_listed_difference_names_a_case() -> None:
    policies = {case.namespace for case in POLICY_CASES}
    assert DIFFERENCES.keys() <= {case.name for case in CASES} | policies

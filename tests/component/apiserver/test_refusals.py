"""Requests that kube-apiserver rejects: the same code and reason, and nothing stored."""

from __future__ import annotations

import pytest

from podlife.api.codec import Object
from podlife.apiserver.endpoints import ApiHandler
from podlife.wire import Peer
from tests.component.apiserver.requests import CONFIG_MAPS, TABLE, ask
from tests.kit import embedded, objects

NODE = Peer("system:node:node-0", ("system:nodes",))
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@pytest.fixture
async def handler() -> ApiHandler:
    return await embedded.start()


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/api/v1/nodes", 'node "node-0" is not allowed to modify node ""'),
        (LEASES, "can only access node lease with the same name as the requesting node"),
    ],
)
async def test_a_node_cannot_have_a_name_generated_from_its_own(
    handler: ApiHandler, path: str, why: str
) -> None:
    """NodeRestriction compares names, and a prefix is none: it would become another node's."""
    code, answer = await ask(handler, "POST", path, {"metadata": {"generateName": "node-0"}}, peer=NODE)
    assert code == 403
    assert answer["message"].endswith(f' "node-0" is forbidden: {why}')
    assert (await ask(handler, "GET", path))[1]["items"] == []
    assert (await ask(handler, "POST", path, {"metadata": {"name": "node-0"}}, peer=NODE))[0] == 201


async def test_a_refusal_in_a_terminating_namespace_names_the_prefix_of_a_generated_name(
    handler: ApiHandler,
) -> None:
    await ask(handler, "POST", "/api/v1/namespaces", {"metadata": {"name": "brief"}})
    await ask(handler, "DELETE", "/api/v1/namespaces/brief")
    body = {"metadata": {"generateName": "c-"}}
    code, answer = await ask(handler, "POST", "/api/v1/namespaces/brief/configmaps", body)
    assert (code, answer["details"]["name"]) == (403, "c-")


async def test_an_update_that_means_another_uid_is_a_conflict(handler: ApiHandler) -> None:
    _, made = await ask(handler, "POST", CONFIG_MAPS, {"metadata": {"name": "c"}, "data": {"key": "old"}})
    meant = {"metadata": {"name": "c", "uid": "another"}, "data": {"key": "new"}}
    code, answer = await ask(handler, "PUT", f"{CONFIG_MAPS}/c", meant)
    assert (code, answer["reason"]) == (409, "Conflict")
    assert f"UID in precondition: another, UID in object meta: {made['metadata']['uid']}" in answer["message"]
    assert (await ask(handler, "GET", f"{CONFIG_MAPS}/c"))[1]["data"] == {"key": "old"}
    meant["metadata"]["uid"] = made["metadata"]["uid"]
    assert (await ask(handler, "PUT", f"{CONFIG_MAPS}/c", meant))[0] == 200


async def test_a_watch_whose_events_were_to_be_lists_is_refused_at_once(handler: ApiHandler) -> None:
    await ask(handler, "POST", CONFIG_MAPS, {"metadata": {"name": "c"}})
    accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
    code, answer = await ask(handler, "GET", f"{CONFIG_MAPS}?watch=1", accept=accept)
    assert (code, answer["reason"]) == (406, "NotAcceptable")


async def test_a_review_cannot_be_had_as_a_table(handler: ApiHandler) -> None:
    review = {"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}}
    code, answer = await ask(handler, "POST", REVIEWS, review, accept=TABLE)
    assert (code, answer["reason"]) == (406, "NotAcceptable")
    # Who can do without has an answer.
    code, answer = await ask(handler, "POST", REVIEWS, review, accept=f"{TABLE},application/json")
    assert (code, answer["status"]["allowed"]) == (201, True)


@pytest.mark.parametrize(
    "number", ["1_0", "%2010", "10%0A", "-%2B5", "%D9%A3", "%C2%B2", "9" * 20, "9" * 5000]
)
@pytest.mark.parametrize(
    ("method", "asked"),
    [("GET", "limit"), ("GET", "watch=1&timeoutSeconds"), ("DELETE", "gracePeriodSeconds")],
)
async def test_what_go_would_not_read_as_an_integer_is_refused(
    handler: ApiHandler, method: str, asked: str, number: str
) -> None:
    await ask(handler, "POST", CONFIG_MAPS, {"metadata": {"name": "c"}})
    path = f"{CONFIG_MAPS}/c" if method == "DELETE" else CONFIG_MAPS
    code, answer = await ask(handler, method, f"{path}?{asked}={number}")
    assert (code, answer["reason"]) == (400, "BadRequest")
    assert answer["message"].startswith('strconv.ParseInt: parsing "')
    assert (await ask(handler, "GET", f"{CONFIG_MAPS}/c"))[0] == 200


@pytest.mark.parametrize("number", ["\u00b2", "\u0663", "9" * 5000])
async def test_digits_that_only_python_knows_never_fail_the_server(handler: ApiHandler, number: str) -> None:
    sets = "/apis/apps/v1/namespaces/default/daemonsets"
    labels = {"app": "x"}
    template = {**objects.pod(), "metadata": {"labels": labels}}
    body: Object = {
        "metadata": {"name": "d", "annotations": {"deprecated.daemonset.template.generation": number}},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": template,
            "updateStrategy": {"rollingUpdate": {"maxUnavailable": f"{number}%"}},
        },
    }
    code, answer = await ask(handler, "POST", sets, body)
    assert (code, answer["reason"]) == (422, "Invalid")
    del body["spec"]["updateStrategy"]
    assert (await ask(handler, "POST", sets, body))[0] == 201
    template["spec"]["containers"][0]["image"] = "j"
    assert (await ask(handler, "PUT", f"{sets}/d", body))[0] == 200


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("pods/web/other", "the server could not find the requested resource"),
        ("nodes/web/attach", "the server could not find the requested resource"),
        ("configmaps/web/proxy/x", "the server could not find the requested resource"),
    ],
)
async def test_what_is_not_offered_is_a_404(handler: ApiHandler, path: str, message: str) -> None:
    code, answer = await ask(handler, "POST", f"/api/v1/namespaces/default/{path}")
    assert code == 404
    assert answer["message"].startswith(message)


@pytest.mark.parametrize("path", ["pods/web/attach", "pods/web/portforward", "pods/web/proxy/x"])
async def test_a_server_without_a_network_says_that_it_reaches_no_pods(
    handler: ApiHandler, path: str
) -> None:
    code, answer = await ask(handler, "POST", f"/api/v1/namespaces/default/{path}")
    assert (code, answer["reason"]) == (503, "ServiceUnavailable")

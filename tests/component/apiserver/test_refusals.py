"""Requests that kube-apiserver rejects: the same code and reason, and nothing stored."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from podlife.apiserver.endpoints import ApiHandler
from podlife.wire import Peer, Query, Request
from tests.kit import embedded

ADMINISTRATOR = Peer("admin", ("system:masters",))
NODE = Peer("system:node:node-0", ("system:nodes",))
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


async def send(
    handler: ApiHandler,
    method: str,
    path: str,
    body: object = None,
    *,
    peer: Peer = ADMINISTRATOR,
    accept: str = "",
) -> tuple[int, Any]:
    path, _, query = path.partition("?")
    data = json.dumps(body).encode() if body is not None else b""
    headers = {"Accept": accept} if accept else {}
    answer = await handler(Request(method, path, query=Query(query), headers=headers, body=data, peer=peer))
    assert not isinstance(answer.body, AsyncIterator), f"{answer.status} and a stream"
    return answer.status, json.loads(
        b"".join((answer.body,) if isinstance(answer.body, bytes) else answer.body)
    )


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/api/v1/nodes", 'node "node-0" is not allowed to modify node ""'),
        (LEASES, "can only access node lease with the same name as the requesting node"),
    ],
)
async def test_a_node_cannot_have_a_name_generated_from_its_own(path: str, why: str) -> None:
    """NodeRestriction compares names, and a prefix is none: it would become another node's."""
    handler = await embedded.start()
    code, answer = await send(handler, "POST", path, {"metadata": {"generateName": "node-0"}}, peer=NODE)
    assert code == 403
    assert answer["message"].endswith(f' "node-0" is forbidden: {why}')
    assert (await send(handler, "GET", path))[1]["items"] == []
    assert (await send(handler, "POST", path, {"metadata": {"name": "node-0"}}, peer=NODE))[0] == 201


async def test_a_refusal_in_a_terminating_namespace_names_the_prefix_of_a_generated_name() -> None:
    handler = await embedded.start()
    await send(handler, "POST", "/api/v1/namespaces", {"metadata": {"name": "brief"}})
    await send(handler, "DELETE", "/api/v1/namespaces/brief")
    body = {"metadata": {"generateName": "c-"}}
    code, answer = await send(handler, "POST", "/api/v1/namespaces/brief/configmaps", body)
    assert (code, answer["details"]["name"]) == (403, "c-")


async def test_an_update_that_means_another_uid_is_a_conflict() -> None:
    handler = await embedded.start()
    _, made = await send(handler, "POST", CONFIG_MAPS, {"metadata": {"name": "c"}, "data": {"key": "old"}})
    meant = {"metadata": {"name": "c", "uid": "another"}, "data": {"key": "new"}}
    code, answer = await send(handler, "PUT", f"{CONFIG_MAPS}/c", meant)
    assert (code, answer["reason"]) == (409, "Conflict")
    assert f"UID in precondition: another, UID in object meta: {made['metadata']['uid']}" in answer["message"]
    assert (await send(handler, "GET", f"{CONFIG_MAPS}/c"))[1]["data"] == {"key": "old"}
    meant["metadata"]["uid"] = made["metadata"]["uid"]
    assert (await send(handler, "PUT", f"{CONFIG_MAPS}/c", meant))[0] == 200


async def test_a_watch_whose_events_were_to_be_lists_is_refused_at_once() -> None:
    handler = await embedded.start()
    await send(handler, "POST", CONFIG_MAPS, {"metadata": {"name": "c"}})
    accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
    code, answer = await send(handler, "GET", f"{CONFIG_MAPS}?watch=1", accept=accept)
    assert (code, answer["reason"]) == (406, "NotAcceptable")


async def test_a_review_cannot_be_had_as_a_table() -> None:
    handler = await embedded.start()
    review = {"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}}
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    code, answer = await send(handler, "POST", REVIEWS, review, accept=table)
    assert (code, answer["reason"]) == (406, "NotAcceptable")
    # Who can do without has an answer.
    code, answer = await send(handler, "POST", REVIEWS, review, accept=f"{table},application/json")
    assert (code, answer["status"]["allowed"]) == (201, True)


@pytest.mark.parametrize(
    "number", ["1_0", "%2010", "10%0A", "-%2B5", "%D9%A3", "%C2%B2", "9" * 20, "9" * 5000]
)
@pytest.mark.parametrize(
    ("method", "asked"),
    [("GET", "limit"), ("GET", "watch=1&timeoutSeconds"), ("DELETE", "gracePeriodSeconds")],
)
async def test_what_go_would_not_read_as_an_integer_is_refused(method: str, asked: str, number: str) -> None:
    handler = await embedded.start()
    await send(handler, "POST", CONFIG_MAPS, {"metadata": {"name": "c"}})
    path = f"{CONFIG_MAPS}/c" if method == "DELETE" else CONFIG_MAPS
    code, answer = await send(handler, method, f"{path}?{asked}={number}")
    assert (code, answer["reason"]) == (400, "BadRequest")
    assert answer["message"].startswith('strconv.ParseInt: parsing "')
    assert (await send(handler, "GET", f"{CONFIG_MAPS}/c"))[0] == 200


@pytest.mark.parametrize("number", ["\u00b2", "\u0663", "9" * 5000])
async def test_digits_that_only_python_knows_never_fail_the_server(number: str) -> None:
    handler = await embedded.start()
    sets = "/apis/apps/v1/namespaces/default/daemonsets"
    labels = {"app": "x"}
    containers = [{"name": "c", "image": "i"}]
    body = {
        "metadata": {"name": "d", "annotations": {"deprecated.daemonset.template.generation": number}},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
            "updateStrategy": {"rollingUpdate": {"maxUnavailable": f"{number}%"}},
        },
    }
    code, answer = await send(handler, "POST", sets, body)
    assert (code, answer["reason"]) == (422, "Invalid")
    del body["spec"]["updateStrategy"]
    assert (await send(handler, "POST", sets, body))[0] == 201
    containers[0]["image"] = "j"
    assert (await send(handler, "PUT", f"{sets}/d", body))[0] == 200

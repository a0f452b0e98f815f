"""What the handler records of a request, from its arrival to the end of its response."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, cast

import pytest

from podlife.apiserver.assembly import assemble
from podlife.apiserver.audit import Auditor, read_policy
from podlife.apiserver.audit.event import AuditEntry, encode_event
from podlife.apiserver.authn import ADMIN as ADMIN_USER
from podlife.apiserver.authn import Authenticator
from podlife.apiserver.endpoints import ApiHandler
from podlife.apiserver.namespace import create_system_namespaces
from podlife.apiserver.storage import MemoryStore
from podlife.clock import ManualClock
from podlife.wire import Channel, Peer, Query, Request, Response, Upgrade

ADMIN = Peer("admin", ("system:masters",))
PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
POD = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}


class Server:
    """A handler with an audit log; `events` are what it has recorded."""

    def __init__(self, handler: ApiHandler, rules: str) -> None:
        self.handler = handler
        self.entries: list[AuditEntry] = []
        text = f"{{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{rules}]}}"
        policy = read_policy(text.encode(), "policy")
        handler.auditor = Auditor(policy, self.entries.append, ManualClock())

    async def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        headers: Mapping[str, str] | None = None,
        peer: Peer | None = ADMIN,
    ) -> Response:
        data = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else b""
        path, _, query = path.partition("?")
        sent = Request(method, path, Query(query), headers or {}, data, peer, "10.0.0.7")
        return await self.handler(sent)

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(encode_event(each)) for each in self.entries]


async def server(rules: str) -> Server:
    clock = ManualClock()
    handler = assemble(MemoryStore(), clock=clock, authenticator=Authenticator())
    await create_system_namespaces(handler.registry, ADMIN_USER)
    return Server(handler, rules)


async def test_a_write_is_recorded_when_it_arrives_and_when_it_is_answered() -> None:
    found = await server("{level: Metadata}")
    answer = await found.ask("POST", PODS, POD, headers={"User-Agent": "kubectl/v1.36"})
    assert answer.status == 201
    first, last = found.events
    assert [first["stage"], last["stage"]] == ["RequestReceived", "ResponseComplete"]
    assert first["auditID"] == last["auditID"] == dict(answer.headers)["Audit-Id"]
    assert last["verb"] == "create"
    assert last["user"] == {"username": "admin", "groups": ["system:masters", "system:authenticated"]}
    assert (last["userAgent"], last["sourceIPs"]) == ("kubectl/v1.36", ["10.0.0.7"])
    reference = {"resource": "pods", "namespace": "default", "name": "web", "apiVersion": "v1"}
    assert last["objectRef"] == reference
    assert last["responseStatus"] == {"metadata": {}, "code": 201}
    assert last["annotations"]["authorization.k8s.io/decision"] == "allow"
    assert "requestObject" not in last


async def test_the_level_decides_which_objects_are_recorded() -> None:
    found = await server("{level: Request, resources: [{resources: [pods]}]}, {level: RequestResponse}")
    await found.ask("POST", PODS, POD)
    await found.ask("POST", MAPS, {"metadata": {"name": "m"}})
    pod, config = found.events[1], found.events[3]
    assert (pod["requestObject"], "responseObject" in pod) == (POD, False)
    assert config["requestObject"] == {"metadata": {"name": "m"}}
    assert config["responseObject"]["metadata"]["name"] == "m"


@pytest.mark.parametrize("content", [b"metadata: {name: m}\n", b'{\n "metadata": {"name": "m"}\n}\n'])
async def test_a_body_of_any_form_is_recorded_as_json_in_one_line(content: bytes) -> None:
    found = await server("{level: Request}")
    kind = "application/yaml" if content.startswith(b"m") else "application/json"
    await found.ask("POST", MAPS, content, headers={"Content-Type": kind})
    assert b"\n" not in encode_event(found.entries[1])
    assert found.events[1]["requestObject"] == {"metadata": {"name": "m"}}


async def test_what_is_not_recorded_still_gets_an_id_and_nothing_else() -> None:
    found = await server("{level: None}")
    answer = await found.ask("GET", PODS)
    assert dict(answer.headers)["Audit-Id"]
    assert found.entries == []


@pytest.mark.parametrize(("given", "is_kept"), [("my-id", True), ("x" * 1000, False), ("a\x00b", False)])
async def test_the_id_that_a_client_gives_is_used_if_it_can_be(given: str, *, is_kept: bool) -> None:
    found = await server("{level: Metadata}")
    answer = await found.ask("GET", PODS, headers={"Audit-ID": given})
    assert (dict(answer.headers)["Audit-Id"] == given) is is_kept
    assert found.events[0]["auditID"] == dict(answer.headers)["Audit-Id"]


async def test_both_who_asked_and_whom_they_asked_for_are_named() -> None:
    found = await server("{level: Metadata, users: [admin]}")
    await found.ask("DELETE", f"{PODS}/web", headers={"Impersonate-User": "jane"})
    received, last = found.events
    assert "impersonatedUser" not in received
    assert last["user"]["username"] == "admin"
    assert last["impersonatedUser"]["username"] == "jane"
    assert last["responseStatus"]["code"] == 403
    assert last["annotations"]["authorization.k8s.io/decision"] == "forbid"


async def test_a_refused_request_does_not_put_its_body_into_the_log() -> None:
    found = await server("{level: Request}")
    answer = await found.ask("POST", PODS, POD, peer=Peer("nobody"))
    assert answer.status == 403
    assert "requestObject" not in found.events[-1]


async def test_a_stranger_is_recorded_without_a_name() -> None:
    found = await server("{level: Metadata}")
    answer = await found.ask("GET", PODS, peer=None)
    assert answer.status == 401
    [event] = found.events
    assert (event["stage"], event["user"], event["responseStatus"]["code"]) == ("ResponseStarted", {}, 401)


async def test_a_stranger_whose_body_is_not_even_read_is_recorded_too() -> None:
    found = await server("{level: Metadata}")
    with pytest.raises(Exception, match="Unauthorized"):
        found.handler.identify(Request("POST", PODS))
    [event] = found.events
    assert (event["verb"], event["objectRef"]["resource"]) == ("create", "pods")
    assert event["responseStatus"]["code"] == 401


async def test_a_watch_is_recorded_when_it_begins_and_when_it_ends() -> None:
    found = await server("{level: RequestResponse}")
    answer = await found.ask("GET", f"{PODS}?watch=1")
    assert isinstance(answer.body, AsyncIterator)
    stages = [each["stage"] for each in found.events]
    assert stages == ["RequestReceived", "ResponseStarted"]
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await anext(answer.body)
    await answer.body.aclose()  # type: ignore[attr-defined]
    [*_, last] = found.events
    assert (last["stage"], last["responseStatus"]) == ("ResponseComplete", {"metadata": {}, "code": 200})
    assert "responseObject" not in last


async def test_a_stream_that_nobody_reads_is_closed_and_recorded_once() -> None:
    found = await server("{level: Metadata}")
    answer = await found.ask("GET", f"{PODS}?watch=1")
    await answer.body.aclose()  # type: ignore[union-attr]
    await answer.body.aclose()  # type: ignore[union-attr]
    stages = [each["stage"] for each in found.events]
    assert stages == ["RequestReceived", "ResponseStarted", "ResponseComplete"]


async def test_an_exec_is_recorded_when_it_begins_and_when_it_ends() -> None:
    found = await server("{level: Metadata, omitStages: [RequestReceived]}")
    await found.ask("POST", PODS, POD)
    found.entries.clear()
    relayed = []

    class Proxy:
        async def connect(self, request: Request, namespace: str, name: str, subresource: str) -> Response:
            async def relay(channel: Channel) -> None:
                relayed.append([each["stage"] for each in found.events])

            return Response(101, upgrade=Upgrade(None, relay))

    found.handler.kubelet_proxy = Proxy()  # type: ignore[assignment] # a fake
    answer = await found.ask("GET", f"{PODS}/web/exec?command=sh")
    assert answer.upgrade is not None
    await answer.upgrade.relay(cast("Channel", None))
    assert relayed == [["ResponseStarted"]]
    assert [each["stage"] for each in found.events] == ["ResponseStarted", "ResponseComplete"]
    assert found.events[0]["responseStatus"]["code"] == 101


async def test_a_failure_of_the_server_is_a_panic_in_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    found = await server("{level: Metadata}")

    async def fail(*_: object) -> Response:
        raise RuntimeError("a bug")

    monkeypatch.setattr("podlife.apiserver.endpoints.handler._VERBS", {"get": fail})
    answer = await found.ask("GET", f"{PODS}/web")
    assert answer.status == 500
    [*_, last] = found.events
    assert (last["stage"], last["responseStatus"]["code"]) == ("Panic", 500)


async def test_a_request_that_is_cancelled_is_recorded_since_it_may_have_been_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = await server("{level: Metadata}")

    async def hang(*_: object) -> Response:
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    monkeypatch.setattr("podlife.apiserver.endpoints.handler._VERBS", {"delete": hang})
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await found.ask("DELETE", f"{PODS}/web")
    assert [each["stage"] for each in found.events] == ["RequestReceived", "ResponseComplete"]


async def test_of_a_large_head_little_is_recorded_and_all_of_it_counted() -> None:
    found = await server("{level: Metadata}")
    headers = {"X-Forwarded-For": "::," * 20_000}
    await found.ask("GET", f"{PODS}?labelSelector={'x' * 60_000}", headers=headers, peer=None)
    for event in found.events:
        assert len(event["sourceIPs"]) <= 33
        assert len(json.dumps(event)) < 12_000
    assert all(entry.size > 120_000 for entry in found.entries)


async def test_text_that_is_no_utf_8_is_escaped_and_not_lost() -> None:
    found = await server("{level: Metadata}")
    await found.ask("GET", f"{PODS}/web", headers={"User-Agent": "evil\udce4"})
    assert found.events[-1]["userAgent"] == "evil\\udce4"


async def test_a_body_that_is_too_large_is_left_out_and_that_is_told() -> None:
    found = await server("{level: RequestResponse}")
    body = {"metadata": {"name": "m"}, "data": {"k": "x" * (1 << 20)}}
    await found.ask("POST", MAPS, body)
    event = found.events[-1]
    assert event["annotations"]["audit.k8s.io/truncated"] == "true"
    assert len(json.dumps(event)) < 4096
    # So is a list, of which not even all is kept until it is written.
    await found.ask("POST", MAPS, {"metadata": {"name": "n"}, "data": {"k": "x" * (900 << 10)}})
    found.entries.clear()
    await found.ask("GET", MAPS)
    assert found.events[-1]["annotations"]["audit.k8s.io/truncated"] == "true"


@pytest.mark.parametrize("body", [b"[" * 5000, b"{", b'"text"', b"[]", b"\xff"])
async def test_a_body_that_cannot_be_read_is_left_out(body: bytes) -> None:
    found = await server("{level: Request}")
    await found.ask("POST", PODS, body)
    assert found.events[-1]["responseStatus"]["code"] == 400
    assert "requestObject" not in found.events[-1]


async def test_managed_fields_are_left_out_where_the_policy_says_so() -> None:
    found = await server("{level: RequestResponse, omitManagedFields: true}")
    managed = {"metadata": {"name": "m", "managedFields": [{"manager": "me"}]}}
    await found.ask("POST", MAPS, managed)
    assert found.events[-1]["requestObject"] == {"metadata": {"name": "m"}}

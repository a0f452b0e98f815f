"""Webhooks behind real HTTPS, called by a server in the test's own process."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from podlife.apiserver.admission.webhooks.client import WebhookClient
from podlife.apiserver.assembly import assemble
from podlife.apiserver.authn import ADMIN, Authenticator
from podlife.apiserver.endpoints import ApiHandler
from podlife.apiserver.namespace import create_system_namespaces
from podlife.apiserver.storage import MemoryStore
from podlife.clock import SystemClock
from tests.component.apiserver.requests import CONFIG_MAPS, PODS, ask, send
from tests.kit.real_pki import Pki
from tests.kit.wait import until
from tests.kit.webhook_server import (
    Answer,
    Json,
    Raw,
    WebhookServer,
    allow,
    deny,
    patch,
    patched,
    webhook,
    webhook_server,
)

GROUP = "/apis/admissionregistration.k8s.io/v1"
LABEL = {"op": "add", "path": "/metadata/labels", "value": {"by": "webhook"}}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebhookServer]:
    with webhook_server(tmp_path_factory.mktemp("webhook"), "hook.default.svc") as server:
        yield server


@pytest.fixture(autouse=True)
def forget(served: WebhookServer) -> None:
    served.reviews.clear()
    served.released.clear()


@asynccontextmanager
async def api() -> AsyncIterator[ApiHandler]:
    store = MemoryStore()
    client = WebhookClient(store)
    handler = assemble(store, clock=SystemClock(), authenticator=Authenticator(), call_webhook=client.call)
    await create_system_namespaces(handler.registry, ADMIN)
    try:
        yield handler
    finally:
        await client.close()


async def configure(handler: ApiHandler, kind: str, *webhooks: Json, name: str = "test") -> None:
    path = f"{GROUP}/{kind.lower()}webhookconfigurations"
    body = {"metadata": {"name": name}, "webhooks": list(webhooks)}
    code, answer = await ask(handler, "POST", path, body)
    assert code == 201, answer


def config_map(name: str = "a", **data: str) -> Json:
    return {"metadata": {"name": name}, "data": data}


async def test_a_patch_of_a_mutating_webhook_is_stored(served: WebhookServer) -> None:
    async with api() as handler:
        await configure(handler, "Mutating", webhook("label", served.at("/label", patch(LABEL))))
        code, made = await ask(handler, "POST", CONFIG_MAPS, config_map(x="1"))
        assert (code, made["metadata"]["labels"]) == (201, {"by": "webhook"})
        assert (await ask(handler, "GET", f"{CONFIG_MAPS}/a"))[1] == made
        [request] = served.asked("/label")
        assert (request["operation"], request["name"], request["namespace"]) == ("CREATE", "a", "default")
        assert request["kind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
        assert request["object"]["data"] == {"x": "1"}
        assert request["oldObject"] is None
        assert "uid" not in request["object"]["metadata"]


async def test_the_path_of_a_url_is_cleaned_as_upstream_does(served: WebhookServer) -> None:
    """envtest writes `//path`, which Go's servers redirect."""
    async with api() as handler:
        target = served.at("/clean/me", allow)
        target["url"] = target["url"].replace("/clean/me", "//clean/./x/../me/")
        await configure(handler, "Validating", webhook("clean", target))
        assert (await ask(handler, "POST", CONFIG_MAPS, config_map()))[0] == 201
        assert len(served.asked("/clean/me")) == 1


async def test_a_rejection_has_the_words_of_the_webhook_and_of_upstream(served: WebhookServer) -> None:
    async with api() as handler:
        await configure(handler, "Validating", webhook("no", served.at("/no", deny("not today", code=403))))
        code, answer = await ask(handler, "POST", CONFIG_MAPS, config_map())
        assert (code, answer["message"]) == (
            403,
            'admission webhook "no.example.com" denied the request: not today',
        )
        assert (await ask(handler, "GET", f"{CONFIG_MAPS}/a"))[0] == 404


async def test_an_update_a_patch_and_a_delete_are_reviewed_with_the_old_object(served: WebhookServer) -> None:
    async with api() as handler:
        await ask(handler, "POST", CONFIG_MAPS, config_map(x="1"))
        await configure(handler, "Validating", webhook("see", served.at("/see")))
        await configure(handler, "Mutating", webhook("label", served.at("/label", patch(LABEL))))
        code, put = await ask(handler, "PUT", f"{CONFIG_MAPS}/a", config_map(x="2"))
        assert (code, put["metadata"]["labels"]) == (200, {"by": "webhook"})
        change = {"data": {"x": "3"}}
        code, answer = await ask(handler, "PATCH", f"{CONFIG_MAPS}/a", change, kind="merge-patch+json")
        assert (code, answer["data"]) == (200, {"x": "3"})
        served.answers["/label"] = allow
        assert (await ask(handler, "DELETE", f"{CONFIG_MAPS}/a"))[0] == 200
        requests = served.asked("/see")
        assert [each["operation"] for each in requests] == ["UPDATE", "UPDATE", "DELETE"]
        assert [(each["oldObject"] or {}).get("data") for each in requests] == [
            {"x": "1"},
            {"x": "2"},
            {"x": "3"},
        ]
        assert requests[2]["object"] is None
        assert requests[0]["options"]["kind"] == "UpdateOptions"
        assert requests[2]["options"]["kind"] == "DeleteOptions"


async def test_a_webhook_may_write_while_it_is_asked(served: WebhookServer) -> None:
    """No lock is held: its own write of the same object succeeds, and the request is decided again on the result."""
    async with api() as handler:
        await ask(handler, "POST", CONFIG_MAPS, config_map(x="1"))
        loop = asyncio.get_running_loop()
        writes = iter(["first"])

        def write_once(request: Json) -> Json:
            if request["operation"] == "UPDATE" and (text := next(writes, "")):
                change = {"metadata": {"annotations": {"written": text}}}
                sent = ask(handler, "PATCH", f"{CONFIG_MAPS}/a", change, kind="merge-patch+json")
                code, _ = asyncio.run_coroutine_threadsafe(sent, loop).result(30)
                assert code == 200
            return {"allowed": True}

        await configure(handler, "Validating", webhook("write", served.at("/write", write_once)))
        change = {"data": {"x": "2"}}
        code, answer = await ask(handler, "PATCH", f"{CONFIG_MAPS}/a", change, kind="merge-patch+json")
        assert code == 200
        assert answer["data"] == {"x": "2"}
        assert answer["metadata"]["annotations"] == {"written": "first"}


async def test_a_webhook_that_always_writes_the_object_ends_in_a_conflict(served: WebhookServer) -> None:
    async with api() as handler:
        await ask(handler, "POST", CONFIG_MAPS, config_map(x="1"))
        loop = asyncio.get_running_loop()

        def write(request: Json) -> Json:
            if request["userInfo"]["username"] == "admin" and "mark" not in (request["object"]["data"] or {}):
                revision = request["object"]["metadata"]["resourceVersion"]
                body = config_map(mark=revision)
                sent = ask(handler, "PUT", f"{CONFIG_MAPS}/a", body)
                assert asyncio.run_coroutine_threadsafe(sent, loop).result(30)[0] == 200
            return {"allowed": True}

        await configure(handler, "Validating", webhook("write", served.at("/write", write)))
        path = f"{CONFIG_MAPS}/a"
        change = [{"op": "replace", "path": "/data", "value": {"x": "2"}}]
        code, answer = await ask(handler, "PATCH", path, change, kind="json-patch+json")
        assert (code, answer["reason"]) == (409, "Conflict")


async def test_a_webhook_that_hangs_fails_after_its_timeout_or_is_ignored(served: WebhookServer) -> None:
    async with api() as handler:
        hook = webhook("hang", served.at("/hang", served.hang), timeoutSeconds=1)
        await configure(handler, "Validating", hook)
        code, answer = await ask(handler, "POST", CONFIG_MAPS, config_map())
        assert code == 500
        assert answer["message"] == (
            'Internal error occurred: failed calling webhook "hang.example.com": failed to call webhook: '
            f'Post "https://127.0.0.1:{served.port}/hang?timeout=1s": context deadline exceeded'
        )
        await ask(handler, "DELETE", f"{GROUP}/validatingwebhookconfigurations/test")
        await configure(handler, "Validating", {**hook, "failurePolicy": "Ignore"})
        assert (await ask(handler, "POST", CONFIG_MAPS, config_map()))[0] == 201
        served.released.set()
        # TLS connections that were given up end when the webhook hangs up.
        await until(lambda: not served.connections)
        await asyncio.sleep(0.1)


def _nested(depth: int) -> bytes:
    return b'{"response":{"status":' + b'{"a":' * depth + b"1" + b"}" * depth + b"}}"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Raw(b"nonsense"), "couldn't get version/kind; json parse error"),
        (Raw(b""), "0-length response with status code: 200"),
        (Raw(b"{}"), "webhook response was absent"),
        (Raw(b'{"kind":"Pod","apiVersion":"v1"}'), 'no kind "Pod" is registered for version "v1"'),
        (Raw(b"x" * (9 << 20)), "the answer is larger than 8388608 bytes"),
        (Raw(_nested(100_000)), "the JSON is nested too deeply"),
        (
            Raw(b"", 302, {"Location": "https://127.0.0.1:1/"}),
            "the server responded with the status code 302",
        ),
        (Raw(b"x", 500, {"Content-Type": "text/plain"}), 'an error on the server ("x") has prevented'),
        (Raw(b"", 404, {}), "the server could not find the requested resource"),
    ],
)
async def test_a_wrong_answer_is_a_failure_that_says_why(
    served: WebhookServer, answer: Raw, why: str
) -> None:
    async with api() as handler:
        await configure(handler, "Mutating", webhook("bad", served.at("/bad", lambda _: answer)))
        code, found = await ask(handler, "POST", CONFIG_MAPS, config_map())
        assert code == 500
        assert found["message"].startswith(
            'Internal error occurred: failed calling webhook "bad.example.com": '
        )
        assert why in found["message"]


@pytest.mark.parametrize(
    ("response", "why"),
    [
        ({"uid": "x", "allowed": True}, 'got "x"'),
        ({"allowed": True, "patch": "W10="}, "webhook returned response.patch but not response.patchType"),
        (
            {"allowed": True, "patchType": "JSONPatch"},
            "webhook returned response.patchType but not response.patch",
        ),
    ],
)
async def test_a_review_that_contradicts_itself_is_a_failure(
    served: WebhookServer, response: Json, why: str
) -> None:
    async with api() as handler:
        await configure(handler, "Mutating", webhook("bad", served.at("/bad", lambda _: response)))
        code, found = await ask(handler, "POST", CONFIG_MAPS, config_map())
        assert code == 500
        assert "received invalid webhook response: " in found["message"]
        assert why in found["message"]


@pytest.mark.parametrize(
    ("operation", "code", "why"),
    [
        ({"op": "add", "path": "/metadata/labels", "value": {"a b": "c"}}, 422, "metadata.labels"),
        ({"op": "add", "path": "/data", "value": ["x"]}, 500, "Internal error occurred"),
        ({"op": "remove", "path": "/absent"}, 500, "Internal error occurred"),
        ({"op": "replace", "path": "/kind", "value": "Pod"}, 500, "converting (v1.Pod) to (core.ConfigMap)"),
        (
            {"op": "replace", "path": "/metadata/namespace", "value": "other"},
            400,
            "does not match the namespace",
        ),
    ],
)
async def test_a_patch_that_makes_the_object_invalid_is_rejected(
    served: WebhookServer, operation: Json, code: int, why: str
) -> None:
    async with api() as handler:
        await configure(handler, "Mutating", webhook("bad", served.at("/bad", patch(operation))))
        found, answer = await ask(handler, "POST", CONFIG_MAPS, config_map())
        assert (found, why in answer["message"]) == (code, True), answer


async def test_a_certificate_of_another_authority_is_not_trusted(
    served: WebhookServer, tmp_path: Path
) -> None:
    async with api() as handler:
        other = Pki(tmp_path).ca_file.read_bytes()
        config = served.at("/ok") | {"caBundle": base64.b64encode(other).decode()}
        await configure(handler, "Validating", webhook("untrusted", config))
        code, answer = await ask(handler, "POST", CONFIG_MAPS, config_map())
        assert code == 500
        assert answer["message"].endswith(
            "tls: failed to verify certificate: x509: certificate signed by unknown authority"
        )
        assert not served.reviews


async def test_a_large_object_is_patched_off_the_event_loop(served: WebhookServer) -> None:
    async with api() as handler:
        await configure(handler, "Mutating", webhook("label", served.at("/label", patch(LABEL))))
        data = {f"key-{index}": "x" * 100 for index in range(5_000)}
        code, made = await ask(handler, "POST", CONFIG_MAPS, config_map(**data))
        assert (code, made["metadata"]["labels"], len(made["data"])) == (201, {"by": "webhook"}, 5_000)


async def test_a_patch_that_makes_the_object_too_large_is_refused(served: WebhookServer) -> None:
    async with api() as handler:
        operation = {"op": "add", "path": "/data/big", "value": "x" * (4 << 20)}
        await configure(handler, "Mutating", webhook("grow", served.at("/grow", patch(operation))))
        code, answer = await ask(handler, "POST", CONFIG_MAPS, config_map(x="1"))
        assert (code, answer["reason"]) == (413, "RequestEntityTooLarge")


async def test_a_name_that_the_certificate_does_not_have(served: WebhookServer) -> None:
    async with api() as handler:
        service = {"namespace": "default", "name": "other", "path": "/svc"}
        spec = {"type": "ExternalName", "externalName": "localhost"}
        services = "/api/v1/namespaces/default/services"
        await ask(handler, "POST", services, {"metadata": {"name": "other"}, "spec": spec})
        config = {"service": {**service, "port": served.port}, "caBundle": served.ca_bundle}
        await configure(handler, "Validating", webhook("svc", config))
        _, answer = await ask(handler, "POST", CONFIG_MAPS, config_map())
        assert answer["message"].endswith(
            "tls: failed to verify certificate: x509: certificate is not valid for other.default.svc"
        )


async def test_nothing_listens(served: WebhookServer) -> None:
    async with api() as handler:
        config = {**served.at("/ok"), "url": "https://127.0.0.1:1/ok"}
        await configure(handler, "Validating", webhook("gone", config))
        _, answer = await ask(handler, "POST", CONFIG_MAPS, config_map())
        assert answer["message"].endswith(
            'Post "https://127.0.0.1:1/ok?timeout=10s": dial tcp 127.0.0.1:1: connect: connection refused'
        )


async def test_a_service_leads_to_its_ready_pod_by_the_name_in_the_certificate(served: WebhookServer) -> None:
    async with api() as handler:
        service = {"namespace": "default", "name": "hook", "path": "/svc"}
        served.answers["/svc"] = allow
        config = {"service": service, "caBundle": served.ca_bundle}
        await configure(handler, "Validating", webhook("svc", config))
        _, answer = await ask(handler, "POST", CONFIG_MAPS, config_map())
        assert answer["message"].endswith(
            'Post "https://hook.default.svc:443/svc?timeout=10s": service "hook" not found'
        )
        ports = [{"port": 443, "targetPort": served.port}]
        spec = {"selector": {"app": "hook"}, "ports": ports}
        services = "/api/v1/namespaces/default/services"
        await ask(handler, "POST", services, {"metadata": {"name": "hook"}, "spec": spec})
        _, answer = await ask(handler, "POST", CONFIG_MAPS, config_map())
        assert answer["message"].endswith('no endpoints available for service "hook"')
        pod = {
            "metadata": {"name": "hook", "labels": {"app": "hook"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
        await ask(handler, "POST", PODS, pod)
        status = {"podIP": "127.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]}
        change = {"status": status}
        await ask(handler, "PATCH", f"{PODS}/hook/status", change, kind="merge-patch+json")
        assert (await ask(handler, "POST", CONFIG_MAPS, config_map()))[0] == 201


async def test_webhooks_run_in_order_and_again_if_needed(served: WebhookServer) -> None:
    def append(text: str) -> Answer:
        def answer(request: Json) -> Json:
            seen = request["object"]["data"].get("seen", "")
            if text in seen:
                return {"allowed": True}
            return patched({"op": "add", "path": "/data/seen", "value": seen + text})

        return answer

    async with api() as handler:
        hooks = [
            webhook("a", served.at("/a", append("a")), reinvocationPolicy="IfNeeded"),
            webhook("b", served.at("/b", append("b"))),
        ]
        await configure(handler, "Mutating", webhook("c", served.at("/c", append("c"))), name="2")
        await configure(handler, "Mutating", *hooks, name="1")
        code, made = await ask(handler, "POST", CONFIG_MAPS, config_map(x="1"))
        assert (code, made["data"]["seen"]) == (201, "abc")
        assert [path for path, _ in served.reviews] == ["/a", "/b", "/c", "/a"]


async def test_a_dry_run_reaches_webhooks_and_stores_nothing(served: WebhookServer) -> None:
    async with api() as handler:
        await configure(handler, "Mutating", webhook("label", served.at("/label", patch(LABEL))))
        code, made = await ask(handler, "POST", f"{CONFIG_MAPS}?dryRun=All", config_map())
        assert (code, made["metadata"]["labels"]) == (201, {"by": "webhook"})
        assert [request["dryRun"] for request in served.asked("/label")] == [True]
        assert (await ask(handler, "GET", f"{CONFIG_MAPS}/a"))[0] == 404


async def test_warnings_come_with_the_response_and_with_a_rejection(served: WebhookServer) -> None:
    async with api() as handler:
        answers: dict[bool, Json] = {
            True: {"allowed": True, "warnings": ["beware"]},
            False: {"allowed": False, "warnings": ["beware"]},
        }
        hook = served.at("/warn", lambda request: answers[request["name"] == "good"])
        await configure(handler, "Validating", webhook("warn", hook))
        for name, code in (("good", 201), ("bad", 400)):
            response = await send(handler, "POST", CONFIG_MAPS, config_map(name))
            assert response.status == code
            assert ("Warning", '299 - "beware"') in list(response.headers)


async def test_configurations_themselves_are_exempt(served: WebhookServer) -> None:
    async with api() as handler:
        everything = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}
        hook = webhook("no", served.at("/no", deny()), rules=[everything])
        await configure(handler, "Validating", hook)
        assert (await ask(handler, "POST", CONFIG_MAPS, config_map()))[0] == 400
        path = f"{GROUP}/validatingwebhookconfigurations/test"
        assert (await ask(handler, "DELETE", path))[0] == 200
        assert (await ask(handler, "POST", CONFIG_MAPS, config_map()))[0] == 201


async def test_subresources_are_reviewed_as_what_they_are(served: WebhookServer) -> None:
    async with api() as handler:
        rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}
        await configure(handler, "Validating", webhook("see", served.at("/see"), rules=[rule]))
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        await ask(handler, "POST", PODS, pod)
        binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
        assert (await ask(handler, "POST", f"{PODS}/p/binding", binding))[0] == 201
        eviction = {"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": "p"}}
        assert (await ask(handler, "POST", f"{PODS}/p/eviction", eviction))[0] == 201
        template = {"metadata": {"labels": {"a": "b"}}, "spec": pod["spec"]}
        spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
        deployments = "/apis/apps/v1/namespaces/default/deployments"
        await ask(handler, "POST", deployments, {"metadata": {"name": "d"}, "spec": spec})
        change = {"spec": {"replicas": 3}}
        code, _ = await ask(handler, "PATCH", f"{deployments}/d/scale", change, kind="merge-patch+json")
        assert code == 200
        await ask(handler, "POST", "/api/v1/namespaces", {"metadata": {"name": "n"}})
        assert (await ask(handler, "DELETE", "/api/v1/namespaces/n"))[0] == 200
        seen = [
            (
                each["operation"],
                each["resource"]["resource"],
                each.get("subResource", ""),
                each["kind"]["kind"],
            )
            for each in served.asked("/see")
        ]
        assert seen == [
            ("CREATE", "pods", "", "Pod"),
            ("CREATE", "pods", "binding", "Binding"),
            ("CREATE", "pods", "eviction", "Eviction"),
            ("CREATE", "deployments", "", "Deployment"),
            ("UPDATE", "deployments", "scale", "Scale"),
            ("CREATE", "namespaces", "", "Namespace"),
            ("DELETE", "namespaces", "", "Namespace"),
        ]


async def test_a_collection_is_deleted_object_by_object(served: WebhookServer) -> None:
    async with api() as handler:
        for name in ("a", "b"):
            await ask(handler, "POST", CONFIG_MAPS, config_map(name))
        refuse_b: Answer = lambda request: {"allowed": request["oldObject"]["metadata"]["name"] != "b"}  # noqa: E731
        await configure(handler, "Validating", webhook("keep", served.at("/keep", refuse_b)))
        code, answer = await ask(handler, "DELETE", CONFIG_MAPS)
        assert (code, answer["message"]) == (
            400,
            'admission webhook "keep.example.com" denied the request without explanation',
        )
        left = (await ask(handler, "GET", CONFIG_MAPS))[1]["items"]
        assert [each["metadata"]["name"] for each in left] == ["b"]


async def test_events_of_the_other_group_are_equivalent(served: WebhookServer) -> None:
    async with api() as handler:
        rule = {
            "apiGroups": ["events.k8s.io"],
            "apiVersions": ["v1"],
            "operations": ["*"],
            "resources": ["events"],
        }
        await configure(handler, "Validating", webhook("see", served.at("/see"), rules=[rule]))
        about = {"kind": "Pod", "namespace": "default", "name": "p"}
        event = {"metadata": {"name": "e"}, "involvedObject": about, "reason": "R", "message": "m"}
        code, answer = await ask(handler, "POST", "/api/v1/namespaces/default/events", event)
        assert code == 201, answer
        [request] = served.asked("/see")
        assert request["kind"]["group"] == "events.k8s.io"
        assert request["requestKind"]["group"] == ""
        assert request["object"]["note"] == "m"


def test_a_review_of_the_older_version_needs_no_uid() -> None:
    from podlife.apiserver.admission.webhooks.review import verdict_of

    body: Any = {"response": {"allowed": True, "patch": "W10="}}
    found = verdict_of(json.dumps(body).encode(), uid="u", version="v1beta1", is_mutating=True)
    assert (found.allowed, found.patch) == (True, b"[]")

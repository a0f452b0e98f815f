"""Custom resources that a webhook converts, through the handler, under virtual time."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable
from copy import deepcopy
from typing import Any

from podlife.api.codec import Object
from podlife.apiserver.admission.webhooks import CallError, ClientConfig
from podlife.testing import virtual_time
from podlife.wire import Body
from tests.component.apiserver.requests import TABLE, send
from tests.component.apiserver.test_custom_resources import APPLY, CRDS, GROUP, MERGE, Server

V1, V2 = (f"/apis/{GROUP}/{version}/namespaces/default/widgets" for version in ("v1", "v2"))
_DEFINITION = f"{CRDS}/widgets.{GROUP}"


def converted(obj: Object, target: str) -> Object:
    """v1 has `spec.address`, v2 `spec.host` and `spec.port`."""
    obj = deepcopy(obj)
    spec = obj.setdefault("spec", {})
    if target.endswith("v2") and "address" in spec:
        spec["host"], _, spec["port"] = spec.pop("address").partition(":")
    elif target.endswith("v1") and "host" in spec:
        spec["address"] = f"{spec.pop('host')}:{spec.pop('port', '')}"
    obj["apiVersion"] = target
    return obj


class Converter:
    """A conversion webhook. `asked` has the number of objects of each review."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.failure = ""
        self.change: Callable[[Object], None] = lambda obj: None
        self.before: Callable[[], Any] = lambda: None
        self.hangs = False

    async def __call__(self, config: ClientConfig, body: bytes, seconds: float) -> bytes:
        review = json.loads(body)
        request = review["request"]
        self.asked.append(len(request["objects"]))
        if self.hangs:
            await asyncio.sleep(seconds)
            raise CallError('Post "https://x/": context deadline exceeded')
        if (waited := self.before()) is not None:
            await waited
        objects = [converted(obj, request["desiredAPIVersion"]) for obj in request["objects"]]
        for obj in objects:
            self.change(obj)
        result = {"status": "Failure", "message": self.failure} if self.failure else {"status": "Success"}
        response = {"uid": request["uid"], "convertedObjects": objects, "result": result}
        return json.dumps({**review, "response": response}).encode()


def definition(storage: str = "v1") -> Object:
    text = {"type": "string"}
    specs = {"v1": {"address": text}, "v2": {"host": text, "port": text}}
    versions = [
        {
            "name": name,
            "served": True,
            "storage": name == storage,
            "schema": {
                "openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": {"type": "object", "properties": spec}},
                }
            },
            "selectableFields": [{"jsonPath": f".spec.{next(iter(spec))}"}],
            "additionalPrinterColumns": [
                {"name": "First", "type": "string", "jsonPath": f".spec.{next(iter(spec))}"}
            ],
        }
        for name, spec in specs.items()
    ]
    webhook = {"clientConfig": {"url": "https://127.0.0.1:1/"}, "conversionReviewVersions": ["v1"]}
    return {
        "metadata": {"name": f"widgets.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": versions,
            "conversion": {"strategy": "Webhook", "webhook": webhook},
        },
    }


def widget(name: str, version: str = "v1", **spec: str) -> Object:
    spec = spec or ({"address": "h:1"} if version == "v1" else {"host": "h", "port": "1"})
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": spec,
    }


async def first_of(body: Body) -> bytes:
    assert isinstance(body, AsyncIterator)
    return await anext(body)


@virtual_time
async def test_object_is_stored_in_one_version_and_shown_in_both() -> None:
    webhook = Converter()
    async with Server(call_webhook=webhook) as server:
        await server.offer(definition())
        code, made = await server.ask("POST", V2, widget("a", "v2"))
        assert (code, made["apiVersion"], made["spec"]) == (201, f"{GROUP}/v2", {"host": "h", "port": "1"})
        webhook.asked.clear()
        _, stored = await server.ask("GET", f"{V1}/a")
        assert (stored["apiVersion"], stored["spec"]) == (f"{GROUP}/v1", {"address": "h:1"})
        await server.ask("POST", V1, widget("b"))
        _, changed = await server.ask("PATCH", f"{V1}/b", {"spec": {"address": "i:2"}}, kind=MERGE)
        assert (changed["metadata"]["generation"], webhook.asked) == (2, [])
        _, shown = await server.ask("GET", f"{V2}/b")
        assert (shown["spec"], webhook.asked) == ({"host": "i", "port": "2"}, [1])


@virtual_time
async def test_long_list_is_converted_in_few_reviews_and_a_page_only_as_a_page() -> None:
    webhook = Converter()
    async with Server(call_webhook=webhook) as server:
        await server.offer(definition())
        for number in range(600):
            await server.ask("POST", V1, widget(f"w{number:03}", address=f"h:{number}"))
        _, found = await server.ask("GET", V2)
        assert [each["spec"]["port"] for each in found["items"]] == [str(number) for number in range(600)]
        assert webhook.asked == [500, 100]
        webhook.asked.clear()
        _, page = await server.ask("GET", f"{V2}?limit=2")
        assert (len(page["items"]), webhook.asked) == (2, [2])
        _, chosen = await server.ask("GET", f"{V2}?fieldSelector=spec.host%3Dother")
        assert chosen["items"] == []
        _, table = await server.ask("GET", f"{V2}?limit=1", accept=TABLE)
        assert table["rows"][0]["cells"] == ["w000", "h"]


@virtual_time
async def test_objects_of_an_older_storage_version_are_converted_until_they_are_written_again() -> None:
    webhook = Converter()
    async with Server(call_webhook=webhook) as server:
        await server.offer(definition())
        await server.ask("POST", V1, widget("old"))
        _, crd = await server.ask("GET", _DEFINITION)
        crd["spec"]["versions"][0]["storage"], crd["spec"]["versions"][1]["storage"] = False, True
        code, crd = await server.ask("PUT", _DEFINITION, crd)
        assert (code, crd["status"]["storedVersions"]) == (200, ["v1", "v2"])
        await asyncio.sleep(1)
        await server.ask("POST", V2, widget("young", "v2"))
        webhook.asked.clear()
        for path, spec in ((V1, {"address": "h:1"}), (V2, {"host": "h", "port": "1"})):
            _, found = await server.ask("GET", path)
            assert [each["spec"] for each in found["items"]] == [spec, spec]
        assert webhook.asked == [1, 1]
        # As upstream: a change of nothing moves an object to the storage version.
        _, old = await server.ask("GET", f"{V2}/old")
        await server.ask("PUT", f"{V2}/old", old)
        webhook.asked.clear()
        await server.ask("GET", V2)
        assert webhook.asked == []


@virtual_time
async def test_objects_from_before_the_webhook_are_in_the_first_stored_version() -> None:
    webhook = Converter()
    single = definition()
    single["spec"]["versions"].pop()
    single["spec"]["conversion"] = {"strategy": "None"}
    async with Server(call_webhook=webhook) as server:
        await server.offer(single)
        await server.ask("POST", V1, widget("a"))
        _, crd = await server.ask("GET", _DEFINITION)
        crd["spec"] = definition("v2")["spec"]
        assert (await server.ask("PUT", _DEFINITION, crd))[0] == 200
        await asyncio.sleep(1)
        assert (await server.ask("GET", f"{V2}/a"))[1]["spec"] == {"host": "h", "port": "1"}
        # And back: without a webhook all versions look the same.
        _, crd = await server.ask("GET", _DEFINITION)
        crd["spec"]["conversion"] = {"strategy": "None"}
        assert (await server.ask("PUT", _DEFINITION, crd))[0] == 200
        await asyncio.sleep(1)
        _, shown = await server.ask("GET", f"{V2}/a")
        assert (shown["apiVersion"], shown["spec"]) == (f"{GROUP}/v2", {})


@virtual_time
async def test_watchers_of_a_version_share_the_conversion_of_an_event() -> None:
    webhook = Converter()
    async with Server(call_webhook=webhook) as server:
        await server.offer(definition())
        watchers = [
            await send(server.handler, "GET", f"/apis/{GROUP}/{version}/widgets?watch=true")
            for version in ("v2", "v2", "v1")
        ]
        async with asyncio.TaskGroup() as group:
            reads = [group.create_task(first_of(each.body)) for each in watchers]
            await asyncio.sleep(1)
            await server.ask("POST", V1, widget("a"))
        specs = [json.loads(read.result())["object"]["spec"] for read in reads]
        assert specs == [{"host": "h", "port": "1"}] * 2 + [{"address": "h:1"}]
        assert webhook.asked == [1]
        for each in watchers:
            await each.body.aclose()  # type: ignore[union-attr]


@virtual_time
async def test_watch_ends_with_an_error_if_an_event_cannot_be_converted() -> None:
    webhook = Converter()
    async with Server(call_webhook=webhook) as server:
        await server.offer(definition())
        watcher = (await send(server.handler, "GET", f"{V2}?watch=true")).body
        async with asyncio.TaskGroup() as group:
            read = group.create_task(first_of(watcher))
            await asyncio.sleep(1)
            webhook.failure = "no way"
            await server.ask("POST", V1, widget("a"))
        event = json.loads(read.result())
        assert (event["type"], event["object"]["code"]) == ("ERROR", 500)
        assert "Kind=Widget failed: no way" in event["object"]["message"]
        assert [part async for part in watcher] == []  # type: ignore[union-attr]
        # The next watch starts with the objects, which cannot be shown either; then they can.
        first = (await send(server.handler, "GET", f"{V2}?watch=true&timeoutSeconds=1")).body
        assert [json.loads(part)["type"] async for part in first] == ["ERROR"]  # type: ignore[union-attr]
        webhook.failure = ""
        later = (await send(server.handler, "GET", f"{V2}?watch=true&timeoutSeconds=1")).body
        assert [json.loads(part)["type"] async for part in later if part] == ["ADDED"]  # type: ignore[union-attr]


@virtual_time
async def test_webhook_that_hangs_delays_neither_other_requests_nor_its_own_for_long() -> None:
    webhook = Converter()
    async with Server(call_webhook=webhook) as server:
        await server.offer(definition())
        await server.ask("POST", V1, widget("a"))
        webhook.hangs = True
        loop = asyncio.get_running_loop()
        start = loop.time()
        change = {"spec": {"host": "x"}}
        async with asyncio.TaskGroup() as group:
            slow = group.create_task(server.ask("PATCH", f"{V2}/a", change, kind=MERGE))
            await asyncio.sleep(1)
            code, _ = await server.ask("PATCH", f"{V1}/a", {"spec": {"address": "j:3"}}, kind=MERGE)
            assert (code, loop.time() - start) == (200, 1)
        code, failure = slow.result()
        assert (code, loop.time() - start) == (500, 30)
        assert "deadline exceeded" in failure["message"]


@virtual_time
async def test_change_is_computed_again_if_the_object_is_written_during_its_conversion() -> None:
    webhook = Converter()
    async with Server(call_webhook=webhook) as server:
        await server.offer(definition())
        await server.ask("POST", V1, widget("a"))
        calls = iter(range(100))

        async def write_once() -> None:
            if next(calls) == 0:
                await server.ask("PATCH", f"{V1}/a", {"metadata": {"labels": {"x": "y"}}}, kind=MERGE)

        webhook.before = write_once
        code, made = await server.ask("PATCH", f"{V2}/a", {"spec": {"port": "9"}}, kind=MERGE)
        assert (code, made["metadata"]["labels"], made["spec"]["port"]) == (200, {"x": "y"}, "9")


@virtual_time
async def test_definition_and_namespace_are_removed_though_the_webhook_fails() -> None:
    webhook = Converter()
    webhook.failure = "dead"
    async with Server(call_webhook=webhook) as server:
        await server.offer(definition())
        await server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "n"}})
        await server.ask("POST", V1.replace("default", "n"), widget("a"))
        await server.ask("POST", V1, widget("a"))
        assert (await server.ask("DELETE", f"{V2}/a"))[0] == 500
        await server.ask("DELETE", "/api/v1/namespaces/n")
        await server.until_gone("/api/v1/namespaces/n")
        await server.ask("DELETE", _DEFINITION)
        await server.until_gone(_DEFINITION)


@virtual_time
async def test_applier_of_one_version_conflicts_with_one_of_another() -> None:
    async with Server(call_webhook=Converter()) as server:
        await server.offer(definition())
        await server.ask("PATCH", f"{V1}/a?fieldManager=one", widget("a"), kind=APPLY)
        body = widget("a", "v2", host="h", port="2")
        code, conflict = await server.ask("PATCH", f"{V2}/a?fieldManager=two", body, kind=APPLY)
        assert (code, conflict["message"]) == (
            409,
            'Apply failed with 1 conflict: conflict with "one": .spec.address',
        )


@virtual_time
async def test_converted_object_may_not_be_larger_than_an_object() -> None:
    webhook = Converter()
    async with Server(call_webhook=webhook) as server:
        await server.offer(definition())
        webhook.change = lambda obj: obj["spec"].update(address="x" * 4_000_000)
        code, refused = await server.ask("POST", V2, widget("a", "v2"))
        assert (code, refused["reason"]) == (413, "RequestEntityTooLarge")


HOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


@virtual_time
async def test_admission_webhook_of_one_version_sees_and_changes_objects_of_another_in_its_own() -> None:
    converter, seen = Converter(), []

    async def call(config: ClientConfig, body: bytes, seconds: float) -> bytes:
        if "admit" not in config.url:
            return await converter(config, body, seconds)
        review = json.loads(body)
        seen.append(review["request"]["object"])
        patch = json.dumps([{"op": "replace", "path": "/spec/address", "value": "patched:9"}]).encode()
        response = {"uid": review["request"]["uid"], "allowed": True, "patchType": "JSONPatch"}
        return json.dumps(
            {**review, "response": response | {"patch": base64.b64encode(patch).decode()}}
        ).encode()

    async with Server(call_webhook=call) as server:
        await server.offer(definition())
        rule = {"apiGroups": [GROUP], "apiVersions": ["v1"], "resources": ["widgets"], "operations": ["*"]}
        hook = {
            "name": "hook.example.com",
            "clientConfig": {"url": "https://127.0.0.1:1/admit"},
            "rules": [rule],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        code, answer = await server.ask("POST", HOOKS, {"metadata": {"name": "h"}, "webhooks": [hook]})
        assert code == 201, answer
        code, made = await server.ask("POST", V2, widget("a", "v2"))
        assert (code, made["spec"]) == (201, {"host": "patched", "port": "9"})
        assert [(obj["apiVersion"], obj["spec"]) for obj in seen] == [(f"{GROUP}/v1", {"address": "h:1"})]
        code, made = await server.ask("PATCH", f"{V2}/a", {"spec": {"host": "i"}}, kind=MERGE)
        assert (code, made["spec"], seen[-1]["spec"]) == (
            200,
            {"host": "patched", "port": "9"},
            {"address": "i:9"},
        )

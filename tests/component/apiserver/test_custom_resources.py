"""Custom resources through the handler, with the controller of their definitions, under virtual time."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from typing import Any, Self

import pytest

from podlife.api.codec import Object
from podlife.apiserver.admission.webhooks import Call
from podlife.apiserver.apiextensions.controller import CustomResourceDefinitionController
from podlife.apiserver.assembly import assemble
from podlife.apiserver.authn import ADMIN, Authenticator
from podlife.apiserver.namespace import NamespaceController, create_system_namespaces
from podlife.apiserver.storage import MemoryStore
from podlife.testing import LoopClock, virtual_time
from tests.component.apiserver.requests import ask, send, whole
from tests.kit.protobuf import envelope, message
from tests.kit.wait import until

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "example.com"
WIDGETS = f"/apis/{GROUP}/v1/namespaces/default/widgets"
MERGE = "merge-patch+json"
SPEC: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definition(plural: str = "widgets", schema: Object | None = None, **names: Any) -> Object:
    props = schema or {"type": "object", "properties": {"spec": SPEC}}
    kind = plural.removesuffix("s").capitalize()
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": props}}
    return {
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind, **names},
            "versions": [version],
        },
    }


def widget(name: str, **fields: Any) -> Object:
    metadata = {"name": name, **fields.pop("metadata", {})}
    return {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": metadata, **fields}


class Server:
    def __init__(self, store: MemoryStore | None = None, call_webhook: Call | None = None) -> None:
        self.store = store or MemoryStore()
        self.handler = assemble(
            self.store, clock=LoopClock(), authenticator=Authenticator(), call_webhook=call_webhook
        )
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await create_system_namespaces(self.handler.registry, ADMIN)
        group = await self._stack.enter_async_context(asyncio.TaskGroup())
        registry = self.handler.registry
        self._tasks = [
            group.create_task(NamespaceController(registry).run()),
            group.create_task(CustomResourceDefinitionController(registry).run()),
        ]
        return self

    async def __aexit__(self, *failure: Any) -> None:
        for task in self._tasks:
            task.cancel()
        await self._stack.__aexit__(*failure)

    async def ask(self, method: str, path: str, body: object = None, **how: Any) -> tuple[int, Any]:
        return await ask(self.handler, method, path, body, **how)

    async def condition(self, plural: str, kind: str) -> tuple[str, str] | None:
        code, crd = await self.ask("GET", f"{CRDS}/{plural}.{GROUP}")
        conditions = (crd["status"]["conditions"] or []) if code == 200 else []
        return next(((each["status"], each["reason"]) for each in conditions if each["type"] == kind), None)

    async def offer(self, crd: Object) -> None:
        code, answer = await self.ask("POST", CRDS, crd)
        assert code == 201, answer
        plural = crd["spec"]["names"]["plural"]

        async def is_established() -> bool:
            return await self.condition(plural, "Established") == ("True", "InitialNamesAccepted")

        await until(is_established)

    async def until_gone(self, path: str) -> None:
        await until(lambda: self.is_gone(path))

    async def is_gone(self, path: str) -> bool:
        return (await self.ask("GET", path))[0] == 404


@virtual_time
async def test_definition_is_served_as_soon_as_it_is_established() -> None:
    async with Server() as server:
        assert (await server.ask("GET", WIDGETS))[0] == 404
        await server.offer(definition())
        assert (await server.ask("POST", WIDGETS, widget("a", spec={"x": 1})))[0] == 201
        assert (await server.ask("GET", f"{WIDGETS}/a"))[1]["spec"] == {"x": 1}
        listed = (await server.ask("GET", f"/apis/{GROUP}/v1"))[1]["resources"]
        assert [each["name"] for each in listed] == ["widgets"]


@virtual_time
async def test_server_that_starts_again_serves_the_stored_definitions_at_once() -> None:
    async with Server() as server:
        await server.offer(definition())
        await server.ask("POST", WIDGETS, widget("a"))
    again = Server(server.store)
    assert (await again.ask("GET", f"{WIDGETS}/a"))[0] == 200


@virtual_time
async def test_deleted_definition_waits_for_the_finalizers_of_its_instances() -> None:
    async with Server() as server:
        await server.offer(definition())
        held = widget("held", metadata={"finalizers": ["example.com/hold"]})
        for each in (widget("a"), held):
            assert (await server.ask("POST", WIDGETS, each))[0] == 201
        await server.ask("DELETE", f"{CRDS}/widgets.{GROUP}")
        await until(lambda: server.is_gone(f"{WIDGETS}/a"))
        assert await server.condition("widgets", "Terminating") == ("True", "InstanceDeletionInProgress")
        code, refused = await server.ask("POST", WIDGETS, widget("late"))
        assert (code, refused["reason"]) == (403, "Forbidden")
        await server.ask("PATCH", f"{WIDGETS}/held", {"metadata": {"finalizers": None}}, kind=MERGE)
        await until(lambda: server.is_gone(f"{CRDS}/widgets.{GROUP}"))
        await until(lambda: server.is_gone(WIDGETS))
        assert server.store.count(f"widgets.{GROUP}") == 0


@virtual_time
@pytest.mark.parametrize("spec", ["text", ["a"], {"finalizers": ["a"]}], ids=str)
async def test_an_instance_goes_with_its_last_finalizer_whatever_its_spec(spec: Any) -> None:
    anything = {"type": "object", "properties": {"spec": {"x-kubernetes-preserve-unknown-fields": True}}}
    async with Server() as server:
        await server.offer(definition(schema=anything))
        held = widget("held", metadata={"finalizers": ["example.com/hold"]}, spec=spec)
        assert (await server.ask("POST", WIDGETS, held))[0] == 201
        await server.ask("DELETE", f"{WIDGETS}/held")
        code, _ = await server.ask("PATCH", f"{WIDGETS}/held", {"metadata": {"finalizers": None}}, kind=MERGE)
        assert code == 200
        assert await server.is_gone(f"{WIDGETS}/held")


@virtual_time
async def test_names_of_a_deleted_definition_are_free_for_another() -> None:
    async with Server() as server:
        await server.offer(definition())
        rival = definition("rivals", kind="Widget")
        await server.ask("POST", CRDS, rival)

        async def accepted() -> tuple[str, str] | None:
            return await server.condition("rivals", "NamesAccepted")

        await until(accepted)
        assert await accepted() == ("False", "ListKindConflict")
        await server.ask("DELETE", f"{CRDS}/widgets.{GROUP}")

        async def is_free() -> bool:
            return await accepted() == ("True", "NoConflicts")

        await until(is_free)


@virtual_time
async def test_namespace_takes_its_custom_resources_with_it() -> None:
    async with Server() as server:
        await server.offer(definition())
        await server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "brief"}})
        path = WIDGETS.replace("default", "brief")
        assert (await server.ask("POST", path, widget("a")))[0] == 201
        await server.ask("DELETE", "/api/v1/namespaces/brief")
        await until(lambda: server.is_gone("/api/v1/namespaces/brief"))
        assert (await server.ask("GET", path))[1]["items"] == []


@virtual_time
async def test_changed_schema_holds_for_what_is_already_stored() -> None:
    async with Server() as server:
        await server.offer(definition())
        await server.ask("POST", WIDGETS, widget("a", spec={"old": 1}))
        spec = {"type": "object", "properties": {"new": {"type": "string", "default": "x"}}}
        changed = definition(schema={"type": "object", "properties": {"spec": spec}})["spec"]["versions"]
        await server.ask("PATCH", f"{CRDS}/widgets.{GROUP}", {"spec": {"versions": changed}}, kind=MERGE)

        async def shown() -> Any:
            return (await server.ask("GET", f"{WIDGETS}/a"))[1]["spec"] == {"new": "x"}

        await until(shown)
        assert (await server.ask("GET", WIDGETS))[1]["items"][0]["spec"] == {"new": "x"}


@virtual_time
async def test_watch_shows_every_change_of_an_instance() -> None:
    async with Server() as server:
        await server.offer(definition())
        answer = await send(server.handler, "GET", f"{WIDGETS}?watch=true&timeoutSeconds=5")
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(whole(answer))
            await asyncio.sleep(0.1)
            await server.ask("POST", WIDGETS, widget("a"))
            await server.ask("DELETE", f"{WIDGETS}/a")
        events = [json.loads(line) for line in watching.result().splitlines()]
        assert [(event["type"], event["object"]["kind"]) for event in events] == [
            ("ADDED", "Widget"),
            ("DELETED", "Widget"),
        ]


@virtual_time
async def test_idle_watch_ends_at_once_when_its_resource_is_no_longer_served() -> None:
    async with Server() as server:
        await server.offer(definition())
        answer = await send(server.handler, "GET", f"{WIDGETS}?watch=true")
        async with asyncio.timeout(1), asyncio.TaskGroup() as group:
            watching = group.create_task(whole(answer))
            await asyncio.sleep(0.1)
            await server.ask("DELETE", f"{CRDS}/widgets.{GROUP}")
        assert watching.result() == b""
        assert not server.handler.registry.catalog.listeners


@virtual_time
async def test_watch_shows_the_end_of_every_instance_before_it_ends_with_its_definition() -> None:
    async with Server() as server:
        await server.offer(definition())
        for number in range(3):
            await server.ask("POST", WIDGETS, widget(f"w{number}"))
        answer = await send(server.handler, "GET", f"{WIDGETS}?watch=true")
        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            watching = group.create_task(whole(answer))
            await asyncio.sleep(0.1)
            await server.ask("DELETE", f"{CRDS}/widgets.{GROUP}")
        types = [json.loads(line)["type"] for line in watching.result().splitlines()]
        assert types == ["ADDED"] * 3 + ["DELETED"] * 3


@virtual_time
async def test_watch_ends_when_its_definition_changes_and_goes_on_when_another_does() -> None:
    async with Server() as server:
        await server.offer(definition())
        answer = await send(server.handler, "GET", f"{WIDGETS}?watch=true")
        async with asyncio.timeout(3), asyncio.TaskGroup() as group:
            watching = group.create_task(whole(answer))
            await server.offer(definition("gadgets"))
            await asyncio.sleep(1)
            assert not watching.done()
            names = {"spec": {"names": {"shortNames": ["wd"]}}}
            await server.ask("PATCH", f"{CRDS}/widgets.{GROUP}", names, kind=MERGE)


@virtual_time
async def test_definition_that_is_too_deep_or_too_costly_is_refused() -> None:
    deep: Object = {"type": "object"}
    for _ in range(100):
        deep = {"type": "object", "properties": {"a": deep}}
    async with Server() as server:
        code, refused = await server.ask("POST", CRDS, definition(schema=deep))
        assert code == 400
        assert "64 levels" in refused["message"]
        item = {"type": "object", "required": [f"r{number}" for number in range(5_000)]}
        costly = {"type": "object", "properties": {"spec": {"type": "array", "items": item}}}
        await server.offer(definition(schema=costly))
        code, refused = await server.ask("POST", WIDGETS, widget("a", spec=[{}] * 900))
        assert (code, refused["reason"]) == (413, "RequestEntityTooLarge")


@virtual_time
async def test_openapi_has_the_schema_of_a_custom_resource_while_it_is_served() -> None:
    path = f"/openapi/v3/apis/{GROUP}/v1"
    async with Server() as server:
        assert (await server.ask("GET", path))[0] == 404
        spec = {"type": "object", "properties": {"x": {"type": "string", "description": "An x."}}}
        await server.offer(definition(schema={"type": "object", "properties": {"spec": spec}}))
        code, document = await server.ask("GET", path)
        assert code == 200
        model = document["components"]["schemas"]["com.example.v1.Widget"]
        assert model["properties"]["spec"] == spec
        index = (await server.ask("GET", "/openapi/v3"))[1]["paths"]
        assert f"apis/{GROUP}/v1" in index
        definitions = (await server.ask("GET", "/openapi/v2"))[1]["definitions"]
        assert definitions["com.example.v1.Widget"]["properties"]["spec"] == spec
        await server.ask("DELETE", f"{CRDS}/widgets.{GROUP}")
        await until(lambda: server.is_gone(path))


@virtual_time
async def test_whole_number_is_stored_as_go_writes_it() -> None:
    async with Server() as server:
        await server.offer(definition())
        _, made = await server.ask("POST", WIDGETS, widget("a", spec={"x": 1.0, "y": [2.5, 3.0]}))
        assert json.dumps(made["spec"]) == '{"x": 1, "y": [2.5, 3]}'


APPLY = "apply-patch+yaml"


def _owners(obj: Any) -> dict[str, Any]:
    return {
        f"{each['manager']}/{each['operation']}{each.get('subresource', '')}": each["fieldsV1"]
        for each in obj["metadata"].get("managedFields", [])
    }


@virtual_time
async def test_appliers_of_a_custom_resource_share_it_by_its_schema() -> None:
    items = {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"items": items}}}}
    async with Server() as server:
        await server.offer(definition(schema=schema))
        one = widget("w", spec={"items": ["a"]})
        code, _ = await server.ask("PATCH", f"{WIDGETS}/w?fieldManager=one", one, kind=APPLY)
        two = widget("w", spec={"items": ["b"]})
        _, shared = await server.ask("PATCH", f"{WIDGETS}/w?fieldManager=two", two, kind=APPLY)
        _, left = await server.ask("PATCH", f"{WIDGETS}/w?fieldManager=one", widget("w"), kind=APPLY)
    assert (code, shared["spec"], left["spec"]) == (201, {"items": ["a", "b"]}, {"items": ["b"]})
    assert _owners(shared) == {
        "one/Apply": {"f:spec": {"f:items": {'v:"a"': {}}}},
        "two/Apply": {"f:spec": {"f:items": {'v:"b"': {}}}},
    }


@virtual_time
async def test_a_schema_that_becomes_atomic_takes_the_place_of_what_was_owned_in_it() -> None:
    def schema(**more: Any) -> Object:
        inner = {"type": "object", "properties": {"a": {"type": "string"}}, **more}
        return {"type": "object", "properties": {"spec": inner}}

    async with Server() as server:
        await server.offer(definition(schema=schema()))
        body = widget("w", spec={"a": "1"})
        await server.ask("PATCH", f"{WIDGETS}/w?fieldManager=one", body, kind=APPLY)
        path = "/spec/versions/0/schema/openAPIV3Schema"
        change = [{"op": "replace", "path": path, "value": schema(**{"x-kubernetes-map-type": "atomic"})}]
        await server.ask("PATCH", f"{CRDS}/widgets.{GROUP}", change, kind="json-patch+json")
        await asyncio.sleep(1)
        labels = {"metadata": {"labels": {"a": "b"}}}
        _, now = await server.ask("PATCH", f"{WIDGETS}/w?fieldManager=two", labels, kind=MERGE)
    assert _owners(now)["one/Apply"] == {"f:spec": {}}


@virtual_time
async def test_the_server_owns_the_status_of_a_definition() -> None:
    async with Server() as server:
        await server.offer(definition())
        _, crd = await server.ask("GET", f"{CRDS}/widgets.{GROUP}")
    owned = _owners(crd)["kube-apiserver/Updatestatus"]["f:status"]
    assert {'k:{"type":"Established"}', 'k:{"type":"NamesAccepted"}'} <= owned["f:conditions"].keys()


@virtual_time
async def test_a_deeply_nested_value_is_refused_or_stored_without_managers() -> None:
    deep: Any = "x"
    for _ in range(700):
        deep = {"a": deep}
    async with Server() as server:
        await server.offer(definition())
        code, _ = await server.ask("POST", WIDGETS, widget("w", spec=deep))
        applied, _ = await server.ask(
            "PATCH", f"{WIDGETS}/v?fieldManager=me", widget("v", spec=deep), kind=APPLY
        )
    assert code in (201, 400)
    assert applied in (201, 400)


@virtual_time
async def test_one_becomes_true_and_both_are_not_the_same() -> None:
    async with Server() as server:
        await server.offer(definition())
        for number, value in enumerate((1, True, 1)):
            body = widget("w", spec={"x": value})
            path = f"{WIDGETS}/w?fieldManager=me"
            _, applied = await server.ask("PATCH", path, body, kind=APPLY)
            assert json.dumps(applied["spec"]["x"]) == json.dumps(value)
            assert applied["metadata"]["generation"] == number + 1
        _, merged = await server.ask("PATCH", f"{WIDGETS}/w", {"spec": {"x": True}}, kind=MERGE)
        assert merged["spec"]["x"] is True


def ruled(rule: str) -> Object:
    text = {"type": "string", "maxLength": 9, "x-kubernetes-validations": [{"rule": rule}]}
    spec = {"type": "object", "properties": {"a": text, "b": {"type": "string"}}}
    return {"type": "object", "properties": {"spec": spec}}


@virtual_time
async def test_an_empty_list_of_items_counts_as_none() -> None:
    rule = [{"rule": "self != 'bad'"}]
    text = {"type": "string", "items": [], "maxLength": 9, "x-kubernetes-validations": rule}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": text}}}}
    async with Server() as server:
        await server.offer(definition(schema=schema))
        body = widget("w", spec={"a": "x"})
        assert (await server.ask("PATCH", f"{WIDGETS}/w?fieldManager=one", body, kind=APPLY))[0] == 201
        assert (await server.ask("GET", "/openapi/v2"))[0] == 200
        assert (await server.ask("GET", f"/openapi/v3/apis/{GROUP}/v1"))[0] == 200


@virtual_time
async def test_instance_that_breaks_a_rule_is_refused() -> None:
    async with Server() as server:
        await server.offer(definition(schema=ruled("self != 'bad'")))
        code, refused = await server.ask("POST", WIDGETS, widget("a", spec={"a": "bad"}))
        assert (code, refused["details"]["causes"][0]["message"]) == (
            422,
            "Invalid value: \"bad\": failed rule: self != 'bad'",
        )
        assert (await server.ask("POST", WIDGETS, widget("a", spec={"a": "good"})))[0] == 201


@virtual_time
async def test_definition_with_a_rule_that_does_not_compile_is_refused() -> None:
    async with Server() as server:
        code, refused = await server.ask("POST", CRDS, definition(schema=ruled("self != bad")))
        assert code == 422
        assert "undeclared reference to 'bad'" in refused["message"]


@virtual_time
async def test_stricter_rule_is_a_warning_for_what_stays() -> None:
    async with Server() as server:
        await server.offer(definition(schema=ruled("true")))
        assert (await server.ask("POST", WIDGETS, widget("a", spec={"a": "bad"})))[0] == 201
        versions = definition(schema=ruled("self != 'bad'"))["spec"]["versions"]
        change = {"spec": {"versions": versions}}
        assert (await server.ask("PATCH", f"{CRDS}/widgets.{GROUP}", change, kind=MERGE))[0] == 200

        async def is_strict() -> bool:
            return (await server.ask("POST", f"{WIDGETS}?dryRun=All", widget("b", spec={"a": "bad"})))[
                0
            ] == 422

        await until(is_strict)
        answer = await send(server.handler, "PATCH", f"{WIDGETS}/a", {"spec": {"b": "x"}}, kind=MERGE)
        assert answer.status == 200
        assert dict(answer.headers)["Warning"] == (
            '299 - "spec.a: Invalid value: \\"bad\\": failed rule: self != \'bad\'"'
        )


@virtual_time
async def test_definition_in_protobuf_is_served_like_one_in_json() -> None:
    async with Server() as server:
        names = message((1, "widgets"), (4, "Widget"))
        schema = message((5, "object"), (29, message((1, "spec"), (2, message((5, "object"), (38, 1))))))
        version = message((1, "v1"), (2, 1), (3, 1), (4, message((1, schema))))
        spec = message((1, GROUP), (3, names), (4, "Namespaced"), (7, version))
        meta = message((1, f"widgets.{GROUP}"))
        body = envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", message((1, meta), (2, spec)))
        code, answer = await server.ask("POST", CRDS, body, kind="vnd.kubernetes.protobuf")
        assert code == 201, answer
        assert answer["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] == {"spec": SPEC}


@virtual_time
async def test_watchers_of_two_versions_each_see_their_own() -> None:
    crd = definition()
    crd["spec"]["versions"].append({**crd["spec"]["versions"][0], "name": "v2", "storage": False})
    async with Server() as server:
        await server.offer(crd)
        await server.ask("POST", WIDGETS, widget("a"))
        for version in ("v1", "v2"):
            path = f"/apis/{GROUP}/{version}/widgets?watch=true&resourceVersion=1&timeoutSeconds=1"
            lines = (await whole(await send(server.handler, "GET", path))).splitlines()
            shown = [json.loads(line)["object"] for line in lines]
            assert [obj["apiVersion"] for obj in shown] == [f"{GROUP}/{version}"]

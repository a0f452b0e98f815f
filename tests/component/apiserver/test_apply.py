"""Server-side apply and managedFields through the handler: what the differential suite cannot see."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from podlife.apiserver.assembly import assemble
from podlife.apiserver.authn import ADMIN, Authenticator
from podlife.apiserver.endpoints import ApiHandler
from podlife.apiserver.namespace import create_system_namespaces
from podlife.apiserver.storage import MemoryStore
from podlife.testing import LoopClock, virtual_time
from podlife.wire import Peer, Query, Request
from tests.component.apiserver.requests import ADMINISTRATOR, CONFIG_MAPS, PODS, ask, whole
from tests.kit import embedded

APPLY = "apply-patch+yaml"
MERGE = "merge-patch+json"
NODE = Peer("system:node:node-0", ("system:nodes",))


@pytest.fixture
async def handler() -> ApiHandler:
    return await embedded.start()


def config_map(name: str = "a", **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


async def apply(
    handler: ApiHandler, body: Any, manager: str = "me", *, more: str = "", **how: Any
) -> tuple[int, Any]:
    path = f"{CONFIG_MAPS}/{body['metadata']['name']}?fieldManager={manager}{more}"
    return await ask(handler, "PATCH", path, body, kind=APPLY, **how)


def managers(obj: Any) -> dict[tuple[str, str], Any]:
    entries = obj["metadata"].get("managedFields", [])
    return {(entry["manager"], entry["operation"]): entry["fieldsV1"] for entry in entries}


async def test_an_apply_of_the_same_writes_nothing(handler: ApiHandler) -> None:
    _, first = await apply(handler, config_map(x="1"))
    code, again = await apply(handler, config_map(x="1"))
    assert (code, again) == (200, first)


def pod(name: str, container: str, **labels: str) -> dict[str, Any]:
    containers = [{"name": container, "image": "i", "env": [{"name": "A", "value": name}]}]
    return {"metadata": {"name": name, "labels": labels}, "spec": {"containers": containers}}


async def test_pods_of_one_template_have_the_same_fields_and_others_their_own(handler: ApiHandler) -> None:
    template = pod("a", "main", app="x")
    _, first = await ask(handler, "POST", PODS, template)
    _, second = await ask(
        handler, "POST", PODS, {**template, "metadata": {**template["metadata"], "name": "b"}}
    )
    _, other = await ask(handler, "POST", PODS, pod("c", "side", tier="y"))
    assert managers(first) == managers(second)
    for obj, container, label in ((second, "main", "app"), (other, "side", "tier")):
        [fields] = managers(obj).values()
        assert list(fields) == ["f:metadata", "f:spec"]
        assert fields["f:metadata"] == {"f:labels": {".": {}, f"f:{label}": {}}}
        assert list(fields["f:spec"]["f:containers"]) == [f'k:{{"name":"{container}"}}']


async def test_a_write_to_one_pod_leaves_the_managers_of_its_siblings_alone(handler: ApiHandler) -> None:
    shown = {}
    for name in ("a", "b"):
        _, shown[name] = await ask(
            handler, "POST", PODS, {**pod("a", "main", app="x"), "metadata": {"name": name}}
        )
    change = {"metadata": {"labels": {"new": "1"}}, "spec": {"activeDeadlineSeconds": 5}}
    _, changed = await ask(handler, "PATCH", f"{PODS}/a?fieldManager=other", change, kind=MERGE)
    _, sibling = await ask(handler, "GET", f"{PODS}/b")
    _, third = await ask(handler, "POST", PODS, {**pod("a", "main", app="x"), "metadata": {"name": "c"}})
    assert managers(changed).keys() == managers(sibling).keys() | {("other", "Update")}
    assert managers(sibling) == managers(shown["b"]) == managers(third)


@virtual_time
async def test_a_write_that_changes_nothing_keeps_the_times_of_managers() -> None:
    clock = LoopClock()
    handler = assemble(MemoryStore(), clock=clock, authenticator=Authenticator())
    await create_system_namespaces(handler.registry, ADMIN)
    _, first = await apply(handler, config_map(x="1"))
    await asyncio.sleep(5)
    _, second = await apply(handler, config_map(x="1"))
    _, third = await ask(handler, "PUT", f"{CONFIG_MAPS}/a?fieldManager=me", config_map(x="1"))
    assert first == second == third
    _, fourth = await apply(handler, config_map(x="2"))
    [entry] = fourth["metadata"]["managedFields"]
    assert entry["time"] > first["metadata"]["managedFields"][0]["time"]


async def test_without_tracking_an_object_has_managers_from_its_first_apply_on() -> None:
    handler = assemble(MemoryStore(), clock=LoopClock(), authenticator=Authenticator(), tracks_managers=False)
    await create_system_namespaces(handler.registry, ADMIN)
    _, made = await ask(handler, "POST", CONFIG_MAPS, config_map(x="1"))
    _, patched = await ask(handler, "PATCH", f"{CONFIG_MAPS}/a", {"data": {"y": "1"}}, kind=MERGE)
    assert managers(made) == managers(patched) == {}
    code, refused = await apply(handler, config_map(x="2"))
    assert (code, refused["details"]["causes"][0]["message"]) == (
        409,
        'conflict with "before-first-apply" using v1',
    )
    _, applied = await apply(handler, config_map(z="2"))
    assert managers(applied).keys() == {("before-first-apply", "Update"), ("me", "Apply")}
    _, patched = await ask(
        handler, "PATCH", f"{CONFIG_MAPS}/a?fieldManager=p", {"data": {"y": "2"}}, kind=MERGE
    )
    assert managers(patched)["p", "Update"] == {"f:data": {"f:y": {}}}


async def test_a_conflict_changes_nothing(handler: ApiHandler) -> None:
    await apply(handler, config_map(x="1"))
    code, refused = await apply(handler, config_map(x="2", y="1"), "you")
    assert (code, refused["reason"]) == (409, "Conflict")
    assert refused["message"] == 'Apply failed with 1 conflict: conflict with "me": .data.x'
    _, live = await ask(handler, "GET", f"{CONFIG_MAPS}/a")
    assert (live["data"], list(managers(live))) == ({"x": "1"}, [("me", "Apply")])


async def test_who_may_not_create_cannot_create_by_apply(handler: ApiHandler) -> None:
    """A node may patch the status of its pods, but not create config maps."""
    code, answer = await apply(handler, config_map(x="1"), peer=NODE)
    assert (code, answer["reason"]) == (403, "Forbidden")
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-0?fieldManager=kubelet"
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "node-0"}}
    code, made = await ask(handler, "PATCH", path, lease, kind=APPLY, peer=NODE)
    assert (code, managers(made)) == (201, {})


async def test_both_event_groups_share_the_managers_of_an_event(handler: ApiHandler) -> None:
    """Each manager's fields stay named as in the version that it wrote."""
    event = {
        "metadata": {"name": "e", "namespace": "default"},
        "regarding": {"namespace": "default", "name": "p"},
        "note": "first",
        "eventTime": "2030-01-01T00:00:00.000000Z",
        "reportingController": "a.b/c",
        "reportingInstance": "i",
        "action": "Act",
        "reason": "Because",
        "type": "Normal",
    }
    events = "/apis/events.k8s.io/v1/namespaces/default/events"
    code, _ = await ask(handler, "POST", f"{events}?fieldManager=new", event)
    assert code == 201
    core = "/api/v1/namespaces/default/events/e"
    _, shown = await ask(handler, "PATCH", f"{core}?fieldManager=old", {"message": "second"}, kind=MERGE)
    entries = {entry["manager"]: entry for entry in shown["metadata"]["managedFields"]}
    assert (entries["old"]["apiVersion"], entries["old"]["fieldsV1"]) == ("v1", {"f:message": {}})
    assert entries["new"]["apiVersion"] == "events.k8s.io/v1"
    fields = entries["new"]["fieldsV1"]
    assert ("f:regarding" in fields, "f:note" in fields) == (True, False)
    body = {"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"}, "note": "third"}
    code, refused = await ask(handler, "PATCH", f"{events}/e?fieldManager=third", body, kind=APPLY)
    assert (code, refused["details"]["causes"]) == (
        409,
        [{"reason": "FieldManagerConflict", "message": 'conflict with "old" using v1', "field": ".message"}],
    )


async def test_binding_and_deletion_have_no_manager(handler: ApiHandler) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    _, made = await ask(handler, "POST", PODS, pod)
    await ask(handler, "POST", f"{PODS}/p/binding", {"metadata": {"name": "p"}, "target": {"name": "n"}})
    _, bound = await ask(handler, "GET", f"{PODS}/p")
    _, deleted = await ask(handler, "DELETE", f"{PODS}/p")
    assert made["metadata"]["managedFields"] == bound["metadata"]["managedFields"]
    assert made["metadata"]["managedFields"] == deleted["metadata"]["managedFields"]


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        (b"", 400, "invalid object type: /, Kind="),
        (b"[", 400, "error decoding YAML: error converting YAML to JSON: "),
        (
            b"- a",
            400,
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: expected an object",
        ),
        (b"\xff\xff", 400, "error decoding YAML: "),
        (
            b"a: &b 1\nc: *b",
            400,
            "error decoding YAML: error converting YAML to JSON: aliases are not supported",
        ),
        (
            b'{"apiVersion":"v1","kind":"ConfigMap","metadata":"x"}',
            500,
            "failed to create typed patch object",
        ),
        (
            b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":5}}',
            500,
            "failed to create typed patch object",
        ),
        (b'{"apiVersion":["v1"],"kind":{},"metadata":{}}', 400, "invalid object type: "),
        (b"[" * 100_000, 400, "error decoding YAML: "),
    ],
)
async def test_a_body_that_cannot_be_applied_is_refused(
    handler: ApiHandler, body: bytes, code: int, message: str
) -> None:
    headers = {"Content-Type": "application/apply-patch+yaml"}
    request = Request("PATCH", f"{CONFIG_MAPS}/a", Query("fieldManager=me"), headers, body, ADMINISTRATOR)
    answer = await handler(request)
    text = (await whole(answer)).decode()
    assert answer.status == code, text
    assert message in text


async def test_large_objects_are_applied_in_a_thread(handler: ApiHandler) -> None:
    data = {f"k{number}": "v" for number in range(2_000)}
    assert (await apply(handler, config_map(**data)))[0] == 201
    code, changed = await apply(handler, config_map(**{**data, "k1": "w"}))
    assert (code, changed["data"]["k1"]) == (200, "w")
    [fields] = managers(changed).values()
    assert len(fields["f:data"]) == 2_000


async def test_an_object_that_is_too_large_with_its_managers_is_stored_without(handler: ApiHandler) -> None:
    """So a client can send back what it read."""
    data = {f"k{number}": "v" for number in range(30_000)}
    code, made = await ask(handler, "POST", CONFIG_MAPS, config_map(**data))
    assert (code, managers(made)) == (201, {})
    code, _ = await ask(handler, "PUT", f"{CONFIG_MAPS}/a", {**made, "data": {**data, "k1": "w"}})
    assert code == 200
    code, _ = await ask(handler, "PATCH", f"{CONFIG_MAPS}/a", {"data": {"k1": "x"}}, kind=MERGE)
    assert code == 200
    code, refused = await apply(handler, config_map(k1="y"), more="&force=true")
    assert (code, refused["reason"]) == (413, "RequestEntityTooLarge")

"""podlife.client against kube-apiserver and against our own server: the same verbs, the same typed errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import msgspec
import pytest

from podlife.client import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    NAMESPACES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    Bookmark,
    Client,
    DeleteOptions,
    EventType,
    Flags,
    ListOptions,
    PatchType,
    WatchOptions,
    WriteOptions,
    load,
)
from podlife.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    TooManyRequestsError,
    UnauthorizedError,
)
from tests.kit.real_parts import Server
from tests.real.cutting_proxy import CuttingProxy

# Long enough for a busy machine; nothing here waits for it unless it fails.
PATIENCE_SECONDS = 120


@pytest.fixture(params=["kube", "podlife_server"])
def server(request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue(request.param)
    return found


@pytest.fixture
async def client(server: Server) -> AsyncIterator[Client]:
    async with connect(server) as client:
        yield client


def connect(server: Server, *, token: str | None = None, port: int | None = None) -> Client:
    flags = Flags(
        server=f"https://127.0.0.1:{port or server.port}",
        token=server.tokens["admin"] if token is None else token,
        certificate_authority=str(server.ca_file),
    )
    return Client.connect(load(flags, {}), timeout_seconds=PATIENCE_SECONDS)


@pytest.fixture
async def namespace(client: Client) -> AsyncIterator[str]:
    made = await client.create(NAMESPACES, {"metadata": {"generateName": "client-"}})
    yield made["metadata"]["name"]
    await client.delete(NAMESPACES, made["metadata"]["name"])


def pod(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "i"}], **spec},
    }


def config_map(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": {"k": "v"}}


class PodView(msgspec.Struct):
    class Metadata(msgspec.Struct):
        name: str
        uid: str

    metadata: Metadata


async def test_an_object_is_created_read_changed_and_deleted(client: Client, namespace: str) -> None:
    made = await client.create(CONFIG_MAPS, config_map("a"), namespace)
    read = await client.get(CONFIG_MAPS, "a", namespace)
    assert read["metadata"]["uid"] == made["metadata"]["uid"]
    read["data"]["k"] = "w"
    changed = await client.update(CONFIG_MAPS, read)
    assert changed["data"] == {"k": "w"}
    await client.delete(CONFIG_MAPS, "a", namespace, options=DeleteOptions(uid=made["metadata"]["uid"]))
    with pytest.raises(NotFoundError):
        await client.get(CONFIG_MAPS, "a", namespace)


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        (PatchType.MERGE, {"data": {"k": "w"}}),
        (PatchType.STRATEGIC, {"data": {"k": "w"}}),
        (PatchType.JSON, [{"op": "replace", "path": "/data/k", "value": "w"}]),
    ],
)
async def test_every_patch_format_changes_the_object(
    client: Client, namespace: str, kind: PatchType, patch: Any
) -> None:
    await client.create(CONFIG_MAPS, config_map("a"), namespace)
    await client.patch(CONFIG_MAPS, "a", patch, namespace, type=kind)
    assert (await client.get(CONFIG_MAPS, "a", namespace))["data"] == {"k": "w"}


async def test_a_dry_run_stores_nothing(client: Client, namespace: str) -> None:
    await client.create(PODS, pod("dry"), namespace, options=WriteOptions(dry_run=True))
    with pytest.raises(NotFoundError):
        await client.get(PODS, "dry", namespace)


async def test_a_view_is_decoded_from_the_answer(client: Client, namespace: str) -> None:
    made = await client.create(PODS, pod("p"), namespace)
    seen = await client.get(PODS, "p", namespace, view=PodView)
    assert seen.metadata.uid == made["metadata"]["uid"]


async def test_status_binding_and_scale_are_reached(client: Client, namespace: str) -> None:
    await client.create(PODS, pod("p"), namespace)
    await client.bind("p", namespace, "node-x")
    await client.patch(PODS, "p", {"status": {"phase": "Running"}}, namespace, subresource="status")
    seen = await client.get(PODS, "p", namespace)
    assert (seen["spec"]["nodeName"], seen["status"]["phase"]) == ("node-x", "Running")
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": pod("x")["spec"]}
    deployment = {
        "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }
    await client.create(DEPLOYMENTS, deployment, namespace)
    await client.scale(DEPLOYMENTS, "d", namespace, 5)
    assert (await client.get(DEPLOYMENTS, "d", namespace))["spec"]["replicas"] == 5


async def test_a_running_pod_is_deleted_gracefully(client: Client, namespace: str) -> None:
    await client.create(PODS, pod("p", nodeName="node-x"), namespace)
    marked = await client.delete(PODS, "p", namespace, options=DeleteOptions(grace_period_seconds=7))
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 7
    await client.delete(PODS, "p", namespace, options=DeleteOptions(grace_period_seconds=0))
    with pytest.raises(NotFoundError):
        await client.get(PODS, "p", namespace)


async def test_of_a_deleted_object_only_the_metadata_may_be_asked_for(client: Client, namespace: str) -> None:
    held = pod("p", nodeName="node-x")
    held["metadata"]["finalizers"] = ["example.com/held"]
    await client.create(PODS, held, namespace)
    now = DeleteOptions(grace_period_seconds=0)
    answer = await client.delete(PODS, "p", namespace, options=now, metadata_only=True)
    assert (answer["kind"], answer["metadata"]["finalizers"]) == (
        "PartialObjectMetadata",
        ["example.com/held"],
    )
    assert "spec" not in answer
    await client.patch(PODS, "p", {"metadata": {"finalizers": None}}, namespace)
    await client.create(CONFIG_MAPS, config_map("a"), namespace)
    # Where the answer is a Status, it stays one.
    gone = await client.delete(CONFIG_MAPS, "a", namespace, metadata_only=True)
    assert (gone["kind"], gone["status"]) == ("Status", "Success")


async def test_a_delete_that_means_another_object_is_a_conflict(client: Client, namespace: str) -> None:
    await client.create(CONFIG_MAPS, config_map("a"), namespace)
    other = DeleteOptions(uid="99999999-9999-9999-9999-999999999999")
    with pytest.raises(ConflictError, match="UID in"):
        await client.delete(CONFIG_MAPS, "a", namespace, options=other)
    assert await client.get(CONFIG_MAPS, "a", namespace)


async def test_an_eviction_that_a_budget_forbids_is_refused_at_once(client: Client, namespace: str) -> None:
    await client.create(PODS, pod("p", nodeName="node-x"), namespace)
    running = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    await client.patch(PODS, "p", running, namespace, subresource="status")
    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {}}}
    await client.create(POD_DISRUPTION_BUDGETS, budget, namespace)
    counts = dict.fromkeys(("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"), 0)
    seen = {"status": {"observedGeneration": 1, **counts}}
    await client.patch(POD_DISRUPTION_BUDGETS, "b", seen, namespace, subresource="status")
    with pytest.raises(TooManyRequestsError, match="disruption budget"):
        await client.evict("p", namespace)
    await client.delete(POD_DISRUPTION_BUDGETS, "b", namespace)
    await client.evict("p", namespace, options=DeleteOptions(grace_period_seconds=0))
    with pytest.raises(NotFoundError):
        await client.get(PODS, "p", namespace)


async def test_pages_add_up_to_the_whole_list(client: Client, namespace: str) -> None:
    names = [f"m-{number:02}" for number in range(25)]
    async with asyncio.TaskGroup() as group:
        for name in names:
            group.create_task(client.create(CONFIG_MAPS, config_map(name), namespace))
    options = ListOptions(limit=10, label_selector="!nothing", field_selector="metadata.name!=m-03")
    sizes = [len(page.items) async for page in client.pages(CONFIG_MAPS, namespace, options=options)]
    assert sizes[0] == 10
    assert sum(sizes) == len(names) - 1
    whole = await client.list_all(CONFIG_MAPS, namespace, options=ListOptions(limit=4))
    assert [item["metadata"]["name"] for item in whole.items] == names


async def test_a_collection_is_deleted_by_selector(client: Client, namespace: str) -> None:
    for name in ("a", "b"):
        await client.create(PODS, pod(name), namespace)
    await client.delete_collection(PODS, namespace, selection=ListOptions(label_selector="app=a"))
    left = await client.list(PODS, namespace)
    assert [item["metadata"]["name"] for item in left.items] == ["b"]


async def test_a_watch_that_is_cut_goes_on_where_it_was(
    server: Server, client: Client, namespace: str
) -> None:
    start = (await client.list(CONFIG_MAPS, namespace)).resource_version
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        CuttingProxy(server.port) as proxy,
        connect(server, port=proxy.port) as watcher,
        aclosing(watcher.watch(CONFIG_MAPS, namespace, resource_version=start)) as events,
    ):
        seen = []
        for name in ("a", "b", "c"):
            await client.create(CONFIG_MAPS, config_map(name), namespace)
            event = await anext(event async for event in events if not isinstance(event, Bookmark))
            seen.append((event.type, event.object["metadata"]["name"]))
            proxy.cut()
        assert seen == [(EventType.ADDED, "a"), (EventType.ADDED, "b"), (EventType.ADDED, "c")]
        assert proxy.connections >= 3


async def test_a_streaming_list_hands_out_what_there_is_then_what_changes(
    client: Client, namespace: str
) -> None:
    for name in ("a", "b"):
        await client.create(CONFIG_MAPS, config_map(name), namespace)
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        aclosing(client.list_watch(CONFIG_MAPS, namespace, options=WatchOptions())) as events,
    ):
        initial = []
        async for event in events:
            if isinstance(event, Bookmark):
                assert event.is_synced
                break
            initial.append(event.object["metadata"]["name"])
        assert sorted(initial) == ["a", "b"]
        await client.delete(CONFIG_MAPS, "a", namespace)
        change = await anext(event async for event in events if not isinstance(event, Bookmark))
        assert (change.type, change.object["metadata"]["name"]) == (EventType.DELETED, "a")


async def test_a_wrong_token_is_unauthorized(server: Server) -> None:
    async with connect(server, token="wrong") as stranger:
        with pytest.raises(UnauthorizedError):
            await stranger.list(PODS, "default")


async def test_what_is_not_allowed_is_forbidden(server: Server) -> None:
    async with connect(server, token=server.tokens["nobody"]) as stranger:
        with pytest.raises(ForbiddenError, match='User "nobody" cannot list resource "pods"'):
            await stranger.list(PODS, "default")


async def test_a_name_that_is_taken_already_exists(client: Client, namespace: str) -> None:
    await client.create(CONFIG_MAPS, config_map("a"), namespace)
    with pytest.raises(AlreadyExistsError):
        await client.create(CONFIG_MAPS, config_map("a"), namespace)


async def test_a_stale_update_is_a_conflict(client: Client, namespace: str) -> None:
    stale = await client.create(CONFIG_MAPS, config_map("a"), namespace)
    await client.patch(CONFIG_MAPS, "a", {"data": {"k": "w"}}, namespace)
    with pytest.raises(ConflictError):
        await client.update(CONFIG_MAPS, stale)


async def test_an_invalid_object_names_its_fields(client: Client, namespace: str) -> None:
    with pytest.raises(InvalidError) as caught:
        await client.create(PODS, pod("p", restartPolicy="Sometimes"), namespace)
    assert [cause["field"] for cause in caught.value.details["causes"]] == ["spec.restartPolicy"]


async def test_strict_validation_refuses_an_unknown_field(client: Client, namespace: str) -> None:
    strict = WriteOptions(field_validation="Strict")
    with pytest.raises(ApiError, match="unknown field") as caught:
        await client.create(PODS, pod("p", nodeNmae="n"), namespace, options=strict)
    assert caught.value.code == 400

"""What pods refer to, asked of the embedded API server under virtual time."""

from __future__ import annotations

import asyncio

import pytest

from podlife.api.codec import Object
from podlife.client import ENDPOINTS
from podlife.errors import ApiError, NotFoundError
from podlife.kubelet.object_cache import ApiObjectCache
from podlife.kubelet.object_cache import object_store as kept_objects
from podlife.testing import virtual_time
from podlife.wire import Request, Response
from tests.component.kubelet_volumemanager.node import CONFIG, Node, pod
from tests.kit import embedded


def down(request: Request) -> Response:
    return embedded.refusal(500, "InternalError")


async def register_settings(node: Node) -> None:
    """A config map, and a pod that refers to it."""
    await node.server.put_config_map("settings", {"a": "1"})
    node.objects.register(pod(CONFIG))


async def settings(node: Node) -> Object | None:
    found = await node.objects.config_map("default", "settings")
    return found and found["data"]


@virtual_time
async def test_what_many_ask_for_at_once_is_read_once(node: Node) -> None:
    await register_settings(node)
    assert await asyncio.gather(*(settings(node) for _ in range(20))) == [{"a": "1"}] * 20
    assert node.server.gets("configmaps") == 1


@virtual_time
async def test_who_stops_waiting_does_not_take_the_answer_from_the_others(node: Node) -> None:
    await register_settings(node)
    node.server.held_back = held_back = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        impatient = tasks.create_task(settings(node))
        patient = tasks.create_task(settings(node))
        await asyncio.sleep(1)
        impatient.cancel()
        await asyncio.sleep(1)
        held_back.set()
    assert patient.result() == {"a": "1"}
    assert node.server.gets("configmaps") == 1


@virtual_time
async def test_an_object_is_read_again_after_about_a_minute_and_not_before(node: Node) -> None:
    await register_settings(node)
    await settings(node)
    await node.server.put_config_map("settings", {"a": "2"})
    await asyncio.sleep(59)
    assert await settings(node) == {"a": "1"}
    await asyncio.sleep(5)
    assert await settings(node) == {"a": "2"}


@virtual_time
async def test_a_pod_that_comes_never_gets_what_was_read_before_it_came(node: Node) -> None:
    await register_settings(node)
    await settings(node)
    await node.server.put_config_map("settings", {"a": "2"})
    node.objects.register(pod(CONFIG, uid="uid-2"))
    assert await settings(node) == {"a": "2"}


@virtual_time
async def test_an_answer_that_was_on_its_way_when_a_pod_came_is_not_kept_for_it(node: Node) -> None:
    await register_settings(node)
    node.server.held_back = held_back = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        early = tasks.create_task(settings(node))
        await asyncio.sleep(1)
        node.server.held_back = None
        await node.server.put_config_map("settings", {"a": "2"})
        node.objects.register(pod(CONFIG, uid="uid-2"))
        held_back.set()
    assert early.result() == {"a": "1"}
    assert await settings(node) == {"a": "2"}


@virtual_time
async def test_a_changed_annotation_makes_everything_fresh_and_a_changed_status_does_not(node: Node) -> None:
    await node.server.put_config_map("settings", {"a": "1"})
    mine = pod(CONFIG)
    node.objects.register(mine)
    await settings(node)
    await node.server.put_config_map("settings", {"a": "2"})
    node.objects.register({**mine, "status": {"phase": "Running"}})
    assert await settings(node) == {"a": "1"}
    node.objects.register({**mine, "metadata": {**mine["metadata"], "annotations": {"touch": "now"}}})
    assert await settings(node) == {"a": "2"}


@virtual_time
async def test_that_there_is_no_such_object_is_not_kept(node: Node) -> None:
    node.objects.register(pod(CONFIG))
    assert await settings(node) is None
    await node.server.put_config_map("settings", {"a": "1"})
    assert await settings(node) == {"a": "1"}


@virtual_time
async def test_while_the_server_fails_what_is_kept_goes_on_to_count(node: Node) -> None:
    await register_settings(node)
    await settings(node)
    node.server.refuse = down
    await asyncio.sleep(300)
    assert await settings(node) == {"a": "1"}


@virtual_time
async def test_what_no_pod_refers_to_any_more_is_forgotten(node: Node) -> None:
    await node.server.put_config_map("settings", {"a": "1"})
    for uid in ("uid-1", "uid-2"):
        node.objects.register(pod(CONFIG, uid=uid))
    await settings(node)
    node.objects.unregister("uid-1")
    assert len(node.objects._config_maps) == 1
    node.objects.unregister("uid-2")
    node.objects.unregister("uid-2")
    assert len(node.objects._config_maps) == 0
    await settings(node)
    assert len(node.objects._config_maps) == 0


@pytest.fixture
def room_for_three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_objects, "_MAX_KEPT", 3)


@pytest.mark.usefixtures("room_for_three")
@virtual_time
async def test_no_more_objects_are_kept_than_the_bound(node: Node) -> None:
    names = [f"settings-{number}" for number in range(5)]
    for name in names:
        await node.server.put_config_map(name, {"a": name})
    node.objects.register(pod(*({"name": name, "configMap": {"name": name}} for name in names)))
    for name in names:
        await node.objects.config_map("default", name)
    assert len(node.objects._config_maps) == 3
    before = node.server.gets("configmaps")
    await node.objects.config_map("default", names[-1])
    assert node.server.gets("configmaps") == before
    await node.objects.config_map("default", names[0])
    assert node.server.gets("configmaps") == before + 1


@virtual_time
async def test_secrets_are_kept_in_the_same_way(node: Node) -> None:
    await node.server.put_secret("key", {"a": b"\xff"})
    node.objects.register(pod({"name": "s", "secret": {"secretName": "key"}}))
    for _ in range(3):
        found = await node.objects.secret("default", "key")
        assert found is not None
        assert found["data"] == {"a": "/w=="}
    assert node.server.gets("secrets") == 1


@virtual_time
async def test_a_token_is_bound_to_its_pod_and_renewed_at_80_percent_of_its_life(node: Node) -> None:
    mine = pod(serviceAccountName="robot")

    async def token() -> str:
        return await node.objects.token(mine, audience="vault", expiration_seconds=1000)

    assert set(await asyncio.gather(token(), token())) == {"token-1"}
    assert node.server.token_requests[0]["spec"] == {
        "audiences": ["vault"],
        "expirationSeconds": 1000,
        "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "web", "uid": "uid-1"},
    }
    assert node.server.asked[-1] == "POST /api/v1/namespaces/default/serviceaccounts/robot/token"
    await asyncio.sleep(790)
    assert await token() == "token-1"
    await asyncio.sleep(15)
    assert await token() == "token-2"


@virtual_time
async def test_a_token_of_a_long_life_is_renewed_after_a_day(node: Node) -> None:
    mine = pod()
    week = 7 * 24 * 3600
    assert await node.objects.token(mine, audience="", expiration_seconds=week) == "token-1"
    await asyncio.sleep(23 * 3600)
    assert await node.objects.token(mine, audience="", expiration_seconds=week) == "token-1"
    await asyncio.sleep(3601)
    assert await node.objects.token(mine, audience="", expiration_seconds=week) == "token-2"


@virtual_time
async def test_a_token_that_cannot_be_renewed_is_used_until_it_ends(node: Node) -> None:
    mine = pod()
    await node.objects.token(mine, audience="", expiration_seconds=1000)
    node.server.refuse = down
    await asyncio.sleep(900)
    assert await node.objects.token(mine, audience="", expiration_seconds=1000) == "token-1"
    await asyncio.sleep(200)
    with pytest.raises(ApiError):
        await node.objects.token(mine, audience="", expiration_seconds=1000)


@virtual_time
async def test_tokens_differ_by_pod_and_audience_and_go_with_their_pod(node: Node) -> None:
    for uid in ("uid-1", "uid-2"):
        for audience in ("", "vault"):
            await node.objects.token(pod(uid=uid), audience=audience, expiration_seconds=1000)
    assert len(node.server.token_requests) == 4
    node.objects.unregister("uid-1")
    assert await node.objects.token(pod(uid="uid-2"), audience="", expiration_seconds=1000) == "token-3"
    assert await node.objects.token(pod(uid="uid-1"), audience="", expiration_seconds=1000) == "token-5"


@virtual_time
async def test_a_server_without_tokens_is_told_from_an_account_that_is_missing(node: Node) -> None:
    node.server.has_tokens = False
    with pytest.raises(NotFoundError, match="does not have TokenRequest endpoints enabled"):
        await node.objects.token(pod(), audience="", expiration_seconds=1000)
    node.server.refuse = lambda _: embedded.refusal(
        404, "NotFound", details={"name": "x", "kind": "serviceaccounts"}
    )
    with pytest.raises(NotFoundError, match="no: 404"):
        await node.objects.token(pod(), audience="", expiration_seconds=1000)


@virtual_time
async def test_a_pod_is_told_of_the_services_that_were_there_when_it_came(node: Node) -> None:
    await node.server.put_service("kubernetes")
    first = pod()
    node.objects.register(first)
    assert "DB_SERVICE_HOST" not in await node.objects.service_environment(first)
    await node.server.put_service("db")
    second = pod(uid="uid-2")
    await asyncio.sleep(0.001)
    node.objects.register(second)
    found = await node.objects.service_environment(second)
    assert found["DB_SERVICE_PORT"] == found["KUBERNETES_SERVICE_PORT"] == "80"


@virtual_time
async def test_pods_that_come_together_share_one_list_of_services(node: Node) -> None:
    await node.server.put_service("db")
    pods = [pod(uid=f"uid-{number}") for number in range(20)]
    for each in pods:
        node.objects.register(each)
    for each in pods:
        assert "DB_SERVICE_HOST" in await node.objects.service_environment(each)
    assert sum(each == "GET /api/v1/namespaces/default/services" for each in node.server.asked) == 1


@virtual_time
async def test_a_pod_without_service_links_is_told_of_the_api_server_alone(node: Node) -> None:
    await node.server.put_service("kubernetes")
    await node.server.put_service("db")
    found = await node.objects.service_environment(pod(enableServiceLinks=False))
    assert "KUBERNETES_SERVICE_HOST" in found
    assert not any(name.startswith("DB_") for name in found)


@pytest.mark.parametrize(
    ("endpoint", "host", "port"), [("10.1.2.3", "10.1.2.3", "7443"), ("", "fd00::1", "6443")]
)
@virtual_time
async def test_a_pod_is_told_where_it_reaches_the_api_server(
    node: Node, endpoint: str, host: str, port: str
) -> None:
    await node.server.put_service("kubernetes")
    if endpoint:
        subsets = [{"addresses": [{"ip": endpoint}], "ports": [{"name": "https", "port": 7443}]}]
        made = {"metadata": {"name": "kubernetes"}, "subsets": subsets}
        await node.server.client.create(ENDPOINTS, made, "default")
    objects = ApiObjectCache(node.server.client, node.server.clock, api_server="https://[fd00::1]:6443")

    found = await objects.service_environment(pod())

    assert (found["KUBERNETES_SERVICE_HOST"], found["KUBERNETES_SERVICE_PORT"]) == (host, port)


@virtual_time
async def test_services_of_other_namespaces_are_not_told(node: Node) -> None:
    await node.server.put_service("db", "kube-system")
    assert not await node.objects.service_environment(pod())


@virtual_time
async def test_a_server_that_does_not_answer_holds_nobody_up_who_could_do_with_what_there_is(
    node: Node,
) -> None:
    await node.server.put_config_map("settings", {"a": "1"})
    await node.server.put_service("db")
    mine = pod(CONFIG)
    node.objects.register(mine)

    async def everything() -> tuple[object, object, object]:
        token = await node.objects.token(mine, audience="", expiration_seconds=1000)
        return token, await settings(node), await node.objects.service_environment(mine)

    before = await everything()
    node.server.held_back = asyncio.Event()
    node.server.has_tokens = False
    await asyncio.sleep(900)
    loop = asyncio.get_running_loop()
    asked_at = loop.time()
    assert await everything() == before
    # Four questions, and a little patience with each.
    assert loop.time() - asked_at <= 20
    await settings(node)
    asked_at = loop.time()
    assert await settings(node) == {"a": "1"}
    assert loop.time() == asked_at
    node.server.held_back.set()
    await asyncio.sleep(60)


@virtual_time
async def test_a_static_pod_starts_without_the_server_that_would_tell_of_services(node: Node) -> None:
    node.server.refuse = down
    mine = pod()
    mine["metadata"]["annotations"] = {"kubernetes.io/config.source": "file"}
    assert await node.objects.service_environment(mine) == {}
    with pytest.raises(ApiError):
        await node.objects.service_environment(pod())

"""An informer on kube-apiserver: what it brings, and what it gets over."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from podlife.aio import cancel_and_wait, spawn
from podlife.api.views import Metadata
from podlife.client import CONFIG_MAPS, NAMESPACES, Client, Flags, NotSentError, load
from podlife.errors import ForbiddenError
from podlife.informer import Informer
from tests.kit.real_parts import Server, Settings, is_ready
from tests.kit.wait import until
from tests.real.cutting_proxy import CuttingProxy


class ConfigMap(msgspec.Struct, gc=False):
    metadata: Metadata
    data: dict[str, str] | None = None


class Mirror:
    """Holds what it was told, and counts."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.added = self.updated = self.deleted = 0

    def on_add(self, obj: ConfigMap) -> None:
        assert obj.metadata.name not in self.values
        self.added += 1
        self.values[obj.metadata.name] = (obj.data or {}).get("v", "")

    def on_update(self, old: ConfigMap, new: ConfigMap) -> None:
        assert old.metadata.uid == new.metadata.uid
        self.updated += 1
        self.values[new.metadata.name] = (new.data or {}).get("v", "")

    def on_delete(self, obj: ConfigMap) -> None:
        self.deleted += 1
        del self.values[obj.metadata.name]


def client_of(server: Server, *, who: str = "admin", port: int = 0) -> Client:
    connection = load(Flags(kubeconfig=str(server.kubeconfig_for(who))), {})
    return Client.connect(replace(connection, server=f"https://127.0.0.1:{port or server.port}"))


@asynccontextmanager
async def running(informer: Informer[Any], *, seconds: float = 120) -> AsyncIterator[None]:
    task = spawn(informer.run(), name="informer", on_failure=lambda _: None)
    try:
        assert await informer.wait_for_sync(seconds=seconds), informer.trouble
        yield
        assert not task.done()
    finally:
        await cancel_and_wait(task)


async def put(client: Client, namespace: str, name: str, value: str) -> None:
    obj = {"metadata": {"name": name, "namespace": namespace}, "data": {"v": value}}
    await client.create(CONFIG_MAPS, obj)


async def new_namespace(client: Client) -> str:
    made = await client.create(NAMESPACES, {"metadata": {"generateName": "informer-"}})
    return str(made["metadata"]["name"])


async def test_it_syncs_and_follows_a_thousand_changes(kube: Server) -> None:
    async with client_of(kube) as client:
        namespace = await new_namespace(client)
        names = [f"m-{number:03d}" for number in range(250)]
        async with asyncio.TaskGroup() as group:
            for name in names:
                group.create_task(put(client, namespace, name, "0"))
        informer = Informer(client, CONFIG_MAPS, view=ConfigMap, namespace=namespace)
        mirror = Mirror()
        informer.add_handler(mirror)
        async with running(informer):
            assert set(names) <= mirror.values.keys()
            async with asyncio.TaskGroup() as group:
                for name in names:
                    group.create_task(_change_four_times(client, namespace, name))
            await put(client, namespace, "last", "")
            await until(lambda: "last" in mirror.values)
            expected = {name: "3" for name in names if not name.endswith("7")}
            seen = {name: value for name, value in mirror.values.items() if name.startswith("m-")}
            assert seen == expected
            assert {obj.metadata.name for obj in informer.cache.list()} == mirror.values.keys()
            assert mirror.updated >= 3 * 250
            assert mirror.deleted == 25
            assert (informer.stats.lists, informer.stats.interruptions, informer.is_live) == (1, 0, True)


async def _change_four_times(client: Client, namespace: str, name: str) -> None:
    for value in "123":
        await client.patch(CONFIG_MAPS, name, {"data": {"v": value}}, namespace)
    if name.endswith("7"):
        await client.delete(CONFIG_MAPS, name, namespace)
    else:
        await client.patch(CONFIG_MAPS, name, {"metadata": {"labels": {"done": "yes"}}}, namespace)


@contextmanager
def restarted(server: Server, command: list[str]) -> Iterator[None]:
    """The same server again, on the same port and etcd."""
    with server.log.open("ab") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    try:
        yield
    finally:
        # A kind end would wait for the watches to end first.
        process.kill()
        process.wait(60)


async def test_a_server_that_is_killed_and_started_again_is_followed_on(
    start_kube: Callable[[Settings], Server],
) -> None:
    server = start_kube(Settings())
    command = Path(f"/proc/{server.pid}/cmdline").read_text().rstrip("\0").split("\0")
    # Somebody whose rights the server has to look up first, as that of a real cluster has.
    async with client_of(server) as admin, client_of(server, who="nobody") as client:
        await _let_read(admin, "nobody")
        for name in ("kept", "deleted", "changed"):
            await put(admin, "default", name, "before")
        informer = Informer(client, CONFIG_MAPS, view=ConfigMap, namespace="default")
        mirror = Mirror()
        informer.add_handler(mirror)
        async with running(informer):
            kept = informer.cache.get("default", "kept")
            os.kill(server.pid, signal.SIGKILL)
            await until(lambda: not informer.is_live)
            assert informer.has_synced
            assert isinstance(informer.trouble, Exception)
            with restarted(server, command):
                await until(lambda: is_ready(server))
                await admin.delete(CONFIG_MAPS, "deleted", "default")
                await admin.patch(CONFIG_MAPS, "changed", {"data": {"v": "after"}}, "default")
                await put(admin, "default", "new", "after")
                await until(lambda: "new" in mirror.values and informer.is_live)
                assert mirror.values.pop("kube-root-ca.crt", "") == ""
                assert mirror.values == {"kept": "before", "changed": "after", "new": "after"}
                assert informer.cache.get("default", "kept") is kept, "what has not changed was told again"


async def _let_read(admin: Client, user: str) -> None:
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"]}]
    root = "/apis/rbac.authorization.k8s.io/v1"
    role = {"metadata": {"name": "reader"}, "rules": rules}
    binding = {
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
        "subjects": [{"kind": "User", "name": user}],
    }
    await admin.request("POST", f"{root}/clusterroles", body=role)
    await admin.request("POST", f"{root}/clusterrolebindings", body=binding)


@pytest.mark.parametrize("flags", [("--watch-cache=false",), ()])
async def test_changes_that_a_compaction_has_swallowed_are_made_up_for_by_a_list(
    start_kube: Callable[[Settings], Server], flags: tuple[str, ...]
) -> None:
    """Without its watch cache the server answers a revision that is gone with 410;
    with it, it remembers the history by itself and no list is needed."""
    server = start_kube(Settings(flags=flags))
    async with client_of(server) as admin, CuttingProxy(server.port) as proxy:
        for name in ("kept", "deleted", "replaced"):
            await put(admin, "default", name, "before")
        async with client_of(server, port=proxy.port) as client:
            informer = Informer(client, CONFIG_MAPS, view=ConfigMap, namespace="default")
            mirror = Mirror()
            informer.add_handler(mirror)
            async with running(informer):
                with proxy.closed():
                    await until(lambda: not informer.is_live)
                    await admin.delete(CONFIG_MAPS, "deleted", "default")
                    await admin.delete(CONFIG_MAPS, "replaced", "default")
                    await put(admin, "default", "replaced", "after")
                    made = await admin.create(CONFIG_MAPS, {"metadata": {"name": "last"}}, "default")
                    server.compact(made["metadata"]["resourceVersion"])
                await until(lambda: "last" in mirror.values and informer.is_live)
                assert {name: mirror.values[name] for name in ("kept", "replaced")} == {
                    "kept": "before",
                    "replaced": "after",
                }
                assert "deleted" not in mirror.values
                assert mirror.deleted == 2
                assert informer.stats.lists == (2 if flags else 1)


async def test_who_may_not_read_is_told_so_at_once(kube: Server) -> None:
    async with client_of(kube, who="nobody") as client:
        with pytest.raises(ForbiddenError, match='cannot list resource "configmaps"'):
            await Informer(client, CONFIG_MAPS, view=ConfigMap, namespace="default").run()


async def test_a_certificate_that_is_not_trusted_is_told_at_once(kube: Server) -> None:
    connection = replace(load(Flags(kubeconfig=str(kube.kubeconfig)), {}), certificate_authority=b"")
    async with Client.connect(connection) as client:
        with pytest.raises(NotSentError, match="not trusted"):
            await Informer(client, CONFIG_MAPS, view=ConfigMap, namespace="default").run()

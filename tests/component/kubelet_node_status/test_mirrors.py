"""Mirrors of static pods on a server: made, kept, replaced, taken away, and never anybody else's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from podlife.api.codec import Object
from podlife.client import NODES, PODS
from podlife.errors import NotFoundError
from podlife.kubelet.config import HASH, MIRROR, ApiMirrorClient, is_mirror_of, read_manifest
from podlife.kubelet.node_status import NodeReporter
from podlife.testing import virtual_time
from tests.component.kubelet_node_status.kit import World, world


def static(command: str = "run", *, name: str = "web") -> Object:
    text = f"""
        apiVersion: v1
        kind: Pod
        metadata: {{name: {name}, labels: {{app: web}}}}
        spec: {{containers: [{{name: c, image: i, command: [{command}]}}], priorityClassName: system-node-critical}}
    """
    return read_manifest(text.encode(), "/m/web.yaml", "n1").pod


@asynccontextmanager
async def mirrors() -> AsyncIterator[tuple[World, ApiMirrorClient, NodeReporter]]:
    async with world() as here, here.running() as reporter:
        yield here, ApiMirrorClient(here.on_the_way, reporter), reporter


async def on_server(here: World) -> Object | None:
    try:
        return await here.client.get(PODS, "web-n1", "default")
    except NotFoundError:
        return None


@virtual_time
async def test_a_static_pod_without_a_mirror_gets_one_that_the_node_owns() -> None:
    async with mirrors() as (here, them, reporter):
        pod = static()
        made = await them.ensure(pod, None)
        mirror = await on_server(here)
        assert mirror is not None
        assert made == mirror
        metadata = mirror["metadata"]
        assert metadata["uid"] != pod["metadata"]["uid"]
        assert metadata["annotations"][MIRROR] == metadata["annotations"][HASH] == pod["metadata"]["uid"]
        assert metadata["labels"] == {"app": "web"}
        assert metadata["ownerReferences"] == [
            {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": reporter.uid, "controller": True}
        ]
        assert mirror["spec"]["nodeName"] == "n1"
        assert mirror["status"]["phase"] == "Pending"
        assert is_mirror_of(mirror, pod)


@virtual_time
async def test_a_mirror_that_is_right_is_left_alone() -> None:
    async with mirrors() as (here, them, _):
        pod = static()
        made = await them.ensure(pod, None)
        here.requests.clear()
        assert await them.ensure(pod, made) == made
        assert not here.requests


@virtual_time
async def test_a_mirror_that_nobody_told_of_is_found() -> None:
    async with mirrors() as (_, them, _reporter):
        pod = static()
        made = await them.ensure(pod, None)
        assert await them.ensure(pod, None) == made
        changed = await them.ensure(static("walk"), None)
        assert changed is not None
        assert is_mirror_of(changed, static("walk"))


@pytest.mark.parametrize("node_name", ["", "n1"])
@virtual_time
async def test_a_pod_of_somebody_else_with_that_name_is_left_alone_and_told_of_once(
    caplog: pytest.LogCaptureFixture, node_name: str
) -> None:
    async with mirrors() as (here, them, _):
        spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": node_name}
        theirs = await here.client.create(PODS, {"metadata": {"name": "web-n1"}, "spec": spec}, "default")
        assert await them.ensure(static(), None) is None
        assert await them.ensure(static(), None) is None
        assert (await on_server(here) or {})["metadata"]["uid"] == theirs["metadata"]["uid"]
        (said,) = [each.message for each in caplog.records if "mirror" in each.message]
        assert said.startswith("static pod default/web-n1 has no mirror pod: a pod of its name exists")


@virtual_time
async def test_a_node_that_is_gone_has_no_mirrors() -> None:
    async with mirrors() as (here, them, _):
        await here.delete_node()
        await asyncio.sleep(1)
        here.requests.clear()
        assert await them.ensure(static(), None) is None
        assert not here.requests
        assert await on_server(here) is None


@virtual_time
async def test_a_node_that_is_to_go_gets_no_mirrors() -> None:
    async with mirrors() as (here, them, reporter):
        await here.client.patch(NODES, "n1", {"metadata": {"finalizers": ["test.example/hold"]}})
        await here.delete_node()
        await asyncio.sleep(1)
        assert reporter.uid
        assert await them.ensure(static(), None) is None
        assert await on_server(here) is None


@virtual_time
async def test_only_the_mirror_that_is_meant_is_deleted() -> None:
    async with mirrors() as (here, them, _):
        made = await them.ensure(static(), None)
        assert made is not None
        assert not await them.delete("web-n1_default", "another")
        assert await on_server(here) is not None
        assert await them.delete("web-n1_default", made["metadata"]["uid"])
        assert await on_server(here) is None
        assert not await them.delete("web-n1_default", made["metadata"]["uid"])


@pytest.mark.parametrize(("full_name", "uid"), [("web", "u"), ("_default", "u"), ("web_default", "")])
@virtual_time
async def test_a_delete_that_does_not_say_what_it_means_is_refused(full_name: str, uid: str) -> None:
    async with mirrors() as (_, them, _reporter):
        with pytest.raises(ValueError, match="names no mirror pod"):
            await them.delete(full_name, uid)

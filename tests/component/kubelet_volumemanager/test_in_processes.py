"""Volumes as real processes see them, through the runtime `process`, on real time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from podlife.api.codec import Object
from podlife.clock import SystemClock
from podlife.kubelet.envvars import ContainerConfigError
from podlife.kubelet.runtime import ContainerConfig, ContainerState, ContainerStatus, EventKind, SandboxConfig
from podlife.kubelet.runtimes.process import ProcessRuntime, ProcessSettings
from tests.component.kubelet_volumemanager.conftest import needs_root
from tests.component.kubelet_volumemanager.node import Node, contents, pod

pytestmark = needs_root


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[ProcessRuntime]:
    async with ProcessRuntime(ProcessSettings(tmp_path / "runtime"), SystemClock()) as opened:
        yield opened
        for sandbox in await opened.list_sandboxes():
            await opened.remove_sandbox(sandbox.id)


async def start(runtime: ProcessRuntime, node: Node, mine: Object, script: str) -> str:
    container = mine["spec"]["containers"][0]
    sandbox = await runtime.run_sandbox(SandboxConfig(mine["metadata"]["uid"], "default", "web"))
    mounts = node.volumes.mounts(mine, container)
    config = ContainerConfig("main", command=("sh", "-euc", script), mounts=mounts)
    created = await runtime.create_container(sandbox, config)
    await runtime.start_container(created)
    return created


async def ended(runtime: ProcessRuntime, container: str) -> ContainerStatus:
    async with asyncio.timeout(60), runtime.events() as events:
        status = await runtime.container_status(container)
        while status.state is not ContainerState.EXITED:
            async for event in events:
                if event.kind in (EventKind.CONTAINER_STOPPED, EventKind.RELIST):
                    break
            status = await runtime.container_status(container)
    return status


async def test_a_running_container_sees_an_update_whole_and_writes_where_it_may(
    root: Path, runtime: ProcessRuntime
) -> None:
    node = Node(root, in_threads=True)
    await node.server.put_config_map("settings", {"a": "old", "b": "old"})
    await node.server.put_secret("key", {"s": b"secret"})
    volumes: list[Object] = [
        {"name": "config", "configMap": {"name": "settings"}},
        {"name": "key", "secret": {"secretName": "key"}},
        {"name": "out", "emptyDir": {}},
    ]
    mounts = [
        {"name": "config", "mountPath": "/podlife-test/config"},
        {"name": "key", "mountPath": "/podlife-test/one-key", "subPath": "s"},
        {"name": "out", "mountPath": "/podlife-test/out", "subPath": "deep/er"},
    ]
    mine = pod(*volumes, mounts=mounts)
    await node.mount(mine)
    script = """
        cd /podlife-test
        cat one-key > out/first
        if touch config/new 2>/dev/null; then exit 3; fi
        until test "$(cat config/a)" = new; do sleep 0.05; done
        cat config/b > out/second
    """
    container = await start(runtime, node, mine, script)
    out = root / "pods/uid-1/volumes/kubernetes.io~empty-dir/out/deep/er"
    await node.server.put_config_map("settings", {"a": "new", "b": "new"})
    # What a pod refers to is asked for anew when it changes.
    mine["metadata"]["annotations"] = {"touch": "now"}
    await node.mount(mine)
    status = await ended(runtime, container)
    assert (status.exit_code, status.message) == (0, "")
    assert contents(out) == {"first": b"secret", "second": b"new"}
    for sandbox in await runtime.list_sandboxes():
        await runtime.remove_sandbox(sandbox.id)
    await node.volumes.unmount("uid-1")
    assert list((root / "pods").iterdir()) == []


async def test_a_container_that_plants_a_link_gets_nothing_of_the_node(
    root: Path, runtime: ProcessRuntime, tmp_path: Path
) -> None:
    """As in the attacks of old: one container makes the link, the next one asks for it as its part."""
    node = Node(root, in_threads=True)
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious/secret").write_text("the node's own")
    volume = {"name": "scratch", "emptyDir": {}}
    first = pod(volume)
    await node.mount(first)
    container = await start(runtime, node, first, f"ln -s {tmp_path}/precious /scratch/part")
    assert (await ended(runtime, container)).exit_code == 0
    mount = {"name": "scratch", "mountPath": "/part", "subPath": "part"}
    second = pod(volume, mounts=[mount])
    with pytest.raises(ContainerConfigError, match="failed to prepare subPath"):
        await node.mount(second)
    for sandbox in await runtime.list_sandboxes():
        await runtime.remove_sandbox(sandbox.id)
    await node.volumes.unmount("uid-1")
    assert (tmp_path / "precious/secret").exists()

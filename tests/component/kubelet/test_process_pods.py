"""Pods that are real processes, on a whole agent with its volumes and logs, in the test's own process."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from podlife.aio import cancel_and_wait, spawn
from podlife.client import PODS, Client, PatchType
from podlife.clock import SystemClock
from podlife.kubelet.kubelet import Kubelet
from podlife.kubelet.node_status import NodeSettings
from podlife.kubelet.runtimes.process import ProcessRuntime, ProcessSettings
from podlife.kubelet.runtimes.process.cgroups import discover
from podlife.kubelet.runtimes.process.launch import can_mount
from podlife.kubelet.settings import KubeletSettings
from tests.component.kubelet.node_world import MACHINE, NODE, PodUser, pod
from tests.kit.embedded import connect, start
from tests.kit.wait import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the process runtime needs Linux")

Object = dict[str, Any]
MEMORY_LIMITS = ("memory.max", "memory.limit_in_bytes")


class Node(PodUser):
    def __init__(self, client: Client, data: Path) -> None:
        super().__init__(client)
        self.data = data

    async def run(self, *containers: Object, **spec: Any) -> None:
        await self.create(pod(containers=containers, terminationGracePeriodSeconds=1, **spec))

    async def remove(self) -> None:
        await self.delete()
        await self.until_gone()

    async def told(self, reason: str) -> str:
        """The first event with this reason, once there is one."""

        async def said() -> list[str]:
            return [message for each, message, _ in await self.events() if each == reason]

        return (await until(said))[0]

    def log(self, name: str = "main", attempt: int = 0) -> str:
        """Nothing while there is none: it begins with the first thing that is said."""
        paths = (self.data / "logs" / "pods").glob(f"default_web_*/{name}/{attempt}.log")
        return "".join(path.read_text() for path in paths)


@asynccontextmanager
async def node_in(folder: Path) -> AsyncIterator[Node]:
    failures: list[BaseException] = []
    clock = SystemClock()
    runtime = ProcessRuntime(ProcessSettings(folder / "process", ips=("127.0.0.1",)), clock)
    settings = KubeletSettings(NodeSettings(NODE, addresses=("127.0.0.1",)), data=folder)
    server = await start()
    async with connect(server) as client, connect(server) as own:
        agent = Kubelet(own, runtime, settings, clock, machine=MACHINE)
        running = spawn(agent.run(), name="agent", on_failure=failures.append)
        try:
            yield Node(client, folder)
        finally:
            await cancel_and_wait(running)
    assert not failures


def container(script: str, name: str = "main", **fields: Any) -> Object:
    return {"name": name, "image": "none:1", "command": ["sh", "-c", script], **fields}


async def test_a_pod_has_the_address_of_its_node_its_logs_and_nothing_when_it_is_gone(tmp_path: Path) -> None:
    async with node_in(tmp_path) as node:
        await node.run(container("echo hello; exec sleep 1000"))
        running = await node.until_phase("Running")
        assert running["status"]["podIP"] == "127.0.0.1"
        await until(lambda: " stdout F hello\n" in node.log())
        await node.remove()
        logs, pods = tmp_path / "logs" / "pods", tmp_path / "pods"
        await until(lambda: not list(logs.iterdir()) and not list(pods.glob("*/volumes")))


async def test_a_container_that_failed_without_a_word_lets_its_log_speak_for_it(tmp_path: Path) -> None:
    async with node_in(tmp_path) as node:
        talking = container(
            "echo first; echo last words; exit 3", terminationMessagePolicy="FallbackToLogsOnError"
        )
        await node.run(talking, restartPolicy="Never")
        failed = await node.until_phase("Failed")
        ended = failed["status"]["containerStatuses"][0]["state"]["terminated"]
        assert (ended["exitCode"], ended["message"]) == (3, "first\nlast words\n")
        await node.remove()


async def test_containers_of_a_pod_share_its_volumes_also_those_that_came_before(tmp_path: Path) -> None:
    async with node_in(tmp_path) as node:
        shared = [{"name": "shared", "mountPath": "/tmp/shared-of-the-pod"}]
        await node.run(
            container("cat /tmp/shared-of-the-pod/note", volumeMounts=shared),
            initContainers=[
                container("echo from the first > /tmp/shared-of-the-pod/note", "first", volumeMounts=shared)
            ],
            volumes=[{"name": "shared", "emptyDir": {}}],
            restartPolicy="Never",
        )
        await node.until_phase("Succeeded")
        assert "from the first" in node.log()
        await node.remove()


async def test_no_event_claims_that_an_image_was_pulled_or_is_present(tmp_path: Path) -> None:
    async with node_in(tmp_path) as node:
        await node.run(container("true"), restartPolicy="Never")
        await node.until_phase("Succeeded")
        assert await node.told("Started")
        assert "Pulled" not in [reason for reason, _, _ in await node.events()]


@pytest.mark.skipif(not can_mount(), reason="mounts cannot be made here")
async def test_host_aliases_are_seen_beside_what_the_node_knows(tmp_path: Path) -> None:
    async with node_in(tmp_path) as node:
        aliases = [{"ip": "192.0.2.9", "hostnames": ["db.podlife.test"]}]
        await node.run(container("cat /etc/hosts"), hostAliases=aliases, restartPolicy="Never")
        await node.until_phase("Succeeded")
        assert " stdout F 192.0.2.9\tdb.podlife.test\n" in node.log()
        assert "db.podlife.test" not in Path("/etc/hosts").read_text()


async def test_a_sysctl_is_refused_with_what_to_do(tmp_path: Path) -> None:
    async with node_in(tmp_path) as node:
        sysctls = [{"name": "kernel.shm_rmid_forced", "value": "1"}]
        await node.run(container("true"), securityContext={"sysctls": sysctls})
        said = await node.told("FailedCreatePodSandBox")
        assert "processes share the kernel parameters of their node" in said
        assert "--runtime containerd" in said


@pytest.mark.skipif(discover() is None, reason="no control group can be made here")
async def test_a_running_process_is_resized_and_the_memory_that_it_uses_is_not_taken(tmp_path: Path) -> None:
    async def resize(node: Node, memory: str) -> None:
        body = {"spec": {"containers": [{"name": "main", "resources": {"limits": {"memory": memory}}}]}}
        await node.client.patch(PODS, "web", body, "default", type=PatchType.STRATEGIC, subresource="resize")

    def limit(each: Object) -> str:
        return str(each["status"]["containerStatuses"][0]["resources"]["limits"]["memory"])

    async with node_in(tmp_path) as node:
        resources = {"requests": {"memory": "1Ki"}, "limits": {"memory": "256Mi"}}
        await node.run(container("exec sleep 1000", resources=resources))
        running = await node.until_phase("Running")
        await resize(node, "512Mi")
        await node.until(lambda each: limit(each) == "512Mi")
        groups = discover()
        assert groups is not None
        container_id = running["status"]["containerStatuses"][0]["containerID"].removeprefix("process://")
        folder = groups.parents["memory"] / container_id
        limits = [each.read_text() for each in folder.glob("memory.*") if each.name in MEMORY_LIMITS]
        assert limits == [f"{512 << 20}\n"]
        await resize(node, "8Ki")
        assert "below current usage" in await node.told("ResizeError")
        kept = await node.get()
        assert (limit(kept), kept["status"]["containerStatuses"][0]["restartCount"]) == ("512Mi", 0)
        await node.remove()

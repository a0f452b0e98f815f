"""A node joins real servers with the rights that a kubelet has, no more, and kube-controller-manager agrees with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from podlife.aio import cancel_and_wait, spawn
from podlife.api.codec import Object
from podlife.client import LEASES, NODES, PODS, Client, DeleteOptions, Flags, load
from podlife.clock import SystemClock
from podlife.errors import NotFoundError
from podlife.kubelet.config import ApiMirrorClient, is_mirror_of, read_manifest
from podlife.kubelet.node_status import HostMachine, MachineFacts, MachineUsage, NodeReporter, NodeSettings
from tests.kit.real_parts import Server, Settings
from tests.kit.wait import until
from tests.real.conftest import Kubectl, StartControllerManager

NAME = "node-a"
PATIENCE_SECONDS = 120


class Machine(HostMachine):
    """This one, and never short of anything: how full its disk is does not matter here."""

    def usage(self) -> MachineUsage:
        return MachineUsage()


class Runtime:
    name = "stub"

    async def version(self) -> str:
        return "1.0"


@pytest.fixture(params=["kube", "podlife_server"])
def server(request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue(request.param)
    return found


def connect(server: Server, who: str = "admin", *, token: str = "") -> Client:
    token = token or server.tokens[who]
    flags = Flags(server=server.url, token=token, certificate_authority=str(server.ca_file))
    return Client.connect(load(flags, {}), timeout_seconds=PATIENCE_SECONDS)


@pytest.fixture
async def admin(server: Server) -> AsyncIterator[Client]:
    async with connect(server) as client:
        yield client
        await forget(client)


async def forget(client: Client) -> None:
    for ref, namespace in ((NODES, ""), (LEASES, "kube-node-lease")):
        try:
            found = await client.get(ref, NAME, namespace)
            await client.delete(ref, NAME, namespace, options=DeleteOptions(uid=found["metadata"]["uid"]))
        except NotFoundError:
            continue


@asynccontextmanager
async def running(server: Server, data: Path, settings: NodeSettings) -> AsyncIterator[NodeReporter]:
    failures: list[BaseException] = []
    async with connect(server, NAME) as own:
        reporter = NodeReporter(own, settings, SystemClock(), machine=Machine(data), runtime=Runtime())
        task = spawn(reporter.run(), name="node", on_failure=failures.append)
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await reporter.registered.wait()
            yield reporter
        finally:
            await cancel_and_wait(task)
    assert not failures


def settings(**others: Any) -> NodeSettings:
    return NodeSettings(
        NAME,
        addresses=("127.0.0.1", "::1"),
        labels={"pool": "a"},
        renew_seconds=1.0,
        check_seconds=1.0,
        **others,
    )


async def until_renewed(client: Client, times: int) -> None:
    """Until the node has renewed its lease that often, which is about once a second."""
    seen: set[str] = set()

    async def is_renewed() -> bool:
        try:
            lease = await client.get(LEASES, NAME, "kube-node-lease")
        except NotFoundError:
            return False
        seen.add(lease["spec"]["renewTime"])
        return len(seen) > times

    await until(is_renewed)


async def test_a_node_registers_itself_and_kubectl_shows_it(
    server: Server, admin: Client, tmp_path: Path, kubectl: Kubectl
) -> None:
    async with running(
        server, tmp_path, settings(taints=({"key": "k", "value": "v", "effect": "NoSchedule"},))
    ):
        node = await admin.get(NODES, NAME)
        facts: MachineFacts = HostMachine(tmp_path).facts()
        assert node["status"]["capacity"]["cpu"] == str(facts.cores)
        assert [each["address"] for each in node["status"]["addresses"]] == ["127.0.0.1", "::1", "127.0.0.1"]
        assert {"key": "k", "value": "v", "effect": "NoSchedule"} in node["spec"]["taints"]
        shown = await asyncio.to_thread(
            kubectl, "get", "node", NAME, "--no-headers", "-o", "wide", kubeconfig=server.kubeconfig
        )
        fields = shown.stdout.split()
        assert fields[:2] == [NAME, "Ready"]
        assert "127.0.0.1" in fields
        assert "stub://1.0" in fields

        await until_renewed(admin, 2)


async def test_a_node_is_taken_over_by_the_next_agent_and_told_of_in_patches(
    server: Server, admin: Client, tmp_path: Path
) -> None:
    async with running(server, tmp_path, settings()):
        uid = (await admin.get(NODES, NAME))["metadata"]["uid"]
    await admin.patch(NODES, NAME, {"metadata": {"labels": {"kubernetes.io/arch": None, "mine": "1"}}})
    other = settings(max_pods=7, kubelet_port=4444)
    async with running(server, tmp_path, other) as reporter:
        node = await admin.get(NODES, NAME)
        assert node["metadata"]["uid"] == uid
        assert node["metadata"]["labels"]["kubernetes.io/arch"] == HostMachine(tmp_path).facts().architecture
        assert node["metadata"]["labels"]["mine"] == "1"
        assert node["status"]["capacity"]["pods"] == node["status"]["allocatable"]["pods"] == "7"
        assert node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"] == 4444
        assert [each["address"] for each in node["status"]["addresses"]] == ["127.0.0.1", "::1", "127.0.0.1"]
        await admin.patch(NODES, NAME, {"metadata": {"labels": {"mine": "2"}}})

        await until(lambda: reporter.node()["metadata"]["labels"]["mine"] == "2")
        # By then it has told whatever it had to tell.
        await until_renewed(admin, 2)
        node = await admin.get(NODES, NAME)
        # Nothing more is to be told: what this server stores is what was meant.
        version = node["metadata"]["resourceVersion"]
        await until_renewed(admin, 2)
        assert (await admin.get(NODES, NAME))["metadata"]["resourceVersion"] == version


async def test_mirrors_are_made_and_replaced_with_the_rights_of_a_node(
    server: Server, admin: Client, tmp_path: Path
) -> None:
    def static(command: str) -> Object:
        text = f"""
            apiVersion: v1
            kind: Pod
            metadata: {{name: web}}
            spec:
              containers: [{{name: c, image: i, command: [{command}]}}]
              volumes: [{{name: v, hostPath: {{path: /x}}}}]
        """
        return read_manifest(text.encode(), "/m/web.yaml", NAME).pod

    async with running(server, tmp_path, settings()) as reporter, connect(server, NAME) as own:
        mirrors = ApiMirrorClient(own, reporter)
        old = await mirrors.ensure(static("run"), None)
        assert old is not None
        assert await mirrors.ensure(static("run"), None) == old
        new = await mirrors.ensure(static("walk"), old)
        assert new is not None
        stored = await admin.get(PODS, f"web-{NAME}", "default")
        assert stored["metadata"]["uid"] == new["metadata"]["uid"] != old["metadata"]["uid"]
        assert is_mirror_of(stored, static("walk"))
        # What was filled in here is what the server would have filled in.
        assert stored["spec"] | {"priority": 0, "preemptionPolicy": ""} == static("walk")["spec"] | {
            "priority": 0,
            "preemptionPolicy": "",
        }
        assert not await mirrors.delete(f"web-{NAME}_default", old["metadata"]["uid"])
        assert await mirrors.delete(f"web-{NAME}_default", new["metadata"]["uid"])


async def test_the_node_monitor_of_kube_controller_manager_agrees(
    start_kube: Callable[[Settings], Server], start_controller_manager: StartControllerManager, tmp_path: Path
) -> None:
    """NL-13, NL-15, NL-53: silent nodes are given up, and those that come back are ready without taints."""
    server = start_kube(Settings())
    await asyncio.to_thread(
        start_controller_manager,
        ["node-lifecycle-controller"],
        server,
        "--node-monitor-period=500ms",
        # So many renewals may be late on a busy machine.
        "--node-monitor-grace-period=10s",
    )
    async with connect(server) as admin:

        async def ready_is(status: str, *, tainted: bool) -> bool:
            node = await admin.get(NODES, NAME)
            ready = next(each for each in node["status"]["conditions"] if each["type"] == "Ready")
            return ready["status"] == status and bool(node["spec"].get("taints")) == tainted

        async with running(server, tmp_path, settings()):
            await until(lambda: ready_is("True", tainted=False))
            # Longer than the monitor waits: the lease alone keeps the node.
            await until_renewed(admin, 11)
            assert await ready_is("True", tainted=False)
        await until(lambda: ready_is("Unknown", tainted=True))
        async with running(server, tmp_path, settings()):
            await until(lambda: ready_is("True", tainted=False))

"""The rights of out-of-service on a kube-apiserver with RBAC: without any single one of them something is refused, and
nothing is done. That nothing is missing, the page's own test shows."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import AsyncExitStack
from typing import Any

import pytest
import yaml

from podlife.client import NODES, PODS, Client, Connection, TokenAuth
from podlife.clock import SystemClock
from podlife.controller import ControlPlane
from podlife.errors import ForbiddenError
from podlife.nodehealth.out_of_service import (
    FenceAnswer,
    FenceResult,
    FenceSubject,
    OutOfServiceController,
    OutOfServiceSettings,
    Portion,
)
from tests.component.nodehealth.world import taints
from tests.kit.real_parts import Server, run_kubectl
from tests.kit.wait import until
from tests.real.podgc.test_rbac import may
from tests.real.workloads.test_controllers_command import (
    ACCOUNT,
    MANIFESTS,
    NAMESPACE,
    Right,
    taken_away,
    token_of,
)

ROLE = f"{ACCOUNT}:out-of-service"
ALONE = "out-of-service-alone"
TAINT = "out-of-service:NoExecute"
SETTINGS = OutOfServiceSettings(
    after_seconds=0.3,
    most=Portion(percent=100),
    min_healthy=Portion(number=0),
    fence_every_seconds=0.1,
    period_seconds=0.1,
)
_NUMBERS = itertools.count(1)


def _rights() -> list[Right]:
    rights = []
    for document in yaml.safe_load_all((MANIFESTS / "rbac.yaml").read_text()):
        name = document["metadata"]["name"]
        for number, rule in enumerate(document.get("rules", ()) if name == ROLE else ()):
            [resource], [group] = rule["resources"], rule["apiGroups"]
            rights += [Right(document["kind"], name, number, verb, resource, group) for verb in rule["verbs"]]
    return rights


class Dead:
    kind = name = "test"

    async def ask(self, _: FenceSubject) -> FenceAnswer:
        return FenceAnswer(self.name, FenceResult.DEAD)


@pytest.fixture(scope="module")
def bound(installed: Server) -> Server:
    """An account that is bound to the role of this controller and of all of them, alone."""
    documents: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ALONE, "namespace": NAMESPACE}}
    ]
    for each in yaml.safe_load_all((MANIFESTS / "rbac.yaml").read_text()):
        if each["kind"] == "ClusterRoleBinding" and each["metadata"]["name"] in (ACCOUNT, ROLE):
            metadata = {"name": f"{ALONE}-{each['metadata']['name'].rpartition(':')[2]}"}
            subject = {"kind": "ServiceAccount", "name": ALONE, "namespace": NAMESPACE}
            documents.append({**each, "metadata": metadata, "subjects": [subject]})
    text = yaml.safe_dump_all(documents)
    result = run_kubectl("apply", "-f", "-", kubeconfig=installed.kubeconfig, stdin=text)
    assert result.returncode == 0, result.stderr
    return installed


async def dead_node(client: Client) -> str:
    """One that nobody has heard of, with a pod on it."""
    name = f"dead-{next(_NUMBERS)}"
    await client.create(NODES, {"metadata": {"name": name}})
    containers = [{"name": "main", "image": "app"}]
    await client.create(
        PODS, {"metadata": {"name": name}, "spec": {"nodeName": name, "containers": containers}}, "default"
    )
    return name


def connection_of(server: Server, token: str) -> Connection:
    return Connection(server.url, auth=TokenAuth(token), certificate_authority=server.ca_file.read_bytes())


async def is_out(client: Client, name: str) -> bool:
    return TAINT in taints(await client.get(NODES, name))


@pytest.mark.parametrize("right", _rights(), ids=str)
async def test_without_any_single_right_something_is_refused_and_nothing_done(
    bound: Server, client: Client, right: Right, caplog: pytest.LogCaptureFixture
) -> None:
    name = await dead_node(client)
    token = await token_of(client, ALONE)
    async with AsyncExitStack() as stack:
        await taken_away(bound, client, token, right, stack)
        own = await stack.enter_async_context(Client.connect(connection_of(bound, token)))
        plane = ControlPlane(own, clock=SystemClock())
        plane.add(OutOfServiceController(plane, checks=[Dead()], settings=SETTINGS))
        running = asyncio.get_running_loop().create_task(plane.run())
        refusal = f'cannot {right.verb} resource "{right.resource}"'

        async def is_refused() -> bool:
            return refusal in caplog.text or (running.done() and refusal in str(running.exception()))

        try:
            await until(is_refused)
        finally:
            running.cancel()
            await asyncio.wait([running])
        if not running.cancelled():
            assert isinstance(running.exception(), ForbiddenError)
    assert not await is_out(client, name)
    await client.delete(NODES, name)


async def test_with_all_of_them_the_node_is_tainted(bound: Server, client: Client) -> None:
    name = await dead_node(client)
    token = await token_of(client, ALONE)
    async with Client.connect(connection_of(bound, token)) as own:
        plane = ControlPlane(own, clock=SystemClock())
        plane.add(OutOfServiceController(plane, checks=[Dead()], settings=SETTINGS))
        running = asyncio.get_running_loop().create_task(plane.run())
        try:
            await until(lambda: is_out(client, name))
        finally:
            running.cancel()
            await asyncio.wait([running])
    await client.delete(NODES, name)


@pytest.mark.parametrize(
    ("verb", "resource", "group"),
    [
        ("delete", "nodes", ""),
        ("update", "nodes", ""),
        ("patch", "nodes/status", ""),
        ("delete", "pods", ""),
        ("patch", "pods/status", ""),
        ("get", "secrets", ""),
        ("update", "leases", "coordination.k8s.io"),
        ("delete", "volumeattachments", "storage.k8s.io"),
    ],
)
async def test_nothing_else_is_allowed(
    bound: Server, client: Client, verb: str, resource: str, group: str
) -> None:
    async with Client.connect(connection_of(bound, await token_of(client, ALONE))) as reviewer:
        assert not await may(reviewer, verb, resource, group=group, namespace="default")

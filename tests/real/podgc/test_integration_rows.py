"""Upstream's integration rows on a real kube-apiserver: period 500 ms, quarantine 1 s, no threshold."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from podlife.client import NODES, PODS, Client, PatchType
from podlife.errors import NotFoundError
from podlife.podgc import FeatureGates, Settings
from tests.kit.real_parts import Server
from tests.real.podgc import cluster
from tests.real.podgc.cluster import (
    Object,
    connect,
    find_pod,
    look_again,
    make_node,
    make_pod,
    running,
    taint,
    until,
)

SETTINGS = Settings(threshold=0, period_seconds=0.5, quarantine_seconds=1.0)
SECONDS = 120.0
_NUMBERS = itertools.count(1)

NODE_IS_GONE = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "DeletionByPodGC",
    "message": "PodGC: node no longer exists",
    "observedGeneration": 1,
}


@pytest_asyncio.fixture
async def client(kube: Server) -> AsyncIterator[Client]:
    async with connect(kube) as client:
        yield client


@pytest_asyncio.fixture
async def namespace(client: Client) -> AsyncIterator[str]:
    """The name of a namespace, and of a node if the test makes one; what is left of both at the end goes."""
    name = f"gc-row-{next(_NUMBERS)}"
    await cluster.make_namespace(client, name)
    yield name
    for pod in (await client.list_all(PODS, name)).items:
        await cluster.remove_pod(client, pod["metadata"]["name"], name)
    with contextlib.suppress(NotFoundError):
        await client.delete(NODES, name)


async def is_terminating(client: Client, namespace: str) -> Object:
    pod = await until(
        lambda: find_pod(client, "pod", namespace),
        lambda pod: pod is None or "deletionTimestamp" in pod["metadata"],
        seconds=SECONDS,
    )
    assert pod is not None, "the pod went, though a finalizer holds it"
    return pod


def disruption_of(pod: Object) -> Object | None:
    for condition in pod["status"].get("conditions", ()):
        if condition["type"] == "DisruptionTarget":
            assert condition["lastTransitionTime"]
            return {name: value for name, value in condition.items() if not name.endswith("Time")}
    return None


@pytest.mark.parametrize(
    ("phase", "phase_after", "condition"),
    [("Pending", "Failed", NODE_IS_GONE), ("Succeeded", "Succeeded", None), ("Failed", "Failed", None)],
)
async def test_a_held_pod_whose_node_was_deleted_is_terminating_and_has_ended(
    client: Client, namespace: str, phase: str, phase_after: str, condition: Object | None
) -> None:
    """GC-120, GC-121, GC-122"""
    await make_node(client, namespace)
    await make_pod(client, "pod", namespace, node=namespace, status={"phase": phase}, is_held=True)
    async with running(client, SETTINGS):
        await client.delete(NODES, namespace)
        pod = await is_terminating(client, namespace)
    assert pod["status"]["phase"] == phase_after
    assert disruption_of(pod) == condition
    assert pod["metadata"]["finalizers"] == [cluster.FINALIZER]


async def test_a_pod_whose_node_was_deleted_disappears(client: Client, namespace: str) -> None:
    """GC-124 for an orphan"""
    await make_node(client, namespace)
    await make_pod(client, "pod", namespace, node=namespace)
    async with running(client, SETTINGS):
        await client.delete(NODES, namespace)
        await until(lambda: find_pod(client, "pod", namespace), lambda pod: pod is None, seconds=SECONDS)


async def put_out_of_service(client: Client, name: str) -> None:
    patch = {"spec": {"taints": [taint()]}}
    await client.patch(NODES, name, patch, type=PatchType.STRATEGIC)


@pytest.mark.parametrize("replacement_policy", [False, True])
async def test_a_held_pod_terminating_on_a_node_put_out_of_service_becomes_failed(
    client: Client, namespace: str, replacement_policy: bool
) -> None:
    """GC-123, GC-125"""
    gates = FeatureGates(job_pod_replacement_policy=replacement_policy)
    await make_node(client, namespace, ready="False")
    await make_pod(client, "pod", namespace, node=namespace, is_held=True, deleted_with_grace=300)
    async with running(client, replace(SETTINGS, gates=gates)):
        await put_out_of_service(client, namespace)
        pod = await until(
            lambda: find_pod(client, "pod", namespace),
            lambda pod: pod is not None and pod["metadata"]["deletionGracePeriodSeconds"] == 0,
            seconds=SECONDS,
        )
    assert pod is not None
    assert pod["status"]["phase"] == "Failed"
    assert disruption_of(pod) is None


async def test_a_pod_terminating_on_a_node_put_out_of_service_disappears(
    client: Client, namespace: str
) -> None:
    """GC-124"""
    await make_node(client, namespace, ready="False")
    await make_pod(client, "pod", namespace, node=namespace, deleted_with_grace=300)
    async with running(client, SETTINGS):
        await put_out_of_service(client, namespace)
        await until(lambda: find_pod(client, "pod", namespace), lambda pod: pod is None, seconds=SECONDS)


@pytest.mark.parametrize(
    "container",
    [
        {"env": [{"name": "XYZ", "value": "1"}, {"name": "XYZ", "value": "2"}]},
        {"ports": [{"containerPort": 93, "hostPort": 9376}, {"containerPort": 93, "hostPort": 9377}]},
    ],
    ids=["env", "ports"],
)
async def test_an_orphan_with_duplicate_merge_keys_in_its_spec_is_marked_and_deleted(
    client: Client, namespace: str, container: Object
) -> None:
    """GC-95"""
    await make_pod(client, "pod", namespace, node=namespace, is_held=True, container=container)
    async with running(client, SETTINGS):
        pod = await is_terminating(client, namespace)
    assert pod["status"]["phase"] == "Failed"
    assert disruption_of(pod) == NODE_IS_GONE


async def test_many_orphans_of_several_nodes_all_go_and_their_neighbours_stay(
    client: Client, namespace: str
) -> None:
    """GC-54 beside pods that live"""
    await make_node(client, namespace)
    for number in range(60):
        node = namespace if number % 3 == 0 else f"{namespace}-gone-{number % 3}"
        await make_pod(client, f"pod-{number:02}", namespace, node=node, status={"phase": "Running"})
    async with running(client, SETTINGS) as collector:
        await until(
            lambda: client.list_all(PODS, namespace), lambda page: len(page.items) <= 20, seconds=SECONDS
        )
        await look_again(collector)
        left = await client.list_all(PODS, namespace)
    assert {pod["spec"]["nodeName"] for pod in left.items} == {namespace}
    assert len(left.items) == 20

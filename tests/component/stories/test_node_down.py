"""A node falls silent: who goes when, who is replaced at once, and what becomes of a node that returns."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from podlife.api.codec import parse_time
from podlife.client import DEPLOYMENTS, LEASES, NODES, PODS, STATEFUL_SETS
from podlife.testing import Cluster, ObservedChange, Timeline, is_gone, is_terminating, virtual_time
from tests.component.stories.objects import Object, condition, has_condition, running, taints, workload


async def pods_on(cluster: Cluster, node: str) -> dict[str, Object]:
    found = (await cluster.client.list(PODS, "default")).items
    return {each["metadata"]["name"]: each for each in found if each["spec"].get("nodeName") == node}


async def pod_names(cluster: Cluster) -> set[str]:
    return {each["metadata"]["name"] for each in (await cluster.client.list(PODS, "default")).items}


@asynccontextmanager
async def a_cluster_at_work() -> AsyncIterator[Cluster]:
    """Three nodes; a Deployment with a pod on each, and a StatefulSet whose db-0 is on n1."""
    async with Cluster(nodes=3) as cluster:
        await cluster.client.create(DEPLOYMENTS, workload("web", 3), "default")
        database = workload("db", 1, serviceName="db", updateStrategy={"type": "OnDelete"})
        database["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "n1"}
        await cluster.client.create(STATEFUL_SETS, database, "default")
        await cluster.settled()
        # From now on it may run anywhere: what is bound stays where it is.
        free = {
            "spec": {"template": {"spec": {"nodeSelector": None}}, "updateStrategy": {"type": "OnDelete"}}
        }
        await cluster.client.patch(STATEFUL_SETS, "db", free, "default")
        await cluster.settled()
        assert "db-0" in await pods_on(cluster, "n1")
        yield cluster


async def fall_silent(cluster: Cluster, seen: Timeline) -> float:
    """When n1 was heard of for the last time, in the timeline's seconds."""
    lease = await cluster.client.get(LEASES, "n1", "kube-node-lease")
    ago = (cluster.clock.now() - parse_time(lease["spec"]["renewTime"])).total_seconds()
    await cluster.node("n1").power_off()
    return cluster.time - seen.began_at - ago


def exists(change: ObservedChange) -> bool:
    return not change.is_gone


@virtual_time
async def test_a_replica_set_replaces_at_once_and_a_stateful_set_waits() -> None:
    async with a_cluster_at_work() as cluster, cluster.timeline() as seen:
        before = await pod_names(cluster)
        heard = await fall_silent(cluster, seen)
        await cluster.advance(minutes=20)
        evicted = seen.first("Pod", "db-0", is_terminating)
        # Forty seconds and at most two looks of the monitor until the node is unknown, 300 s of toleration after that.
        assert evicted is not None
        assert heard + 340 < evicted <= heard + 350.5
        [successor] = await pod_names(cluster) - before
        assert successor.startswith("web-")
        assert seen.first("Pod", successor, exists) == pytest.approx(evicted, abs=0.1)
        assert successor not in await pods_on(cluster, "n1")
        # The database is one pod, which nobody has seen end: there is no other until somebody has.
        [uid] = {change.uid for change in seen.of("Pod", "db-0")}
        database = (await pods_on(cluster, "n1"))["db-0"]
        assert database["metadata"]["uid"] == uid
        assert "deletionTimestamp" in database["metadata"]


@virtual_time
async def test_a_node_that_comes_back_clears_up_and_takes_pods_again() -> None:
    async with a_cluster_at_work() as cluster:
        async with cluster.timeline() as seen:
            await fall_silent(cluster, seen)
            await cluster.advance(minutes=10)
        async with cluster.timeline() as seen:
            await cluster.node("n1").start()
            await cluster.advance(minutes=2)
            back = seen.first("Node", "n1", has_condition("Ready", "True"))
            assert back is not None
            assert back < 5
            gone = seen.first("Pod", "db-0", is_gone)
            assert gone is not None
            assert gone < 10
        node = await cluster.client.get(NODES, "n1")
        assert taints(node) == []
        assert condition(node, "Ready")["status"] == "True"
        found = (await cluster.client.list(PODS, "default")).items
        assert sorted(each["status"]["phase"] for each in found) == ["Running"] * 4
        assert sorted(running(cluster)) == sorted(await pods_on(cluster, "n1"))

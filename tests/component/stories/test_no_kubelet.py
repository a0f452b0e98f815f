"""A pod is deleted and no kubelet can end it: it was never scheduled, its kubelet is stopped or its node deleted."""

from __future__ import annotations

import pytest

from podlife.client import DEPLOYMENTS, PODS
from podlife.testing import Cluster, is_gone, is_terminating, virtual_time
from tests.component.stories.objects import (
    cluster_with,
    delete,
    has_condition,
    phase,
    pod,
    running,
    who_deleted,
    workload,
)

# Never scheduled: nothing of it runs.


@virtual_time
async def test_it_goes_at_once_since_nothing_of_it_runs() -> None:
    async with cluster_with(pod(node=""), nodes=0) as cluster:
        async with cluster.timeline(PODS) as seen:
            await delete(cluster)
            await cluster.advance(seconds=1)
            assert seen.first("Pod", "web", is_gone) == 0
        assert who_deleted(cluster, "web") == [("test", None, False)]


@virtual_time
async def test_one_that_a_finalizer_holds_goes_when_the_finalizer_does() -> None:
    held = pod(node="")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    async with cluster_with(held, nodes=0) as cluster, cluster.timeline(PODS) as seen:
        await delete(cluster)
        await cluster.advance(minutes=5)
        assert seen.first("Pod", "web", is_terminating) == 0
        assert seen.first("Pod", "web", is_gone) is None
        await cluster.client.patch(PODS, "web", {"metadata": {"finalizers": None}}, "default")
        await cluster.advance(seconds=1)
        assert seen.first("Pod", "web", is_gone) == 300


@virtual_time
async def test_a_node_that_comes_later_does_not_get_it() -> None:
    async with cluster_with(pod(node=""), nodes=0) as cluster:
        await delete(cluster)
        await cluster.add_node("n1")
        await cluster.advance(minutes=1)
        assert running(cluster) == []
        assert (await cluster.client.list(PODS, "default")).items == []


# The kubelet is stopped: the deletion hangs, since only the node ends it.


@virtual_time
async def test_the_delete_hangs_until_the_agent_is_back() -> None:
    async with cluster_with(pod()) as cluster:
        await cluster.node("n1").stop()
        async with cluster.timeline(PODS) as seen:
            await delete(cluster)
            await cluster.advance(minutes=15)
            # Long past its grace the pod is still there, and so is its container.
            assert seen.first("Pod", "web", is_terminating) == 0
            assert seen.first("Pod", "web", is_gone) is None
            assert running(cluster) == ["web"]
            await cluster.node("n1").start()
            await cluster.settled()
            gone = seen.first("Pod", "web", is_gone)
            assert gone == pytest.approx(900, abs=5)
        assert running(cluster) == []
        assert who_deleted(cluster, "web") == [("test", None, False), ("n1", 0, True)]


@virtual_time
async def test_a_pod_that_was_forced_away_meanwhile_leaves_no_container_behind() -> None:
    async with cluster_with(pod()) as cluster:
        await cluster.node("n1").stop()
        await delete(cluster, grace=0)
        await cluster.advance(minutes=10)
        assert (await cluster.client.list(PODS, "default")).items == []
        assert running(cluster) == ["web"]
        await cluster.node("n1").start()
        await cluster.advance(seconds=60)
        assert running(cluster) == []


@virtual_time
async def test_another_pod_of_the_same_name_runs_only_when_the_old_one_has_ended() -> None:
    async with cluster_with(pod()) as cluster:
        [old] = cluster.node("n1").containers
        await cluster.node("n1").stop()
        await delete(cluster, grace=0)
        made = await cluster.client.create(PODS, pod(), "default")
        await cluster.node("n1").start()
        await cluster.advance(minutes=2)
        [new] = cluster.node("n1").containers
        assert (new.pod, new.pod_uid) == ("web", made["metadata"]["uid"])
        assert new.pod_uid != old.pod_uid


# The node is deleted with its pods still on it: they are orphans once it has been missing for long enough.


@virtual_time
async def test_orphans_are_collected_after_forty_seconds_of_quarantine() -> None:
    async with cluster_with(pod(), nodes=2) as cluster, cluster.timeline() as seen:
        await cluster.node("n1").remove()
        await cluster.advance(seconds=39.9)
        assert seen.first("Node", "n1", is_gone) == 0
        assert seen.first("Pod", "web", is_gone) is None
        await cluster.advance(seconds=20.1)
        assert seen.first("Pod", "web", is_gone) == pytest.approx(40, abs=0.5)
        # Nobody is left who could say how it ended: it failed, and says whose doing it was.
        assert seen.states("Pod", "web", phase) == ["Running", "Failed"]
        assert seen.first("Pod", "web", has_condition("DisruptionTarget", "True")) is not None
        assert who_deleted(cluster, "web") == [("pod-garbage-collector-controller", 0, True)]


@virtual_time
async def test_what_was_orphaned_is_replaced_elsewhere() -> None:
    async with Cluster(nodes=2) as cluster:
        await cluster.client.create(DEPLOYMENTS, workload("web", 4), "default")
        await cluster.settled()
        await cluster.node("n1").remove()
        await cluster.advance(minutes=2)
        found = (await cluster.client.list(PODS, "default")).items
        assert [(each["spec"]["nodeName"], each["status"]["phase"]) for each in found] == [
            ("n2", "Running")
        ] * 4


@virtual_time
async def test_a_node_that_returns_within_the_quarantine_keeps_its_pods() -> None:
    async with cluster_with(pod()) as cluster:
        async with cluster.timeline() as seen:
            await cluster.node("n1").remove()
            await cluster.advance(seconds=30)
            await cluster.node("n1").start()
            await cluster.advance(minutes=5)
            assert seen.first("Pod", "web", is_gone) is None
        assert running(cluster) == ["web"]

"""A node is deleted with its pods still on it: they are orphans once it has been missing for long enough."""

from __future__ import annotations

import pytest

from podlife.client import DEPLOYMENTS, PODS
from podlife.testing import Cluster, is_gone, virtual_time
from tests.component.stories.objects import has_condition, phase, pod, who_deleted, workload


@virtual_time
async def test_orphans_are_collected_after_forty_seconds_of_quarantine() -> None:
    async with Cluster(nodes=2) as cluster:
        await cluster.client.create(PODS, pod(), "default")
        await cluster.settled()
        async with cluster.timeline() as seen:
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
    async with Cluster() as cluster:
        await cluster.client.create(PODS, pod(), "default")
        await cluster.settled()
        async with cluster.timeline() as seen:
            await cluster.node("n1").remove()
            await cluster.advance(seconds=30)
            await cluster.node("n1").start()
            await cluster.advance(minutes=5)
            assert seen.first("Pod", "web", is_gone) is None
        assert [each.pod for each in cluster.node("n1").containers] == ["web"]

"""A pod is deleted and no kubelet can end it: its kubelet is stopped, or its node deleted."""

from __future__ import annotations

import pytest

from podlife.client import DEPLOYMENTS, PODS
from podlife.testing import Cluster, is_gone, is_terminating, virtual_time
from tests.component.stories.objects import delete, pod, running, who_deleted, workload

# The kubelet is stopped: the deletion hangs, since only the node ends it.


@virtual_time
async def test_the_delete_hangs_until_the_agent_is_back() -> None:
    async with Cluster() as cluster:
        await cluster.client.create(PODS, pod(), "default")
        await cluster.settled()
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


# The node is deleted with its pods still on it: they are orphans once it has been missing for long enough.


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

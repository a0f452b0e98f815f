"""The agent of a node is stopped and a pod on it is deleted: the deletion hangs, since only the node ends it."""

from __future__ import annotations

import pytest

from podlife.client import PODS, DeleteOptions
from podlife.testing import Cluster, is_gone, is_terminating, virtual_time
from tests.component.stories.objects import pod, who_deleted


@virtual_time
async def test_the_delete_hangs_until_the_agent_is_back() -> None:
    async with Cluster() as cluster:
        await cluster.client.create(PODS, pod(), "default")
        await cluster.settled()
        await cluster.node("n1").stop()
        async with cluster.timeline(PODS) as seen:
            await cluster.client.delete(PODS, "web", "default")
            await cluster.advance(minutes=15)
            # Long past its grace the pod is still there, and so is its container.
            assert seen.first("Pod", "web", is_terminating) == 0
            assert seen.first("Pod", "web", is_gone) is None
            assert [each.pod for each in cluster.node("n1").containers] == ["web"]
            await cluster.node("n1").start()
            await cluster.settled()
            gone = seen.first("Pod", "web", is_gone)
            assert gone == pytest.approx(900, abs=5)
        assert cluster.node("n1").containers == ()
        assert who_deleted(cluster, "web") == [("test", None, False), ("n1", 0, True)]


@virtual_time
async def test_a_pod_that_was_forced_away_meanwhile_leaves_no_container_behind() -> None:
    async with Cluster() as cluster:
        await cluster.client.create(PODS, pod(), "default")
        await cluster.settled()
        await cluster.node("n1").stop()
        await cluster.client.delete(PODS, "web", "default", options=DeleteOptions(grace_period_seconds=0))
        await cluster.advance(minutes=10)
        assert (await cluster.client.list(PODS, "default")).items == []
        assert [each.pod for each in cluster.node("n1").containers] == ["web"]
        await cluster.node("n1").start()
        await cluster.advance(seconds=60)
        assert cluster.node("n1").containers == ()


@virtual_time
async def test_another_pod_of_the_same_name_runs_only_when_the_old_one_has_ended() -> None:
    async with Cluster() as cluster:
        await cluster.client.create(PODS, pod(), "default")
        await cluster.settled()
        [old] = cluster.node("n1").containers
        await cluster.node("n1").stop()
        await cluster.client.delete(PODS, "web", "default", options=DeleteOptions(grace_period_seconds=0))
        made = await cluster.client.create(PODS, pod(), "default")
        await cluster.node("n1").start()
        await cluster.advance(minutes=2)
        [new] = cluster.node("n1").containers
        assert (new.pod, new.pod_uid) == ("web", made["metadata"]["uid"])
        assert new.pod_uid != old.pod_uid

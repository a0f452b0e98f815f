"""A pod that no node ever had is deleted: there is no agent that could end it."""

from __future__ import annotations

from podlife.client import PODS
from podlife.testing import Cluster, is_gone, is_terminating, virtual_time
from tests.component.stories.objects import pod, who_deleted


@virtual_time
async def test_it_goes_at_once_since_nothing_of_it_runs() -> None:
    async with Cluster(nodes=0) as cluster:
        await cluster.client.create(PODS, pod(node=""), "default")
        await cluster.settled()
        async with cluster.timeline(PODS) as seen:
            await cluster.client.delete(PODS, "web", "default")
            await cluster.advance(seconds=1)
            assert seen.first("Pod", "web", is_gone) == 0
        assert who_deleted(cluster, "web") == [("test", None, False)]


@virtual_time
async def test_one_that_a_finalizer_holds_goes_when_the_finalizer_does() -> None:
    async with Cluster(nodes=0) as cluster:
        held = pod(node="")
        held["metadata"]["finalizers"] = ["example.com/hold"]
        await cluster.client.create(PODS, held, "default")
        await cluster.settled()
        async with cluster.timeline(PODS) as seen:
            await cluster.client.delete(PODS, "web", "default")
            await cluster.advance(minutes=5)
            assert seen.first("Pod", "web", is_terminating) == 0
            assert seen.first("Pod", "web", is_gone) is None
            await cluster.client.patch(PODS, "web", {"metadata": {"finalizers": None}}, "default")
            await cluster.advance(seconds=1)
            assert seen.first("Pod", "web", is_gone) == 300


@virtual_time
async def test_a_node_that_comes_later_does_not_get_it() -> None:
    async with Cluster(nodes=0) as cluster:
        await cluster.client.create(PODS, pod(node=""), "default")
        await cluster.settled()
        await cluster.client.delete(PODS, "web", "default")
        await cluster.add_node("n1")
        await cluster.advance(minutes=1)
        assert cluster.node("n1").containers == ()
        assert (await cluster.client.list(PODS, "default")).items == []

"""A pod is deleted and everything goes well: each step, who makes it, and at which second."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from podlife.client import EVENTS, PODS
from podlife.testing import (
    Behaviour,
    Cluster,
    ObservedChange,
    Timeline,
    is_gone,
    is_terminating,
    virtual_time,
)
from tests.component.stories.objects import Object, delete, phase, pod, running, who_deleted

ANSWERS_TO_TERM_AFTER_10 = Behaviour(stop_seconds=10, stop_exit_code=0)
IGNORES_TERM = Behaviour(stop_seconds=None)


@asynccontextmanager
async def a_running_pod(behaviour: Behaviour, obj: Object) -> AsyncIterator[tuple[Cluster, Timeline]]:
    """In a cluster with all its controllers; what is seen begins now."""
    async with Cluster() as cluster:
        cluster.behave(behaviour)
        await cluster.client.create(PODS, obj, "default")
        await cluster.settled()
        assert running(cluster) == ["web"]
        async with cluster.timeline(PODS) as seen:
            yield cluster, seen


def terminated(change: ObservedChange) -> Object:
    [status] = change.object["status"]["containerStatuses"]
    return status["state"].get("terminated") or {}


def exit_codes(seen: Timeline) -> list[int]:
    return [each["exitCode"] for each in seen.states("Pod", "web", terminated) if each]


@virtual_time
async def test_a_deletion_is_a_mark_a_stop_and_at_last_the_node_s_own_delete() -> None:
    async with a_running_pod(ANSWERS_TO_TERM_AFTER_10, pod()) as (cluster, seen):
        # 1, 2: the server only marks it, with the grace of its spec.
        answer = await delete(cluster)
        assert answer["metadata"]["deletionGracePeriodSeconds"] == 30
        await cluster.advance(seconds=1)
        assert seen.first("Pod", "web", is_terminating) == 0
        # 3: the node has begun to stop it; it still runs.
        reasons = [each["reason"] for each in (await cluster.client.list(EVENTS, "default")).items]
        assert "Killing" in reasons
        assert running(cluster) == ["web"]
        # 4 to 7: it has answered to TERM after ten seconds, and its end is told.
        await cluster.advance(seconds=8.5)
        assert running(cluster) == ["web"]
        await cluster.advance(seconds=5)
        assert running(cluster) == []
        assert seen.first("Pod", "web", terminated) == pytest.approx(10, abs=0.5)
        assert exit_codes(seen) == [0]
        assert seen.states("Pod", "web", phase)[0] == "Running"
        # 8, 9: the node itself asks for the end, without grace and for this pod alone, and only then it is gone.
        assert who_deleted(cluster, "web") == [("test", None, False), ("n1", 0, True)]
        assert seen.first("Pod", "web", is_gone) == pytest.approx(10, abs=0.5)


@virtual_time
async def test_a_second_delete_whose_grace_is_over_already_leaves_two_seconds() -> None:
    async with a_running_pod(IGNORES_TERM, pod(grace=300)) as (cluster, seen):
        await delete(cluster)
        await cluster.advance(seconds=20)
        await delete(cluster, grace=5)
        await cluster.advance(minutes=1)
        assert seen.first("Pod", "web", is_gone) == pytest.approx(22, abs=0.5)


@virtual_time
async def test_without_grace_the_object_goes_at_once_and_the_container_after_it() -> None:
    async with a_running_pod(IGNORES_TERM, pod()) as (cluster, seen):
        await delete(cluster, grace=0)
        await cluster.advance()
        assert seen.first("Pod", "web", is_gone) == 0
        # On the node it still has the two seconds that everybody has.
        await cluster.advance(seconds=1.9)
        assert running(cluster) == ["web"]
        await cluster.advance(seconds=0.2)
        assert running(cluster) == []

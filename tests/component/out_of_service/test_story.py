"""The whole story under virtual time: a node dies, is confirmed dead and tainted, the pod collector frees what is on
it, the StatefulSet goes on elsewhere, the taint comes off; the node comes back, and is left alone for a while."""

from __future__ import annotations

import json
from dataclasses import replace

from podlife.client import NODES, PODS, STATEFUL_SETS
from podlife.testing import DEFAULT, virtual_time
from tests.component.out_of_service.world import (
    LAX,
    TAINT,
    Fence,
    Making,
    annotation,
    cluster_with,
    events_of,
    nodes_out,
)
from tests.component.stories.objects import has_taint, taints, workload


@virtual_time
async def test_a_node_dies_its_statefulset_fails_over_and_the_node_comes_back() -> None:
    making = Making(replace(LAX, after_seconds=300.0), Fence("n1"))
    async with cluster_with(making, others=tuple(DEFAULT)) as cluster:
        await cluster.client.create(STATEFUL_SETS, workload("db", 1, serviceName="db"), "default")
        await cluster.settled()
        old = await cluster.client.get(PODS, "db-0", "default")
        assert old["spec"]["nodeName"] == "n1"
        async with cluster.timeline(NODES, PODS) as seen:
            await cluster.node("n1").power_off()
            await cluster.advance(minutes=7)
            # 40 s of silence until it is not ready, and five minutes more.
            assert 340 <= (seen.first("Node", "n1", has_taint(TAINT)) or 0) < 365
        new = await cluster.client.get(PODS, "db-0", "default")
        assert new["metadata"]["uid"] != old["metadata"]["uid"]
        assert new["spec"]["nodeName"] != "n1"
        assert new["status"]["phase"] == "Running"
        assert await nodes_out(cluster) == [], "nothing is left on it: the taint has come off"
        assert json.loads(await annotation(cluster, "n1") or "")["state"] == "freed"
        await cluster.advance(minutes=6)
        assert await nodes_out(cluster) == [], "it is not tainted twice in one death"
        await cluster.node("n1").start()
        await cluster.advance(minutes=1)
        n1 = await cluster.client.get(NODES, "n1")
        assert taints(n1) == []
        assert json.loads(await annotation(cluster, "n1") or "")["state"] == "returned"
        assert [reason for reason, _ in await events_of(cluster, "n1")] == [
            "OutOfServiceTainted",
            "OutOfServiceTaintRemoved",
        ]
        metrics = making.controller.metrics
        assert (metrics.tainted, dict(metrics.removed)) == (1, {"freed": 1})
        await cluster.advance(minutes=2)
        assert await annotation(cluster, "n1") is None, "after the cool-down nothing of it is left"

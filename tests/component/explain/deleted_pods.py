"""Pods that were deleted and are still there, and pods on nodes that are not well."""

from __future__ import annotations

from typing import Any

from podlife.client import NODES, PODS
from podlife.errors import UnreachableError
from podlife.testing import Behaviour, Cluster
from tests.component.explain.situation import (
    Situation,
    create,
    delete,
    found,
    is_gone,
    with_metadata,
    with_spec,
)
from tests.component.stories.objects import OUT_OF_SERVICE, pod

NODE_HEALTH = ("node-lifecycle", "taint-eviction")
FOR_EVER = [{"operator": "Exists"}]
COLLECTOR = ("pod-garbage-collector",)


async def held_by_one(cluster: Cluster) -> None:
    await create(cluster, with_metadata(pod(), finalizers=["example.com/backup"]))
    await delete(cluster)
    await cluster.advance(minutes=2)


async def held_by_two(cluster: Cluster) -> None:
    await create(cluster, with_metadata(pod(), finalizers=["example.com/backup", "example.com/dns"]))
    await delete(cluster)
    await cluster.advance(minutes=2)


async def node_removed(cluster: Cluster) -> None:
    await create(cluster, pod())
    await cluster.node("n1").remove()
    await cluster.advance(seconds=5)


async def deleted_and_node_removed(cluster: Cluster) -> None:
    await create(cluster, pod())
    await cluster.node("n1").stop()
    await delete(cluster)
    await cluster.node("n1").remove()
    await cluster.advance(minutes=2)


async def node_down(cluster: Cluster) -> None:
    await create(cluster, pod())
    await cluster.node("n1").power_off()
    await cluster.advance(seconds=75)


async def node_down_for_one_that_bears_all(cluster: Cluster) -> None:
    await create(cluster, with_spec(pod(), tolerations=FOR_EVER))
    await cluster.node("n1").power_off()
    await cluster.advance(minutes=10)


async def deleted_on_a_dead_node(cluster: Cluster) -> None:
    await node_down(cluster)
    await delete(cluster)
    await cluster.advance(minutes=2)


async def out_of_service_and_no_collector(cluster: Cluster) -> None:
    await deleted_on_a_dead_node(cluster)
    node = await cluster.client.get(NODES, "n1")
    taints = [*node["spec"].get("taints", []), OUT_OF_SERVICE]
    await cluster.client.patch(NODES, "n1", {"spec": {"taints": taints}})
    await cluster.advance(minutes=1)


async def agent_silent(cluster: Cluster) -> None:
    await create(cluster, pod())
    await cluster.node("n1").stop()
    await delete(cluster)
    await cluster.advance(minutes=1)


async def agent_silent_and_nobody_deleted(cluster: Cluster) -> None:
    await create(cluster, pod())
    await cluster.node("n1").stop()
    await cluster.advance(minutes=1)


async def ignores_term(cluster: Cluster) -> None:
    cluster.behave(Behaviour(stop_seconds=None))
    await create(cluster, pod(grace=900))
    await delete(cluster)
    await cluster.advance(minutes=1)


async def hook_runs(cluster: Cluster) -> None:
    cluster.behave(Behaviour(stop_seconds=None))
    await create(cluster, pod(grace=900, lifecycle={"preStop": {"sleep": {"seconds": 600}}}))
    await delete(cluster)
    await cluster.advance(minutes=1)


async def last_word_refused(cluster: Cluster) -> None:
    """Something between agent and server lets no deletion of the agent's through, as a broken webhook does."""
    await create(cluster, pod())

    async def refuse(request: Any, onwards: Any) -> Any:
        if request.method == "DELETE":
            raise UnreachableError("no deletions")
        return await onwards(request)

    cluster.node("n1").faults.disturb = refuse
    await delete(cluster)
    await cluster.advance(minutes=3)


async def to_be_evicted(cluster: Cluster) -> None:
    toleration = {
        "key": "example.com/repair",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 300,
    }
    await create(cluster, with_spec(pod(), tolerations=[toleration]))
    taints = [{"key": "example.com/repair", "effect": "NoExecute"}]
    await cluster.client.patch(NODES, "n1", {"spec": {"taints": taints}})
    await cluster.advance(minutes=1)


async def is_left_alone(cluster: Cluster) -> bool:
    await cluster.advance(minutes=10)
    obj = await found(cluster)
    return obj is not None and "deletionTimestamp" not in obj["metadata"]


async def not_picked_up(cluster: Cluster) -> None:
    """The agent renews its lease and sees no pod."""
    node = cluster.node("n1")

    async def deaf(request: Any, onwards: Any) -> Any:
        if "/pods" in request.path:
            raise UnreachableError("no pods")
        return await onwards(request)

    node.faults.disturb = deaf
    node.faults.break_watches()
    await cluster.advance(seconds=30)
    await cluster.client.create(PODS, pod(), "default")
    await cluster.advance(minutes=1)


DELETED_PODS = (
    # Deleted, and still there.
    Situation("a finalizer", "finalizer", held_by_one, is_gone),
    Situation("two finalizers", "finalizer", held_by_two, is_gone, rounds=2),
    Situation("deleted, node removed, no collector", "node-gone", deleted_and_node_removed, is_gone, acts="pod GC"),
    Situation("node removed, quarantine", "node-gone", node_removed, is_gone, COLLECTOR, acts="pod GC"),
    Situation(
        "deleted on a dead node", "taint-missing", deleted_on_a_dead_node, is_gone, (*NODE_HEALTH, *COLLECTOR), nodes=2
    ),
    Situation(
        "out of service, no collector", "out-of-service", out_of_service_and_no_collector, is_gone, NODE_HEALTH,
        nodes=2, acts="pod GC",
    ),
    Situation("deleted, agent silent, node not marked", "kubelet-silent", agent_silent, is_gone, acts="node monitor"),
    Situation("ignores TERM inside its grace", "grace", ignores_term, is_gone, is_stuck=False),
    Situation("preStop inside its grace", "pre-stop", hook_runs, is_gone, is_stuck=False),
    Situation("the agent's last word is refused", "agent-does-not-end-it", last_word_refused, is_gone),
    # On a node that is not well.
    Situation(
        "node dead, not deleted yet", "node-not-ready", node_down, is_gone, (*NODE_HEALTH, *COLLECTOR), nodes=2,
        acts="taint eviction",
    ),
    Situation(
        "node dead, pod bears every taint", "node-not-ready", node_down_for_one_that_bears_all, is_gone,
        (*NODE_HEALTH, *COLLECTOR), nodes=2, acts="taint eviction",
    ),
    Situation("agent silent, not deleted", "kubelet-silent", agent_silent_and_nobody_deleted, is_gone),
    Situation(
        "to be evicted later", "taint-eviction", to_be_evicted, is_left_alone, NODE_HEALTH, is_stuck=False,
        is_checked_before=False, acts="taint eviction",
    ),
    Situation("agent sees no pods", "not-picked-up", not_picked_up, is_gone),
)  # fmt: skip

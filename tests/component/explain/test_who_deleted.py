"""Who deleted my pod: told while it is terminating, and after it is gone from what its cluster still knows of it."""

from __future__ import annotations

from collections.abc import Sequence

from podlife.apiserver.audit import DEFAULT_POLICY, Auditor, read_policy
from podlife.apiserver.audit.event import encode_event
from podlife.client import DEPLOYMENTS, NAMESPACES, NODES, PODS, STATEFUL_SETS, DeleteOptions
from podlife.diagnosis import look_at_node, look_at_pod
from podlife.explain import AuditCollection, AuditedRequest, Explanation
from podlife.testing import Behaviour, Cluster, virtual_time
from tests.component.stories.objects import pod, workload


async def explained(
    cluster: Cluster, name: str = "web", audited: Sequence[AuditedRequest] = ()
) -> Explanation:
    return await look_at_pod(cluster.client, cluster.clock, "default", name, None, audited)


def record(cluster: Cluster) -> list[bytes]:
    """The lines of an audit log with the policy that `podlife up` has."""
    lines: list[bytes] = []
    policy = read_policy(DEFAULT_POLICY.encode(), "default")
    auditor = Auditor(policy, lambda entry: lines.append(encode_event(entry)), cluster.clock)
    cluster._inside.server.handler.auditor = auditor
    return lines


def read(lines: Sequence[bytes], namespace: str = "default") -> Sequence[AuditedRequest]:
    found = AuditCollection(namespace, "web")
    for line in lines:
        found.add(line + b"\n")
    return found.requests


async def running(cluster: Cluster, grace: int = 600) -> None:
    cluster.behave(Behaviour(stop_seconds=None))
    await cluster.client.create(PODS, pod(grace=grace), "default")
    await cluster.settled()


async def delete(cluster: Cluster, name: str = "web") -> None:
    uid = (await cluster.client.get(PODS, name, "default"))["metadata"]["uid"]
    await cluster.client.delete(PODS, name, "default", options=DeleteOptions(uid=uid))


@virtual_time
async def test_a_person_leaves_no_trace_without_an_audit_log_and_that_is_said() -> None:
    async with Cluster(controllers=()) as cluster:
        await running(cluster)
        assert (await explained(cluster)).deletion == ""
        await delete(cluster)
        await cluster.advance(seconds=30)
        assert "left no trace here: --audit-log FILE" in (await explained(cluster)).deletion
        await cluster.advance(minutes=11)
        gone = await explained(cluster)
        assert gone.stage == "gone"
        assert "by its node, at the request of a user or program" in gone.deletion
        assert any("Killing" in each.what for each in gone.timeline)


@virtual_time
async def test_taint_eviction_is_named_with_its_reason() -> None:
    async with Cluster(controllers=("taint-eviction",)) as cluster:
        await running(cluster)
        taints = [{"key": "example.com/repair", "effect": "NoExecute"}]
        await cluster.client.patch(NODES, "n1", {"spec": {"taints": taints}})
        await cluster.advance(seconds=10)
        assert "by taint eviction" in (await explained(cluster)).deletion
        await cluster.advance(minutes=11)
        gone = await explained(cluster)
        assert (gone.stage, "by taint eviction" in gone.deletion) == ("gone", True)


@virtual_time
async def test_a_deployment_scaled_down_is_named_and_only_for_its_own_pod() -> None:
    async with Cluster(controllers=("deployment", "replicaset", "scheduler")) as cluster:
        await cluster.client.create(DEPLOYMENTS, workload("shop", 1), "default")
        await cluster.settled()
        [made] = (await cluster.client.list(PODS, "default")).items
        await cluster.client.scale(DEPLOYMENTS, "shop", "default", 0)
        await cluster.advance(minutes=1)
        gone = await explained(cluster, made["metadata"]["name"])
        assert gone.deletion.startswith("by its controller (replicaset-controller): Deleted pod: shop-")
        # Another of nearly that name has never been.
        other = await explained(cluster, made["metadata"]["name"][:-1])
        assert (other.deletion, other.timeline) == ("", ())
        assert "no event tells of it" in other.stage


@virtual_time
async def test_a_pod_that_goes_with_its_owner_is_the_garbage_collectors() -> None:
    names = ("statefulset", "scheduler", "garbage-collector")
    async with Cluster(controllers=names) as cluster:
        cluster.behave(Behaviour(stop_seconds=None))
        await cluster.client.create(STATEFUL_SETS, workload("db", 1, serviceName="db"), "default")
        await cluster.settled()
        uid = (await cluster.client.get(STATEFUL_SETS, "db", "default"))["metadata"]["uid"]
        await cluster.client.delete(STATEFUL_SETS, "db", "default", options=DeleteOptions(uid=uid))
        await cluster.advance(seconds=15)
        assert (
            "by the garbage collector: its StatefulSet db was deleted"
            in (await explained(cluster, "db-0")).deletion
        )


@virtual_time
async def test_a_pod_that_goes_with_its_namespace_says_so() -> None:
    async with Cluster(controllers=()) as cluster:
        cluster.behave(Behaviour(stop_seconds=None))
        await cluster.client.create(NAMESPACES, {"metadata": {"name": "team"}})
        await cluster.client.create(PODS, pod(grace=600), "team")
        await cluster.settled()
        uid = (await cluster.client.get(NAMESPACES, "team"))["metadata"]["uid"]
        await cluster.client.delete(NAMESPACES, "team", options=DeleteOptions(uid=uid))
        await cluster.advance(seconds=15)
        found = await look_at_pod(cluster.client, cluster.clock, "team", "web")
        assert found.deletion.endswith("by the deletion of its namespace")


@virtual_time
async def test_a_pod_does_not_inherit_the_eviction_of_its_predecessor() -> None:
    async with Cluster(controllers=("taint-eviction",)) as cluster:
        cluster.behave(Behaviour())
        await cluster.client.create(PODS, pod(), "default")
        await cluster.settled()
        taints = [{"key": "example.com/repair", "effect": "NoExecute"}]
        await cluster.client.patch(NODES, "n1", {"spec": {"taints": taints}})
        await cluster.advance(minutes=1)
        await cluster.client.patch(NODES, "n1", {"spec": {"taints": []}})
        await cluster.client.create(PODS, pod(grace=600), "default")
        await cluster.settled()
        young = await explained(cluster)
        assert young.stage == "running and ready"
        assert not [each for each in young.timeline if "TaintManagerEviction" in each.what]
        cluster.behave(Behaviour(stop_seconds=None))
        await delete(cluster)
        await cluster.advance(seconds=5)
        assert "taint" not in (await explained(cluster)).deletion
        # Nor when it is gone as well.
        await cluster.advance(minutes=11)
        gone = await explained(cluster)
        assert (gone.stage, "taint" in gone.deletion) == ("gone", False)
        assert not [each for each in gone.timeline if "TaintManagerEviction" in each.what]


@virtual_time
async def test_the_audit_log_names_who_deleted_and_who_evicted() -> None:
    async with Cluster(controllers=()) as cluster:
        lines = record(cluster)
        await running(cluster)
        await cluster.client.evict("web", "default")
        await cluster.advance(seconds=5)
        found = await explained(cluster, audited=read(lines))
        assert "by admin (system:masters), test: eviction; Eviction API: evicting" in found.deletion
        await cluster.advance(minutes=11)
        gone = await explained(cluster, audited=read(lines))
        assert "by admin (system:masters), test: eviction" in gone.deletion
        asked = next(each.what for each in gone.timeline if each.who == "audit log")
        assert asked.startswith("eviction requested by admin")
        await cluster.client.create(PODS, pod(grace=600), "default")
        await cluster.settled()
        assert (await explained(cluster, audited=read(lines))).deletion == ""
        await delete(cluster)
        await cluster.advance(seconds=5)
        assert (await explained(cluster, audited=read(lines))).deletion.endswith("test: delete")


@virtual_time
async def test_the_audit_log_names_who_deleted_the_namespace() -> None:
    async with Cluster(controllers=()) as cluster:
        lines = record(cluster)
        cluster.behave(Behaviour(stop_seconds=None))
        await cluster.client.create(NAMESPACES, {"metadata": {"name": "team"}})
        await cluster.client.create(PODS, pod(grace=600), "team")
        await cluster.settled()
        uid = (await cluster.client.get(NAMESPACES, "team"))["metadata"]["uid"]
        await cluster.client.delete(NAMESPACES, "team", options=DeleteOptions(uid=uid))
        await cluster.advance(seconds=15)
        audited = read(lines, "team")
        found = await look_at_pod(cluster.client, cluster.clock, "team", "web", None, audited)
        assert "with its namespace, which was deleted at 00:00:" in found.deletion
        assert found.deletion.endswith("by admin (system:masters), test")


@virtual_time
async def test_the_audit_log_names_who_tainted_the_node() -> None:
    async with Cluster(controllers=("taint-eviction", "scheduler")) as cluster:
        lines = record(cluster)
        cluster.behave(Behaviour(stop_seconds=None))
        unbound = pod(grace=600)
        unbound["spec"].pop("nodeName")
        await cluster.client.create(PODS, unbound, "default")
        await cluster.settled()
        taints = [{"key": "example.com/repair", "effect": "NoExecute"}]
        await cluster.client.patch(NODES, "n1", {"spec": {"taints": taints}})
        await cluster.advance(seconds=10)
        found = await explained(cluster, audited=read(lines))
        by = "by admin (system:masters), test"
        assert f"by taint eviction, after patch of nodes/n1 at 00:00:05Z {by}; " in found.deletion
        await cluster.advance(minutes=11)
        gone = await explained(cluster, audited=read(lines))
        assert (gone.stage, gone.deletion.endswith(by)) == ("gone", True)
        node = await look_at_node(cluster.client, cluster.clock, "n1", read(lines))
        assert any("example.com/repair:NoExecute" in each.what for each in node.timeline)

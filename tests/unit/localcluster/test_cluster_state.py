"""What a local cluster knows of its nodes and pods."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from podlife.clock import ManualClock
from podlife.explain import AuditedRequest
from podlife.localcluster.cluster_state import ClusterState, why_terminating
from podlife.localcluster.views import DisplayedNode, DisplayedPod


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def state(clock: ManualClock) -> ClusterState:
    return ClusterState(clock)


def node(name: str, ready: str = "True", *, message: str = "", cordoned: bool = False) -> DisplayedNode:
    condition = {"type": "Ready", "status": ready, "message": message}
    told = {
        "metadata": {"name": name},
        "spec": {"unschedulable": cordoned},
        "status": {"conditions": [condition]},
    }
    return msgspec.convert(told, DisplayedNode)


def pod(name: str, on: str = "", phase: str = "Running", **more: Any) -> DisplayedPod:
    metadata = {"name": name, "namespace": "default", "uid": name, **more.pop("metadata", {})}
    status = {"phase": phase, **more}
    return msgspec.convert({"metadata": metadata, "spec": {"nodeName": on}, "status": status}, DisplayedPod)


def ending(name: str, clock: ManualClock, on: str = "n1", *, left: float = 30.0, **more: Any) -> DisplayedPod:
    metadata = {
        "deletionTimestamp": clock.now() + timedelta(seconds=left),
        "deletionGracePeriodSeconds": 30,
        **more.pop("metadata", {}),
    }
    return pod(name, on, metadata=metadata, **more)


def disrupted(reason: str) -> list[dict[str, str]]:
    return [{"type": "DisruptionTarget", "status": "True", "reason": reason}]


def test_pods_are_counted_by_state_and_node(state: ClusterState) -> None:
    first = pod("a", phase="Pending")
    state.of_pods.on_add(first)
    state.of_pods.on_add(pod("b", "n1"))
    state.of_pods.on_update(first, pod("a", "n1"))
    assert state.on_node("n1") == {"Running": 2}
    assert state.states == {"Running": 2}
    state.of_pods.on_delete(pod("b", "n1"))
    assert state.states == {"Running": 1}


def test_a_container_that_waits_is_the_state_of_its_pod(state: ClusterState) -> None:
    waiting = [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]
    state.of_pods.on_add(pod("a", "n1", containerStatuses=waiting))
    assert state.states == {"CrashLoopBackOff": 1}


@pytest.mark.parametrize(
    ("reason", "why"),
    [
        ("DeletionByPodGC", "collected by pod GC"),
        ("DeletionByTaintManager", "evicted: its node has a taint that it does not tolerate"),
        ("EvictionByEvictionAPI", "evicted, as kubectl drain does"),
        ("SomethingNew", "SomethingNew"),
    ],
)
def test_why_a_pod_has_gone_is_what_its_disruption_says(state: ClusterState, reason: str, why: str) -> None:
    gone = pod("a", "n1", conditions=disrupted(reason))
    state.of_pods.on_add(gone)
    state.of_pods.on_delete(gone)
    assert [(each.pod.name, state.why_gone(each)) for each in state.gone] == [("default/a", why)]


def test_a_pod_that_somebody_deleted_was_deleted(state: ClusterState) -> None:
    state.of_pods.on_add(pod("a"))
    state.of_pods.on_delete(pod("a"))
    assert [state.why_gone(each) for each in state.gone] == ["deleted"]
    assert state.gone_count == 1


def asked(verb: str, name: str, resource: str = "pods", **more: str) -> AuditedRequest:
    return AuditedRequest(
        at=ManualClock().now() + timedelta(seconds=5),
        verb=verb,
        user=more.get("user", "jane"),
        groups=(),
        on_behalf_of="",
        agent=more.get("agent", "kubectl/v1.36.3"),
        source_ip="10.0.0.7",
        resource=resource,
        subresource=more.get("subresource", ""),
        namespace="default",
        name=name,
        uid=more.get("uid", ""),
    )


def gone_after(state: ClusterState, *requests: AuditedRequest, **more: Any) -> str:
    """Why a pod is gone, as it is shown; the log is written only after it has gone."""
    made = {"creationTimestamp": state.clock.now(), **more.pop("metadata", {})}
    last = pod("web-1-abcde", "n1", metadata=made, **more)
    state.of_pods.on_add(last)
    state.of_pods.on_delete(last)
    assert state.why_gone(state.gone[-1])
    state.note_audited(requests)
    return state.why_gone(state.gone[-1])


OWNER = {"kind": "ReplicaSet", "name": "web-1", "uid": "r", "controller": True}
NODE_AGENT = asked("delete", "web-1-abcde", user="system:node:n1")


def deleted_by(controller: str) -> AuditedRequest:
    user = "system:kube-controller-manager"
    return asked("delete", "web-1-abcde", user=user, agent=f"podlife/1/{controller}")


@pytest.mark.parametrize(
    ("requests", "more", "why"),
    [
        ([asked("delete", "web-1-abcde")], {}, "deleted by jane (kubectl)"),
        (
            [asked("create", "web-1-abcde", subresource="eviction"), NODE_AGENT],
            {"conditions": disrupted("EvictionByEvictionAPI")},
            "evicted by jane (kubectl drain)",
        ),
        (
            [
                asked("patch", "web", "deployments", subresource="scale"),
                deleted_by("replicaset-controller"),
                NODE_AGENT,
            ],
            {},
            "jane (kubectl) scaled its Deployment web",
        ),
        ([NODE_AGENT], {}, "removed by its node after it had ended"),
        (
            [deleted_by("taint-eviction-controller")],
            {"conditions": disrupted("DeletionByTaintManager")},
            "evicted: its node has a taint that it does not tolerate",
        ),
        (
            [deleted_by("pod-garbage-collector-controller")],
            {"conditions": [{**disrupted("DeletionByPodGC")[0], "message": "PodGC: node no longer exists"}]},
            "collected by pod GC: node no longer exists",
        ),
        (
            [deleted_by("pod-garbage-collector-controller")],
            {"phase": "Succeeded"},
            "collected by pod GC: too many ended pods",
        ),
        (
            [asked("delete", "web-1-abcde", uid="another")],
            {"phase": "Succeeded"},
            "removed after it had ended (Succeeded)",
        ),
    ],
)
def test_who_asked_for_the_end_of_a_pod_is_shown(
    state: ClusterState, requests: list[AuditedRequest], more: dict[str, Any], why: str
) -> None:
    assert gone_after(state, *requests, metadata={"ownerReferences": [OWNER]}, **more) == why


def test_why_a_pod_is_still_there_is_told_by_what_it_waits_for(
    state: ClusterState, clock: ManualClock
) -> None:
    state.of_nodes.on_add(node("n1"))
    state.of_nodes.on_add(node("dead", "Unknown"))
    assert why_terminating(ending("a", clock, left=12), state) == "has 12 s of its grace left"
    assert why_terminating(ending("a", clock, left=-1), state) == "its grace is over: its node ends it"
    assert "its node dead does not respond" in why_terminating(ending("a", clock, "dead"), state)
    assert "its node lost is gone" in why_terminating(ending("a", clock, "lost"), state)
    held = ending("a", clock, metadata={"finalizers": ["example.com/keep"], "deletionGracePeriodSeconds": 0})
    assert why_terminating(held, state) == "held by the finalizer example.com/keep"


def test_who_is_terminating_is_known_until_it_is_gone(state: ClusterState, clock: ManualClock) -> None:
    before, after = pod("a", "n1"), ending("a", clock)
    state.of_pods.on_add(before)
    state.of_pods.on_update(before, after)
    assert list(state.terminating) == ["a"]
    state.of_pods.on_delete(after)
    assert not state.terminating


def test_a_node_is_at_work_only_when_it_has_said_so_since_the_start(clock: ManualClock) -> None:
    state = ClusterState(clock)

    def heard(seconds: float) -> DisplayedNode:
        at = clock.now() + timedelta(seconds=seconds)
        condition = {"type": "Ready", "status": "True", "lastHeartbeatTime": at}
        return msgspec.convert(
            {"metadata": {"name": "n1"}, "status": {"conditions": [condition]}}, DisplayedNode
        )

    state.of_nodes.on_add(heard(-60))
    assert (state.is_ready("n1"), state.is_at_work("n1")) == (True, False)
    state.of_nodes.on_add(heard(0))
    assert state.is_at_work("n1")

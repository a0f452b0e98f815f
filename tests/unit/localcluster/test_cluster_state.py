"""What `podlife up` knows of its cluster, and how it says it."""

from __future__ import annotations

import io
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

from podlife.cli.commands.status_output import table_of
from podlife.cli.commands.up.lines import (
    ChangeLines,
    Welcome,
    in_order,
    summary_of,
)
from podlife.cli.commands.up.screen import draw
from podlife.clock import ManualClock
from podlife.explain import AuditedRequest
from podlife.localcluster.cluster_state import ClusterState, why_terminating
from podlife.localcluster.session import StartedCluster
from podlife.localcluster.views import NodeView, PodView


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def state(clock: ManualClock) -> ClusterState:
    return ClusterState(clock)


def node(name: str, ready: str = "True", *, message: str = "", cordoned: bool = False) -> NodeView:
    condition = {"type": "Ready", "status": ready, "message": message}
    told = {
        "metadata": {"name": name},
        "spec": {"unschedulable": cordoned},
        "status": {"conditions": [condition]},
    }
    return msgspec.convert(told, NodeView)


def pod(name: str, on: str = "", phase: str = "Running", **more: Any) -> PodView:
    metadata = {"name": name, "namespace": "default", "uid": name, **more.pop("metadata", {})}
    status = {"phase": phase, **more}
    return msgspec.convert({"metadata": metadata, "spec": {"nodeName": on}, "status": status}, PodView)


def ending(name: str, clock: ManualClock, on: str = "n1", *, left: float = 30.0, **more: Any) -> PodView:
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
    waiting = {"containerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}
    state.of_pods.on_add(pod("a", "n1", **waiting))
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
CONTROLLERS_USER = "system:kube-controller-manager"


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
                asked(
                    "delete", "web-1-abcde", user=CONTROLLERS_USER, agent="podlife/1/replicaset-controller"
                ),
                NODE_AGENT,
            ],
            {},
            "jane (kubectl) scaled its Deployment web",
        ),
        (
            [asked("delete", "web-1-abcde", user=CONTROLLERS_USER, agent="podlife/1/replicaset-controller")],
            {},
            "removed by ReplicaSet web-1",
        ),
        ([asked("delete", "web", "deployments")], {}, "jane (kubectl) deleted its Deployment web"),
        ([asked("delete", "default", "namespaces")], {}, "jane (kubectl) deleted its namespace"),
        ([NODE_AGENT], {}, "removed by its node after it had ended"),
        (
            [
                asked(
                    "delete",
                    "web-1-abcde",
                    user=CONTROLLERS_USER,
                    agent="podlife/1/taint-eviction-controller",
                )
            ],
            {"conditions": disrupted("DeletionByTaintManager")},
            "evicted: its node has a taint that it does not tolerate",
        ),
        (
            [
                asked(
                    "delete",
                    "web-1-abcde",
                    user=CONTROLLERS_USER,
                    agent="podlife/1/pod-garbage-collector-controller",
                )
            ],
            {"conditions": [{**disrupted("DeletionByPodGC")[0], "message": "PodGC: node no longer exists"}]},
            "collected by pod GC: node no longer exists",
        ),
        (
            [
                asked(
                    "delete",
                    "web-1-abcde",
                    user=CONTROLLERS_USER,
                    agent="podlife/1/pod-garbage-collector-controller",
                )
            ],
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
    assert "its node dead does not answer" in why_terminating(ending("a", clock, "dead"), state)
    assert "its node lost is gone" in why_terminating(ending("a", clock, "lost"), state)
    held = {"metadata": {"finalizers": ["example.com/keep"], "deletionGracePeriodSeconds": 0}}
    assert why_terminating(ending("a", clock, **held), state) == "held by the finalizer example.com/keep"


def test_who_is_terminating_is_known_until_it_is_gone(state: ClusterState, clock: ManualClock) -> None:
    before, after = pod("a", "n1"), ending("a", clock)
    state.of_pods.on_add(before)
    state.of_pods.on_update(before, after)
    assert list(state.terminating) == ["a"]
    state.of_pods.on_delete(after)
    assert not state.terminating


def test_a_node_is_at_work_only_when_it_has_said_so_since_the_start(clock: ManualClock) -> None:
    state = ClusterState(clock)

    def heard(seconds: float) -> NodeView:
        at = clock.now() + timedelta(seconds=seconds)
        condition = {"type": "Ready", "status": "True", "lastHeartbeatTime": at}
        return msgspec.convert({"metadata": {"name": "n1"}, "status": {"conditions": [condition]}}, NodeView)

    state.of_nodes.on_add(heard(-60))
    assert (state.is_ready("n1"), state.is_at_work("n1")) == (True, False)
    state.of_nodes.on_add(heard(0))
    assert state.is_at_work("n1")


def test_lines_tell_changes_of_nodes_and_numbers_that_have_settled(state: ClusterState) -> None:
    said: list[str] = []
    state.of_nodes.on_add(node("n1"))
    lines = ChangeLines(state, said.append)
    state.of_pods.on_add(pod("a", "n1"))
    lines.look()
    assert said == []
    lines.look()
    assert said == ["pods: 1 Running"]
    state.of_nodes.on_update(
        node("n1"), node("n1", "Unknown", message="Kubelet stopped posting node status.")
    )
    lines.look()
    assert said[1:] == ["node n1 is NotReady: Kubelet stopped posting node status."]
    state.of_nodes.on_delete(node("n1"))
    lines.look()
    assert said[2:] == ["node n1 is gone"]


def test_numbers_that_never_settle_are_told_now_and_then(state: ClusterState) -> None:
    said: list[str] = []
    lines = ChangeLines(state, said.append)
    for number in range(10):
        state.of_pods.on_add(pod(f"a{number}"))
        lines.look()
    assert said == ["pods: 5 Running", "pods: 10 Running"]


def test_a_server_that_is_away_and_comes_back_is_told_once_each(state: ClusterState) -> None:
    said: list[str] = []
    lines = ChangeLines(state, said.append)
    for state.is_live in (False, False, True):
        lines.look()
    assert said[0] == "the API server does not answer"
    assert said[-1] == "the API server answers again"
    assert len([line for line in said if "API server" in line]) == 2


def test_the_view_has_nodes_what_is_terminating_and_what_has_gone(
    state: ClusterState, clock: ManualClock
) -> None:
    state.of_nodes.on_add(node("n1"))
    state.of_nodes.on_add(node("n2", "Unknown", cordoned=True))
    state.of_pods.on_add(pod("a", "n1"))
    state.of_pods.on_add(pod("w", phase="Pending"))
    state.of_pods.on_add(ending("stuck", clock, "n2"))
    gone = pod("old", "n1", conditions=disrupted("DeletionByPodGC"))
    state.of_pods.on_add(gone)
    state.of_pods.on_delete(gone)
    drawn = io.StringIO()
    Console(file=drawn, width=150).print(draw(state))
    lines = [" ".join(line.split()) for line in drawn.getvalue().splitlines() if line.strip()]
    assert lines[:4] == [
        "NODE STATE PODS",
        "n1 Ready 1 Running",
        "n2 NotReady,SchedulingDisabled 1 Terminating",
        "(none yet) 1 Pending",
    ]
    assert lines[5].startswith("default/stuck n2 its node n2 does not answer")
    assert lines[7].startswith("default/old ")
    assert lines[7].endswith("collected by pod GC")
    assert lines[-1] == "pods: 1 Pending, 1 Running, 1 Terminating; 1 gone"


@pytest.mark.parametrize("width", [40, 80, 140])
def test_names_are_shown_whole_and_explanations_give_way(
    state: ClusterState, clock: ManualClock, width: int
) -> None:
    name = "a-deployment-with-a-long-name-7d9c5b8f6d-abcde"
    state.of_nodes.on_add(node("n1"))
    state.of_pods.on_add(ending(name, clock, "lost"))
    gone = pod("old-" + name, "n1")
    state.of_pods.on_add(gone)
    state.of_pods.on_delete(gone)
    drawn = io.StringIO()
    Console(file=drawn, width=width).print(draw(state))
    lines = drawn.getvalue().splitlines()
    assert all(len(line) <= width for line in lines)
    if width > 40:
        assert any(f"default/{name}  " in line for line in lines)
        assert any(f"default/old-{name}  " in line for line in lines)
    assert any(line.endswith("deleted") for line in lines)
    assert any("its node lost is gone" in line for line in lines)


def test_a_view_of_many_nodes_shows_those_that_are_not_ready(state: ClusterState) -> None:
    for number in range(100):
        state.of_nodes.on_add(node(f"node-{number}", "False" if number == 77 else "True"))
    drawn = io.StringIO()
    Console(file=drawn, width=100).print(draw(state))
    assert "node-77" in drawn.getvalue()
    assert "… of 100" in drawn.getvalue()
    assert len(drawn.getvalue().splitlines()) < 20


def test_names_are_in_the_order_of_their_numbers() -> None:
    names = ["node-10", "node-2", "more", "node-1"]
    assert sorted(names, key=in_order) == ["more", "node-1", "node-2", "node-10"]


def test_the_welcome_has_lines_that_can_be_copied() -> None:
    kubeconfig, join_file = Path("/a b/admin.kubeconfig"), Path("/a b/join")
    cluster = StartedCluster(
        "https://127.0.0.1:6443", kubeconfig, join_file, 1, frozenset(), is_restart=False
    )
    text = Welcome(cluster).text(1.25)
    assert "export KUBECONFIG='/a b/admin.kubeconfig'" in text
    assert "1 node is ready" in text
    assert text.count("\n  kubectl ") == 3


def test_no_pods_are_said_to_be_none() -> None:
    assert summary_of(ClusterState(ManualClock()).states, 0) == "pods: none"


def test_a_table_is_as_wide_as_it_must_be() -> None:
    assert table_of([("A", "B"), ("long", "x")]) == "A      B\nlong   x"

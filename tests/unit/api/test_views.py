"""Views: what they read of an object, and what a hundred thousand of them cost."""

from __future__ import annotations

import gc
import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from podlife.api.views import MetadataOnly, Node, OwnerReference, Pod, controller_of

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "web-1",
        "namespace": "team",
        "uid": "u-1",
        "resourceVersion": "12",
        "generation": 3,
        "creationTimestamp": "2030-01-01T00:00:00Z",
        "deletionTimestamp": "2030-01-01T00:01:00Z",
        "deletionGracePeriodSeconds": 0,
        "finalizers": ["example.com/hold"],
        "labels": {"a": "b"},
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u-2"},
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u-3", "controller": True},
        ],
    },
    "spec": {"nodeName": "node-1", "containers": [{"name": "c"}], "somethingNew": 1},
    "status": {"phase": "Failed", "reason": "Evicted"},
}


def read(view: type, obj: Any) -> Any:
    return msgspec.json.decode(json.dumps(obj), type=view)


def test_a_pod_is_read_as_far_as_its_readers_need_it() -> None:
    pod = read(Pod, POD)
    assert (pod.metadata.name, pod.metadata.namespace, pod.metadata.uid) == ("web-1", "team", "u-1")
    assert (pod.metadata.resource_version, pod.metadata.generation) == ("12", 3)
    assert pod.metadata.creation_timestamp == datetime(2030, 1, 1, tzinfo=UTC)
    assert pod.metadata.deletion_timestamp == datetime(2030, 1, 1, 0, 1, tzinfo=UTC)
    assert pod.metadata.deletion_grace_period_seconds == 0
    assert pod.metadata.finalizers == ("example.com/hold",)
    assert (pod.spec.node_name, pod.status.phase, pod.status.reason) == ("node-1", "Failed", "Evicted")
    assert controller_of(pod.metadata) == OwnerReference("apps/v1", "ReplicaSet", "web", "u-3", True)


def test_what_is_absent_is_empty_and_grace_zero_is_not_absent() -> None:
    pod = read(Pod, {"metadata": {"name": "p", "creationTimestamp": None}})
    assert (pod.spec.node_name, pod.status.phase) == ("", "")
    assert pod.metadata.deletion_grace_period_seconds is None
    assert pod.metadata.creation_timestamp is None
    assert controller_of(pod.metadata) is None


def test_a_node_tells_its_conditions_and_taints() -> None:
    taint = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
    conditions = [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]
    node = read(
        Node, {"metadata": {"name": "n"}, "spec": {"taints": [taint]}, "status": {"conditions": conditions}}
    )
    assert [(taint.key, taint.effect) for taint in node.spec.taints] == [tuple(taint.values())]
    assert [(condition.type, condition.status) for condition in node.status.conditions] == [
        ("Ready", "Unknown")
    ]


@pytest.mark.parametrize("obj", [{}, {"metadata": {"name": 1}}, {"metadata": {"finalizers": "x"}}, []])
def test_what_has_another_shape_is_refused(obj: Any) -> None:
    with pytest.raises(msgspec.ValidationError):
        read(MetadataOnly, obj)


def test_what_many_objects_have_in_common_is_held_once() -> None:
    one, other = read(Pod, POD), read(Pod, POD)
    assert one.metadata.namespace is other.metadata.namespace
    assert one.spec.node_name is other.spec.node_name
    assert one.status.phase is other.status.phase
    assert one.metadata.owner_references[1].uid is other.metadata.owner_references[1].uid


def test_views_are_nothing_for_the_cycle_collector_to_look_at() -> None:
    pod = read(Pod, POD)
    parts = [pod, pod.metadata, pod.spec, pod.status, *pod.metadata.owner_references]
    assert not any(gc.is_tracked(part) for part in parts)

"""The pod that is made for a node, and for which node a pod is."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podlife.workloads.daemonset.pod_template import daemon_template, for_node, is_updated, target_node
from podlife.workloads.views import WorkloadPod
from tests.unit.workloads.daemonset.pods import OLD, pod

TEMPLATE: dict[str, Any] = {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [{"name": "c"}]}}


def read(template: dict[str, Any], **spec: str) -> WorkloadPod:
    return msgspec.convert({"metadata": {}, "spec": {**template["spec"], **spec}}, WorkloadPod)


def test_pod_tells_its_revision_and_bears_what_daemons_do() -> None:
    made = daemon_template(TEMPLATE, "3", "abc")
    assert made["metadata"]["labels"] == {
        "app": "d",
        "pod-template-generation": "3",
        "controller-revision-hash": "abc",
    }
    assert [(each["key"].rpartition("/")[2], each["effect"]) for each in made["spec"]["tolerations"]] == [
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    ]
    assert TEMPLATE["metadata"]["labels"] == {"app": "d"}, "what the pod is made of stays as it is"
    assert "tolerations" not in TEMPLATE["spec"]


def test_tolerations_of_the_template_come_first_and_lose_their_limit() -> None:
    own = [
        {"key": "dedicated", "operator": "Exists"},
        {
            "key": "node.kubernetes.io/not-ready",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 30,
        },
    ]
    made = daemon_template({"spec": {"tolerations": own}}, "", "abc")["spec"]["tolerations"]
    assert made[:2] == [
        own[0],
        {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
    ]
    assert len(made) == 7


def test_pod_is_for_one_node_whatever_nodes_the_template_required() -> None:
    required = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]}
    preferred = [{"weight": 1, "preference": {}}]
    affinity: dict[str, Any] = {
        "podAntiAffinity": {"x": 1},
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": required,
            "preferredDuringSchedulingIgnoredDuringExecution": preferred,
        },
    }
    made = for_node({"spec": {"affinity": affinity}}, "n1")["spec"]["affinity"]
    assert made["podAntiAffinity"] == {"x": 1}
    assert made["nodeAffinity"] == {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
            ]
        },
        "preferredDuringSchedulingIgnoredDuringExecution": preferred,
    }
    assert affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] is required


def test_pod_is_found_by_the_node_it_is_on_or_for() -> None:
    template = for_node(TEMPLATE, "n1")
    assert target_node(read(template)) == "n1"
    assert target_node(read(template, nodeName="n2")) == "n2"


@pytest.mark.parametrize(
    "term",
    [
        None,
        {},
        {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}]},
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1", "n2"]}]},
        {"matchExpressions": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]},
    ],
)
def test_pod_that_names_no_single_node_is_for_none(term: dict[str, Any] | None) -> None:
    required = {"nodeSelectorTerms": [] if term is None else [term]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    assert target_node(read({"spec": {"affinity": affinity}})) == ""
    assert target_node(read({"spec": {}})) == ""


def test_pod_is_up_to_date_by_its_hash_or_by_its_generation() -> None:
    assert is_updated(pod("p"), "", "new")
    assert not is_updated(pod("p", revision=OLD), "", "new")
    assert is_updated(pod("p", revision="", generation="3"), "3", "new")
    assert not is_updated(pod("p", revision="", generation="2"), "3", "new")
    assert not is_updated(pod("p", revision=""), "", "")

"""An autoscaler makes the round trip through v1 unchanged, whatever a client writes into its annotations."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from podlife.apiserver.strategies import AUTOSCALERS
from podlife.apiserver.strategies.autoscaling.autoscalers import ANNOTATIONS
from podlife.apiserver.strategies.autoscaling.conversion import from_v1, to_v1

METRIC = {"name": "queue", "selector": {"matchLabels": {"a": "<b>"}}}
DESCRIBED = {"kind": "Service", "name": "s", "apiVersion": "v1"}
FULL: dict[str, Any] = {
    "metadata": {"name": "web", "annotations": {"mine": "kept"}},
    "spec": {
        "scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"},
        "minReplicas": 1,
        "maxReplicas": 5,
        "metrics": [
            {
                "type": "Resource",
                "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1"}},
            },
            {
                "type": "Pods",
                "pods": {"metric": METRIC, "target": {"type": "AverageValue", "averageValue": "5"}},
            },
            {
                "type": "Object",
                "object": {
                    "describedObject": DESCRIBED,
                    "metric": METRIC,
                    "target": {"type": "Value", "value": "3"},
                },
            },
            {
                "type": "Object",
                "object": {
                    "describedObject": DESCRIBED,
                    "metric": METRIC,
                    "target": {"type": "AverageValue", "averageValue": "3"},
                },
            },
            {
                "type": "External",
                "external": {"metric": METRIC, "target": {"type": "AverageValue", "averageValue": "2"}},
            },
            {
                "type": "ContainerResource",
                "containerResource": {
                    "name": "cpu",
                    "container": "main",
                    "target": {"type": "Utilization", "averageUtilization": 50},
                },
            },
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 40}},
            },
        ],
        "behavior": {
            "scaleUp": {
                "stabilizationWindowSeconds": 0,
                "selectPolicy": "Max",
                "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}],
                "tolerance": "50m",
            },
            "scaleDown": {
                "selectPolicy": "Disabled",
                "policies": [{"type": "Percent", "value": 1, "periodSeconds": 1}],
            },
        },
    },
    "status": {
        "currentReplicas": 2,
        "desiredReplicas": 3,
        "currentMetrics": [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "current": {"averageUtilization": 33, "averageValue": "5m"}},
            }
        ],
        "conditions": [
            {"type": "AbleToScale", "status": "True", "lastTransitionTime": "2030-01-01T00:00:00Z"}
        ],
    },
}


def stored(obj: dict[str, Any]) -> dict[str, Any]:
    read = from_v1(obj)
    AUTOSCALERS.default(read)
    return read


def test_nothing_is_lost_on_the_way_through_v1() -> None:
    shown = to_v1(deepcopy(FULL))
    assert shown["spec"].keys() == {
        "scaleTargetRef",
        "minReplicas",
        "maxReplicas",
        "targetCPUUtilizationPercentage",
    }
    assert shown["status"]["currentCPUUtilizationPercentage"] == 33
    assert shown["metadata"]["annotations"].keys() == {"mine", *ANNOTATIONS[:4]}
    assert stored(shown) == FULL


@pytest.mark.parametrize(
    "nonsense", ["", "{", "[1]", "{}", '{"a":', "[[]]", '[{"type":1}]', '"x"', "null", "[" * 9999]
)
def test_annotations_of_another_shape_are_dropped(nonsense: str) -> None:
    obj = {
        "metadata": {"name": "web", "annotations": dict.fromkeys(ANNOTATIONS, nonsense)},
        "spec": {"scaleTargetRef": {"kind": "a", "name": "b"}, "maxReplicas": 1, "minReplicas": 1},
        "status": {"desiredReplicas": 0},
    }
    read = stored(obj)
    assert "annotations" not in read["metadata"]
    [metric] = read["spec"]["metrics"]
    assert metric["resource"]["target"]["averageUtilization"] == 80
    assert "behavior" not in read["spec"]
    assert read["status"] == {"desiredReplicas": 0, "currentMetrics": None}

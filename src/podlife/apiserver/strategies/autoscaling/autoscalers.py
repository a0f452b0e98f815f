"""HorizontalPodAutoscalers. Strategies see the form of v2; `conversion` has that of v1."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Any

from podlife.api import schema
from podlife.api.codec import Object
from podlife.api.defaults.fields import drop_empty_fields
from podlife.api.field_errors import FieldError, FieldErrors, bad_value, forbidden, not_supported, required
from podlife.api.names import check_dns_label, check_path_segment
from podlife.api.quantity import parse_nanos
from podlife.apiserver.strategies.core.resource_requirements import validate_container_resource
from podlife.apiserver.strategies.field_checks import (
    check_at,
    non_negative,
    one_of,
    positive,
    require_at,
    show_times,
)
from podlife.apiserver.strategies.strategy import Strategy

_PREFIX = "autoscaling.alpha.kubernetes.io/"
ANNOTATIONS = tuple(
    f"{_PREFIX}{name}"
    for name in (
        *("metrics", "behavior", "current-metrics", "conditions"),
        *("scale-up-tolerance", "scale-down-tolerance"),
    )
)
"""In v1, for what it has no fields for. v2 drops them."""
_LONGEST_PERIOD_SECONDS = 1800
_LONGEST_WINDOW_SECONDS = 3600
_SELECTIONS = frozenset({"Disabled", "Max", "Min"})
_POLICIES = frozenset({"Percent", "Pods"})
_TARGETS = ("Utilization", "Value", "AverageValue")
# Field by type, in the order of upstream's checks.
SOURCES = {
    "Object": "object",
    "External": "external",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}
DEFAULT_METRICS: list[Object] = [
    {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
    }
]
_PERCENT = {"type": "Percent", "value": 100, "periodSeconds": 15}
_RULES: dict[str, Object] = {
    "scaleUp": {
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}, _PERCENT],
    },
    "scaleDown": {"selectPolicy": "Max", "policies": [_PERCENT]},
}


def check_autoscaler(obj: Object) -> list[str]:
    """As `schema.check`, but an empty list of policies is kept: it is refused, not taken for an absent one."""
    emptied = [direction for direction in _RULES if _has_no_policies(obj, direction)]
    unknown = schema.check("autoscaling/v2", "HorizontalPodAutoscaler", obj)
    for direction in emptied:
        obj["spec"]["behavior"][direction]["policies"] = []
    return unknown


def _has_no_policies(obj: Object, direction: str) -> bool:
    value: Any = obj
    for field in ("spec", "behavior", direction, "policies"):
        value = value.get(field) if isinstance(value, dict) else None
    return isinstance(value, list) and not value


class HorizontalPodAutoscalerStrategy(Strategy):
    has_status = True

    def default(self, obj: Object) -> None:
        metadata = obj["metadata"]
        if annotations := metadata.get("annotations"):
            metadata["annotations"] = without_round_trip(annotations)
            drop_empty_fields(metadata, "annotations")
        spec = obj["spec"]
        spec.setdefault("minReplicas", 1)
        if not spec.get("metrics"):
            spec["metrics"] = deepcopy(DEFAULT_METRICS)
        if (behavior := spec.get("behavior")) is not None:
            for direction, rules in _RULES.items():
                behavior[direction] = {**deepcopy(rules), **(behavior.get(direction) or {})}
        obj["status"].setdefault("currentMetrics", None)
        show_times(obj["status"], "lastTransitionTime")

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {"desiredReplicas": 0, "currentMetrics": None}

    def validate(self, obj: Object) -> list[FieldError]:
        return list(_validate_spec(obj["spec"]))

    def validate_status_update(self, new: Object, old: Object) -> list[FieldError]:
        status = new["status"]
        counts = ("currentReplicas", "desiredReplicas")
        return [error for field in counts for error in non_negative(f"status.{field}", status.get(field))]


def without_round_trip(annotations: Object) -> Object:
    return {key: value for key, value in annotations.items() if key not in ANNOTATIONS}


def _validate_spec(spec: Object) -> FieldErrors:
    least, most = spec["minReplicas"], spec["maxReplicas"]
    if least < 1:
        yield bad_value("spec.minReplicas", least, "must be greater than or equal to 1")
    if most == 0:
        yield required("spec.maxReplicas", "must be set and greater than 0")
    elif most < 0:
        yield bad_value("spec.maxReplicas", most, "must be greater than or equal to 1")
    if most < least:
        yield bad_value("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")
    target = spec["scaleTargetRef"]
    is_core = target["kind"] == "ReplicationController"
    yield from _validate_reference("spec.scaleTargetRef", target, may_be_core=is_core)
    for index, metric in enumerate(spec["metrics"]):
        yield from _validate_metric(f"spec.metrics[{index}]", metric)
    if least == 0 and not {"Object", "External"} & {metric["type"] for metric in spec["metrics"]}:
        detail = "must specify at least one Object or External metric to support scaling to zero replicas"
        yield forbidden("spec.metrics", detail)
    for direction, rules in (spec.get("behavior") or {}).items():
        yield from _validate_rules(f"spec.behavior.{direction}", rules)


def _validate_reference(path: str, reference: Object, *, may_be_core: bool) -> FieldErrors:
    for field in ("kind", "name"):
        yield from require_at(f"{path}.{field}", reference[field], check_path_segment)
    version = reference.get("apiVersion", "")
    if version.count("/") > 1:
        yield bad_value(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}")
    elif "/" not in version and not may_be_core:
        yield bad_value(f"{path}.apiVersion", version, "apiVersion must specify API group")


def _validate_rules(path: str, rules: Object) -> FieldErrors:
    window = rules.get("stabilizationWindowSeconds")
    if window is not None and window < 0:
        detail = "must be greater than or equal to zero"
        yield bad_value(f"{path}.stabilizationWindowSeconds", window, detail)
    if window is not None and window > _LONGEST_WINDOW_SECONDS:
        detail = f"must be less than or equal to {_LONGEST_WINDOW_SECONDS}"
        yield bad_value(f"{path}.stabilizationWindowSeconds", window, detail)
    yield from one_of(f"{path}.selectPolicy", rules.get("selectPolicy"), _SELECTIONS)
    if not rules.get("policies"):
        yield required(f"{path}.policies", "must specify at least one Policy")
    for index, policy in enumerate(rules.get("policies") or ()):
        yield from _validate_policy(f"{path}.policies[{index}]", policy)
    if (tolerance := rules.get("tolerance")) is not None and parse_nanos(tolerance) < 0:
        yield bad_value(f"{path}.tolerance", tolerance, "must be greater than or equal to 0")


def _validate_policy(path: str, policy: Object) -> FieldErrors:
    if policy.get("type", "") not in _POLICIES:
        yield not_supported(f"{path}.type", policy.get("type", ""), _POLICIES)
    yield from positive(f"{path}.value", policy.get("value", 0))
    seconds = policy.get("periodSeconds", 0)
    yield from positive(f"{path}.periodSeconds", seconds)
    if seconds > _LONGEST_PERIOD_SECONDS:
        detail = f"must be less than or equal to {_LONGEST_PERIOD_SECONDS}"
        yield bad_value(f"{path}.periodSeconds", seconds, detail)


def _validate_metric(path: str, metric: Object) -> FieldErrors:
    type_ = metric["type"]
    if not type_:
        yield required(f"{path}.type", "must specify a metric source type")
    if type_ not in SOURCES:
        yield not_supported(f"{path}.type", type_, frozenset(SOURCES))
    present = [field for field in SOURCES.values() if metric.get(field) is not None]
    if present:
        yield from _validate_source(f"{path}.{present[0]}", present[0], metric[present[0]])
    wanted = SOURCES.get(type_, "")
    if not wanted:
        yield not_supported(f"{path}.type", type_, frozenset(SOURCES))
    elif wanted not in present:
        yield required(f"{path}.{wanted}", "must populate information for the given metric source")
    if len(present) != 1:
        for field in present:
            if field != wanted:
                yield forbidden(f"{path}.{field}", "must populate the given metric source only")


def _validate_source(path: str, field: str, source: Object) -> FieldErrors:
    target = source["target"]
    if field == "object":
        described = source["describedObject"]
        yield from _validate_reference(f"{path}.describedObject", described, may_be_core=True)
    if field == "containerResource":
        if source["name"]:
            yield from validate_container_resource(f"{path}.name", source["name"])
        else:
            yield required(f"{path}.name", "must specify a resource name")
        if source["container"]:
            yield from check_at(f"{path}.container", source["container"], check_dns_label)
        else:
            yield required(f"{path}.container", "must specify a container")
    elif field == "resource":
        if not source["name"]:
            yield required(f"{path}.name", "must specify a resource name")
    elif source["metric"]["name"]:
        yield from check_at(f"{path}.metric.name", source["metric"]["name"], check_path_segment)
    else:
        yield required(f"{path}.metric.name", "must specify a metric name")
    yield from _validate_target(f"{path}.target", target)
    yield from _validate_choice(f"{path}.target", field, target)


def _validate_target(path: str, target: Object) -> FieldErrors:
    type_ = target["type"]
    if not type_:
        yield required(f"{path}.type", "must specify a metric target type")
    if type_ not in _TARGETS:
        yield bad_value(f"{path}.type", type_, "must be either Utilization, Value, or AverageValue")
    for field in ("value", "averageValue"):
        if (value := target.get(field)) is not None and parse_nanos(value) <= 0:
            yield bad_value(f"{path}.{field}", value, "must be positive")
    if (percent := target.get("averageUtilization")) is not None and percent < 1:
        yield bad_value(f"{path}.averageUtilization", percent, "must be greater than 0")


def _validate_choice(path: str, field: str, target: Object) -> FieldErrors:
    """Which values a target has."""
    if field == "pods":
        if target.get("averageValue") is None:
            yield required(f"{path}.averageValue", "must specify a positive target averageValue")
        return
    if field in ("object", "external"):
        choice, missing = ("value", "averageValue"), "averageValue"
        what = "" if field == "object" else " for metric"
        neither = f"must set either a target value{what} or " + (
            "averageValue" if not what else "a per-pod target"
        )
        both = ("value", "may not set both a target value for metric and a per-pod target")
    else:
        choice, missing = ("averageUtilization", "averageValue"), "averageUtilization"
        neither = "must set either a target raw value or a target utilization"
        both = ("averageValue", "may not set both a target raw value and a target utilization")
    given = [each for each in choice if target.get(each) is not None]
    if not given:
        yield required(f"{path}.{missing}", neither)
    elif len(given) == len(choice) and field != "object":
        yield forbidden(f"{path}.{both[0]}", both[1])


def cpu_utilization(metrics: Iterable[Object] | None, part: str) -> Any:
    """The first percentage of CPU among the metrics (`target`) or their states (`current`)."""
    for metric in metrics or ():
        resource = metric.get("resource") or {}
        percent = (resource.get(part) or {}).get("averageUtilization")
        if metric.get("type") == "Resource" and resource.get("name") == "cpu" and percent is not None:
            return percent
    return None

"""The spec of a job, in a Job and in the template of a CronJob."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise

from podlife.api.codec import Object
from podlife.api.field_errors import (
    FieldError,
    bad_value,
    duplicate,
    not_supported,
    required,
    too_long,
    too_many,
)
from podlife.api.names import check_dns_subdomain, check_label_key
from podlife.apiserver.strategies.core.pod.template import (
    default_selector,
    default_template,
    validate_template,
)
from podlife.apiserver.strategies.field_checks import non_negative, not_one_of, problems_at

_COUNTS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_STATUSES = ("False", "True", "Unknown")
_MOST_INDEXES = 100_000
_MOST_WHEN_MANY = 10_000
_MOST_RULES = 20


def default_job_spec(spec: Object) -> None:
    """Defaults that jobs in templates get too."""
    default_selector(spec)
    default_template(spec.setdefault("template", {}))
    for rule in (spec.get("podFailurePolicy") or {}).get("rules", ()):
        for pattern in rule.get("onPodConditions", ()):
            if not pattern.get("status"):
                pattern["status"] = "True"


def validate_job_spec(spec: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for field in _COUNTS:
        errors += non_negative(f"{path}.{field}", spec.get(field))
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        errors.append(required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    if (manager := spec.get("managedBy")) is not None:
        errors += _validate_manager(manager, f"{path}.managedBy")
    errors += _validate_mode(spec, path)
    if "podFailurePolicy" in spec:
        errors += _validate_failure_policy(spec, f"{path}.podFailurePolicy")
    if "successPolicy" in spec:
        errors += _validate_success_policy(spec, f"{path}.successPolicy")
    errors += _validate_replacement(spec, f"{path}.podReplacementPolicy")
    errors += validate_template(spec["template"], f"{path}.template")
    return errors + _validate_restart(spec, f"{path}.template.spec.restartPolicy")


def _validate_manager(manager: str, path: str) -> list[FieldError]:
    if not manager:
        return [required(path)]
    host, _, rest = manager.partition("/")
    if not host or not rest:
        return [bad_value(path, manager, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    errors = problems_at(path, host, check_dns_subdomain(host))
    if len(manager) > 63:
        errors.append(too_long(path, 63))
    return errors


def _validate_mode(spec: Object, path: str) -> list[FieldError]:
    mode = spec.get("completionMode")
    errors: list[FieldError] = []
    if mode not in (None, "NonIndexed", "Indexed"):
        errors.append(not_one_of(f"{path}.completionMode", mode, ("NonIndexed", "Indexed")))
    if mode == "Indexed":
        return errors + _validate_indexed(spec, path)
    if mode in (None, "NonIndexed"):
        errors += [
            bad_value(f"{path}.{field}", spec[field], "requires indexed completion mode")
            for field in ("backoffLimitPerIndex", "maxFailedIndexes")
            if spec.get(field) is not None
        ]
    return errors


def _validate_indexed(spec: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    completions, failed = spec.get("completions"), spec.get("maxFailedIndexes")
    parallelism = spec.get("parallelism") or 0
    if completions is None:
        errors.append(required(f"{path}.completions", "when completion mode is Indexed"))
    if parallelism > _MOST_INDEXES:
        detail = f"must be less than or equal to {_MOST_INDEXES} when completion mode is Indexed"
        errors.append(bad_value(f"{path}.parallelism", parallelism, detail))
    if failed is not None and completions is not None and failed > completions:
        detail = "must be less than or equal to completions"
        errors.append(bad_value(f"{path}.maxFailedIndexes", failed, detail))
    if failed is not None and failed > _MOST_INDEXES:
        detail = f"must be less than or equal to {_MOST_INDEXES}"
        errors.append(bad_value(f"{path}.maxFailedIndexes", failed, detail))
    if (completions or 0) > _MOST_INDEXES and spec.get("backoffLimitPerIndex") is not None:
        errors += _validate_many(failed, parallelism, path)
    return errors


def _validate_many(failed: int | None, parallelism: int, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if failed is None:
        detail = f"must be specified when completions is above {_MOST_INDEXES}"
        errors.append(required(f"{path}.maxFailedIndexes", detail))
    detail = (
        f"must be less than or equal to {_MOST_WHEN_MANY} when completions are above {_MOST_INDEXES} "
        "and used with backoff limit per index"
    )
    if parallelism > _MOST_WHEN_MANY:
        errors.append(bad_value(f"{path}.parallelism", parallelism, detail))
    if failed is not None and failed > _MOST_WHEN_MANY:
        errors.append(bad_value(f"{path}.maxFailedIndexes", failed, detail))
    return errors


def _required_of(path: str, choices: Sequence[str]) -> FieldError:
    shown = " ".join(json.dumps(choice) for choice in choices)
    return required(path, f"valid values: [{shown}]")


def _validate_failure_policy(spec: Object, path: str) -> list[FieldError]:
    rules = spec["podFailurePolicy"].get("rules") or []
    errors: list[FieldError] = []
    if len(rules) > _MOST_RULES:
        errors.append(too_many(f"{path}.rules", len(rules), _MOST_RULES))
    pod = spec["template"]["spec"]
    names = {item.get("name") for field in ("containers", "initContainers") for item in pod.get(field, ())}
    for index, rule in enumerate(rules):
        errors += _validate_failure_rule(spec, rule, f"{path}.rules[{index}]", names)
    return errors


def _validate_failure_rule(spec: Object, rule: Object, path: str, names: set[str | None]) -> list[FieldError]:
    errors: list[FieldError] = []
    action = rule.get("action", "")
    if not action:
        errors.append(_required_of(f"{path}.action", _ACTIONS))
    elif action == "FailIndex":
        if spec.get("backoffLimitPerIndex") is None:
            detail = "requires the backoffLimitPerIndex to be set"
            errors.append(bad_value(f"{path}.action", action, detail))
    elif action not in _ACTIONS:
        errors.append(not_supported(f"{path}.action", action, _ACTIONS))
    codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or []
    if codes is not None:
        errors += _validate_exit_codes(codes, f"{path}.onExitCodes", names)
    for index, pattern in enumerate(conditions):
        errors += _validate_pattern(pattern, f"{path}.onPodConditions[{index}]")
    if (codes is not None) == bool(conditions):
        how = "is not supported" if conditions else "is required"
        which = "both" if conditions else "one of"
        text = f"specifying {which} OnExitCodes and OnPodConditions {how}"
        errors.append(FieldError(path, "FieldValueInvalid", f"Invalid value: {text}"))
    return errors


def _validate_pattern(pattern: Object, path: str) -> list[FieldError]:
    kind, status = pattern.get("type", ""), pattern.get("status", "")
    errors = problems_at(f"{path}.type", kind, check_label_key(kind))
    if status not in _STATUSES:
        errors.append(not_supported(f"{path}.status", status, _STATUSES))
    return errors


def _validate_exit_codes(codes: Object, path: str, names: set[str | None]) -> list[FieldError]:
    errors: list[FieldError] = []
    operator, values = codes.get("operator", ""), codes.get("values") or []
    if not operator:
        errors.append(_required_of(f"{path}.operator", _OPERATORS))
    elif operator not in _OPERATORS:
        errors.append(not_supported(f"{path}.operator", operator, _OPERATORS))
    name = codes.get("containerName")
    if name is not None and name not in names:
        detail = "must be one of the container or initContainer names in the pod template"
        errors.append(bad_value(f"{path}.containerName", name, detail))
    if not values:
        shown = codes.get("values")
        errors.append(bad_value(f"{path}.values", shown, "at least one value is required"))
    elif len(values) > 255:
        errors.append(too_many(f"{path}.values", len(values), 255))
    seen: set[int] = set()
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            errors.append(bad_value(f"{path}.values[{index}]", 0, "must not be 0 for the In operator"))
        if value in seen:
            errors.append(duplicate(f"{path}.values[{index}]", value))
        seen.add(value)
    if any(before > after for before, after in pairwise(values)):
        errors.append(bad_value(f"{path}.values", values, "must be ordered"))
    return errors


def _validate_success_policy(spec: Object, path: str) -> list[FieldError]:
    rules = spec["successPolicy"].get("rules") or []
    if spec.get("completionMode") != "Indexed":
        shown = {"Rules": [_shown_rule(rule) for rule in rules] or None}
        return [bad_value(path, shown, "requires indexed completion mode")]
    errors: list[FieldError] = []
    if not rules:
        detail = "at least one rules must be specified when the successPolicy is specified"
        errors.append(required(f"{path}.rules", detail))
    if len(rules) > _MOST_RULES:
        errors.append(too_many(f"{path}.rules", len(rules), _MOST_RULES))
    for index, rule in enumerate(rules):
        errors += _validate_success_rule(rule, spec.get("completions") or 0, f"{path}.rules[{index}]")
    return errors


def _shown_rule(rule: Object) -> Object:
    return {
        "SucceededIndexes": rule.get("succeededIndexes"),
        "SucceededCount": rule.get("succeededCount"),
    }


def _validate_success_rule(rule: Object, completions: int, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
    if count is None and indexes is None:
        detail = "at least one of succeededCount or succeededIndexes must be specified"
        errors.append(required(path, detail))
    total = 0
    if indexes is not None:
        try:
            total = count_indexes(indexes, completions)
        except ValueError as error:
            detail = f"error parsing succeededIndexes: {error}"
            errors.append(bad_value(f"{path}.succeededIndexes", indexes, detail))
    if count is not None:
        at = f"{path}.succeededCount"
        errors += non_negative(at, count)
        if count > completions:
            detail = f"must be less than or equal to {completions} (the number of specified completions)"
            errors.append(bad_value(at, count, detail))
        if indexes is not None and count > total:
            whose = "the number of indexes in the specified succeededIndexes field"
            errors.append(bad_value(at, count, f"must be less than or equal to {total} ({whose})"))
    return errors


def count_indexes(text: str, completions: int) -> int:
    """Number of indexes that `0,3-5` names; raises ValueError in upstream's words if the text is malformed."""
    total, last = 0, -1
    for part in text.split(",") if text else ():
        limits = part.split("-")
        if len(limits) > 2:
            raise ValueError(
                f'the fragment "{part}" violates the requirement that an index interval '
                "can have at most two parts separated by '-'"
            )
        numbers = [_index(limit, completions) for limit in limits]
        first, end = numbers[0], numbers[-1]
        if len(numbers) == 2 and first >= end:
            raise ValueError(f"non-increasing order, previous: {first}, current: {end}")
        if last >= first:
            raise ValueError(f"non-increasing order, previous: {last}, current: {first}")
        total += end - first + 1
        last = end
    return total


def _index(text: str, completions: int) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise ValueError(f'cannot convert string to integer for index: "{text}"')
    if (number := int(text)) >= completions:
        raise ValueError(f'too large index: "{text}"')
    return number


def _validate_replacement(spec: Object, path: str) -> list[FieldError]:
    policy = spec.get("podReplacementPolicy")
    known = ("Failed",) if "podFailurePolicy" in spec else ("Failed", "TerminatingOrFailed")
    return [] if policy is None or policy in known else [not_supported(path, policy, known)]


def _validate_restart(spec: Object, path: str) -> list[FieldError]:
    policy = spec["template"]["spec"].get("restartPolicy", "")
    if policy in ("", "Always"):
        return [required(path, 'valid values: "OnFailure", "Never"')]
    if policy not in ("OnFailure", "Never"):
        return [not_one_of(path, policy, ("OnFailure", "Never"))]
    if "podFailurePolicy" in spec and policy != "Never":
        return [bad_value(path, policy, 'only "Never" is supported when podFailurePolicy is specified')]
    return []

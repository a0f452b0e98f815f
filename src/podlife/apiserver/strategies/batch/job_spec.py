"""The spec of a job, in a Job and in the template of a CronJob."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise

from podlife.api.codec import Object
from podlife.api.defaults.fields import fill_empty
from podlife.api.field_errors import FieldError, FieldErrors, bad_value, required, too_long, too_many
from podlife.api.names import check_dns_subdomain, check_label_key
from podlife.apiserver.strategies.core.pod.template import (
    default_selector,
    default_template,
    validate_template,
)
from podlife.apiserver.strategies.field_checks import check_at, non_negative, one_of, unique

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
    default_failure_policy(spec)


def default_failure_policy(spec: Object) -> None:
    for rule in (spec.get("podFailurePolicy") or {}).get("rules", ()):
        for pattern in rule.get("onPodConditions", ()):
            fill_empty(pattern, status="True")


def validate_job_spec(spec: Object, path: str) -> FieldErrors:
    for field in _COUNTS:
        yield from non_negative(f"{path}.{field}", spec.get(field))
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        yield required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    if (manager := spec.get("managedBy")) is not None:
        yield from _validate_manager(manager, f"{path}.managedBy")
    yield from _validate_mode(spec, path)
    if "podFailurePolicy" in spec:
        yield from _validate_failure_policy(spec, f"{path}.podFailurePolicy")
    if "successPolicy" in spec:
        yield from _validate_success_policy(spec, f"{path}.successPolicy")
    replacements = ("Failed",) if "podFailurePolicy" in spec else ("Failed", "TerminatingOrFailed")
    yield from one_of(f"{path}.podReplacementPolicy", spec.get("podReplacementPolicy"), replacements)
    yield from validate_template(spec["template"], f"{path}.template")
    yield from _validate_restart(spec, f"{path}.template.spec.restartPolicy")


def _validate_manager(manager: str, path: str) -> FieldErrors:
    if not manager:
        yield required(path)
        return
    host, _, rest = manager.partition("/")
    if not host or not rest:
        yield bad_value(path, manager, 'must be a domain-prefixed path (such as "acme.io/foo")')
        return
    yield from check_at(path, host, check_dns_subdomain)
    if len(manager) > 63:
        yield too_long(path, 63)


def _validate_mode(spec: Object, path: str) -> FieldErrors:
    mode = spec.get("completionMode")
    yield from one_of(f"{path}.completionMode", mode, ("NonIndexed", "Indexed"))
    if mode == "Indexed":
        yield from _validate_indexed(spec, path)
    elif mode in (None, "NonIndexed"):
        for field in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(field) is not None:
                yield bad_value(f"{path}.{field}", spec[field], "requires indexed completion mode")


def _validate_indexed(spec: Object, path: str) -> FieldErrors:
    completions, failed = spec.get("completions"), spec.get("maxFailedIndexes")
    parallelism = spec.get("parallelism") or 0
    if completions is None:
        yield required(f"{path}.completions", "when completion mode is Indexed")
    if parallelism > _MOST_INDEXES:
        detail = f"must be less than or equal to {_MOST_INDEXES} when completion mode is Indexed"
        yield bad_value(f"{path}.parallelism", parallelism, detail)
    if failed is not None and completions is not None and failed > completions:
        yield bad_value(f"{path}.maxFailedIndexes", failed, "must be less than or equal to completions")
    if failed is not None and failed > _MOST_INDEXES:
        yield bad_value(f"{path}.maxFailedIndexes", failed, f"must be less than or equal to {_MOST_INDEXES}")
    if (completions or 0) > _MOST_INDEXES and spec.get("backoffLimitPerIndex") is not None:
        yield from _validate_many(failed, parallelism, path)


def _validate_many(failed: int | None, parallelism: int, path: str) -> FieldErrors:
    if failed is None:
        detail = f"must be specified when completions is above {_MOST_INDEXES}"
        yield required(f"{path}.maxFailedIndexes", detail)
    detail = (
        f"must be less than or equal to {_MOST_WHEN_MANY} when completions are above {_MOST_INDEXES} "
        "and used with backoff limit per index"
    )
    if parallelism > _MOST_WHEN_MANY:
        yield bad_value(f"{path}.parallelism", parallelism, detail)
    if failed is not None and failed > _MOST_WHEN_MANY:
        yield bad_value(f"{path}.maxFailedIndexes", failed, detail)


def _validate_choice(path: str, value: str, choices: Sequence[str]) -> list[FieldError]:
    shown = " ".join(json.dumps(choice) for choice in choices)
    return one_of(path, value, choices) if value else [required(path, f"valid values: [{shown}]")]


def _validate_failure_policy(spec: Object, path: str) -> FieldErrors:
    rules = spec["podFailurePolicy"].get("rules") or []
    if len(rules) > _MOST_RULES:
        yield too_many(f"{path}.rules", len(rules), _MOST_RULES)
    pod = spec["template"]["spec"]
    names = {item.get("name") for field in ("containers", "initContainers") for item in pod.get(field, ())}
    for index, rule in enumerate(rules):
        yield from _validate_failure_rule(spec, rule, f"{path}.rules[{index}]", names)


def _validate_failure_rule(spec: Object, rule: Object, path: str, names: set[str | None]) -> FieldErrors:
    action = rule.get("action", "")
    yield from _validate_choice(f"{path}.action", action, _ACTIONS)
    if action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        yield bad_value(f"{path}.action", action, "requires the backoffLimitPerIndex to be set")
    codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or []
    if codes is not None:
        yield from _validate_exit_codes(codes, f"{path}.onExitCodes", names)
    for index, pattern in enumerate(conditions):
        at = f"{path}.onPodConditions[{index}]"
        yield from check_at(f"{at}.type", pattern.get("type", ""), check_label_key)
        yield from one_of(f"{at}.status", pattern.get("status", ""), _STATUSES)
    if (codes is not None) == bool(conditions):
        which, how = ("both", "is not supported") if conditions else ("one of", "is required")
        text = f"specifying {which} OnExitCodes and OnPodConditions {how}"
        yield FieldError(path, "FieldValueInvalid", f"Invalid value: {text}")


def _validate_exit_codes(codes: Object, path: str, names: set[str | None]) -> FieldErrors:
    operator, values = codes.get("operator", ""), codes.get("values") or []
    yield from _validate_choice(f"{path}.operator", operator, _OPERATORS)
    name = codes.get("containerName")
    if name is not None and name not in names:
        detail = "must be one of the container or initContainer names in the pod template"
        yield bad_value(f"{path}.containerName", name, detail)
    if not values:
        yield bad_value(f"{path}.values", codes.get("values"), "at least one value is required")
    elif len(values) > 255:
        yield too_many(f"{path}.values", len(values), 255)
    seen: set[int] = set()
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            yield bad_value(f"{path}.values[{index}]", 0, "must not be 0 for the In operator")
        yield from unique(f"{path}.values[{index}]", value, seen)
    if any(before > after for before, after in pairwise(values)):
        yield bad_value(f"{path}.values", values, "must be ordered")


def _validate_success_policy(spec: Object, path: str) -> FieldErrors:
    rules = spec["successPolicy"].get("rules") or []
    if spec.get("completionMode") != "Indexed":
        fields = ("SucceededIndexes", "SucceededCount")
        shown = [{field: rule.get(field[0].lower() + field[1:]) for field in fields} for rule in rules]
        yield bad_value(path, {"Rules": shown or None}, "requires indexed completion mode")
        return
    if not rules:
        detail = "at least one rules must be specified when the successPolicy is specified"
        yield required(f"{path}.rules", detail)
    if len(rules) > _MOST_RULES:
        yield too_many(f"{path}.rules", len(rules), _MOST_RULES)
    for index, rule in enumerate(rules):
        yield from _validate_success_rule(rule, spec.get("completions") or 0, f"{path}.rules[{index}]")


def _validate_success_rule(rule: Object, completions: int, path: str) -> FieldErrors:
    count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
    if count is None and indexes is None:
        yield required(path, "at least one of succeededCount or succeededIndexes must be specified")
    total = 0
    if indexes is not None:
        try:
            total = count_indexes(indexes, completions)
        except ValueError as error:
            yield bad_value(f"{path}.succeededIndexes", indexes, f"error parsing succeededIndexes: {error}")
    if count is not None:
        at = f"{path}.succeededCount"
        yield from non_negative(at, count)
        if count > completions:
            detail = f"must be less than or equal to {completions} (the number of specified completions)"
            yield bad_value(at, count, detail)
        if indexes is not None and count > total:
            whose = "the number of indexes in the specified succeededIndexes field"
            yield bad_value(at, count, f"must be less than or equal to {total} ({whose})")


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


def _validate_restart(spec: Object, path: str) -> list[FieldError]:
    policy = spec["template"]["spec"].get("restartPolicy", "")
    if policy in ("", "Always"):
        return [required(path, 'valid values: "OnFailure", "Never"')]
    if policy == "OnFailure" and "podFailurePolicy" in spec:
        return [bad_value(path, policy, 'only "Never" is supported when podFailurePolicy is specified')]
    return one_of(path, policy, ("OnFailure", "Never"))

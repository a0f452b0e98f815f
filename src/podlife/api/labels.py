"""Labels, annotations and label selectors inside objects: their syntax, and whether they match.

Selectors in query strings are in `selectors`. Checks return errors at the given path.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podlife.api.field_errors import FieldError, bad_value, forbidden, required, too_long
from podlife.api.names import check_label_key, check_label_value

_LARGEST_ANNOTATIONS = 256 * 1024


def validate_labels(labels: Mapping[str, str], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for key, value in labels.items():
        if problems := check_label_key(key):
            errors += [bad_value(path, key, problem) for problem in problems]
        if problems := check_label_value(value):
            errors += [bad_value(path, value, problem) for problem in problems]
    return errors


def validate_annotations(annotations: Mapping[str, str], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    size = 0
    for key, value in annotations.items():
        size += len(key) + len(value)
        # Unlike a label's, an annotation's prefix may have capitals.
        if problems := check_label_key(key.lower()):
            errors += [bad_value(path, key, problem) for problem in problems]
    # Characters are at most four bytes: count bytes only where it can matter.
    if size * 4 > _LARGEST_ANNOTATIONS:
        size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
        if size > _LARGEST_ANNOTATIONS:
            errors.append(too_long(path, _LARGEST_ANNOTATIONS))
    return errors


def validate_label_selector(selector: Mapping[str, Any] | None, path: str) -> list[FieldError]:
    if not selector:
        return []
    errors = validate_labels(selector.get("matchLabels") or {}, f"{path}.matchLabels")
    for index, requirement in enumerate(selector.get("matchExpressions") or ()):
        errors += validate_requirement(requirement, f"{path}.matchExpressions[{index}]")
    return errors


def validate_requirement(
    requirement: Mapping[str, Any], path: str, *, may_compare: bool = False, check_values: bool = True
) -> list[FieldError]:
    """One expression of a label selector; those of a node selector may also compare (`Gt`, `Lt`)."""
    errors: list[FieldError] = []
    operator, values = requirement.get("operator", ""), requirement.get("values") or []
    if operator in ("In", "NotIn"):
        if not values:
            errors.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            errors.append(forbidden(f"{path}.values", detail))
    elif may_compare and operator in ("Gt", "Lt"):
        if len(values) != 1:
            detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            errors.append(required(f"{path}.values", detail))
    else:
        errors.append(bad_value(f"{path}.operator", operator, "not a valid selector operator"))
    key = requirement.get("key", "")
    errors += [bad_value(f"{path}.key", key, problem) for problem in check_label_key(key)]
    for index, value in enumerate(values if check_values else ()):
        errors += [bad_value(f"{path}.values[{index}]", value, text) for text in check_label_value(value)]
    return errors


def is_empty_selector(selector: Mapping[str, Any]) -> bool:
    """An empty selector matches everything."""
    return not selector.get("matchLabels") and not selector.get("matchExpressions")


def selector_matches(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether a `LabelSelector` (matchLabels and matchExpressions) selects these labels."""
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    return all(_holds(item, labels) for item in selector.get("matchExpressions") or ())


def _holds(requirement: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, values = requirement.get("key", ""), requirement.get("values") or []
    match requirement.get("operator"):
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    return False

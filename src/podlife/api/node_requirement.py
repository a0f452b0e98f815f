"""Which nodes a pod may run on: nodeSelector, required node affinity, tolerations. Pure.

A spec is parsed once and matched against every node. An invalid term matches no node; preferences are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from podlife.api.selectors import LabelRequirement, LabelSelector

_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!", "Gt": "gt", "Lt": "lt"}
_NAME = "metadata.name"


class NodeRequirement:
    """nodeSelector and required node affinity of a pod spec."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self._labels = tuple((spec.get("nodeSelector") or {}).items())
        affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
        required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
        self._terms = None if required is None else list(_read(required.get("nodeSelectorTerms") or ()))

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        if any(labels.get(key) != value for key, value in self._labels):
            return False
        return self._terms is None or any(term.matches(name, labels) for term in self._terms)


class _Term:
    def __init__(self, term: Mapping[str, Any]) -> None:
        """Raises ValueError if the term is invalid."""
        expressions = term.get("matchExpressions") or ()
        self._labels = LabelSelector(map(_label_requirement, expressions)) if expressions else None
        self._names = [_name_condition(each) for each in term.get("matchFields") or ()]

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        if self._labels is not None and not self._labels.matches(labels):
            return False
        return all((name == value) is is_wanted for value, is_wanted in self._names)


def _read(terms: Iterable[Mapping[str, Any]]) -> Iterable[_Term]:
    for term in terms:
        if not (term.get("matchExpressions") or term.get("matchFields")):
            continue
        try:
            yield _Term(term)
        except ValueError:
            continue


def _label_requirement(expression: Mapping[str, Any]) -> LabelRequirement:
    operator = _OPERATORS.get(expression.get("operator", ""))
    values: Sequence[str] = expression.get("values") or ()
    if operator is None or not _is_count_right(operator, values):
        raise ValueError(f"invalid label expression: {expression}")
    return LabelRequirement(expression.get("key", ""), operator, tuple(sorted(set(values))))


def _is_count_right(operator: str, values: Sequence[str]) -> bool:
    match operator:
        case "in" | "notin":
            return bool(values)
        case "exists" | "!":
            return not values
        case _:
            return len(values) == 1 and values[0].lstrip("+-").isdecimal()


def _name_condition(expression: Mapping[str, Any]) -> tuple[str, bool]:
    """The name, and whether the node must or must not have it."""
    values: Sequence[str] = expression.get("values") or ()
    operator = expression.get("operator")
    if expression.get("key") != _NAME or operator not in ("In", "NotIn") or len(values) != 1:
        raise ValueError(f"invalid node name expression: {expression}")
    return values[0], operator == "In"


def tolerates(toleration: Mapping[str, Any], *, key: str, effect: str, value: str) -> bool:
    """Whether the toleration matches the taint. An empty effect or key matches all. Comparison operators are disabled
    by default in 1.36."""
    if toleration.get("effect") not in (None, "", effect) or toleration.get("key") not in (None, "", key):
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Equal":
        return bool((toleration.get("value") or "") == value)
    return bool(operator == "Exists")

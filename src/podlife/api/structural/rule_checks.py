"""Checks the rules in the schema of a definition: they compile, and their estimated cost is within upstream's limits.

The cost of a rule is the worst case of one evaluation, times how often its value can occur in an object.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from podlife.api import cel
from podlife.api.cel import PER_DEFINITION_ESTIMATE, PER_EXPRESSION_ESTIMATE
from podlife.api.field_errors import FieldError, bad_value, forbidden, internal_error
from podlife.api.structural.props import Props
from podlife.api.structural.rules import RULES, CompiledRule, compile_rules, inner_cardinality

# With more errors in the schema its rules are not looked at.
_MOST_ERRORS = 100
_MOST_EXPENSIVE = 4
_ADVICE = (
    "try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are "
    "declared"
)


@dataclass(frozen=True, slots=True)
class _Place:
    cardinality: int | None = 1
    is_root: bool = True
    # There are rules here or further out.
    in_scope: bool = False
    # The type of this or of an outer part with rules is unknown.
    is_untyped: bool = False
    # Path of the list, if any, whose items cannot be found in the old object.
    uncorrelated: str = ""


def check_rules(props: Props, path: str, schema_errors: Sequence[FieldError]) -> list[FieldError]:
    """Errors of all rules in a structural schema. Those of a part with other errors are not compiled."""
    if len(schema_errors) > _MOST_ERRORS:
        return []
    check = _Check([error.path for error in schema_errors])
    check.visit(props, path, _Place())
    return check.errors + check.total_errors(path)


class _Check:
    def __init__(self, wrong: Sequence[str]) -> None:
        self.errors: list[FieldError] = []
        self._wrong = wrong
        self._total = 0
        self._expensive: list[tuple[int, str]] = []

    def visit(self, props: Props, path: str, place: _Place) -> None:
        has_rules = RULES in props
        place = replace(place, in_scope=place.in_scope or has_rules)
        if place.in_scope and not place.is_untyped:
            place = replace(place, is_untyped=not _has_type(props))
        inner = replace(place, is_root=False, cardinality=inner_cardinality(props, place.cardinality))
        if isinstance(additional := props.get("additionalProperties"), dict):
            self.visit(additional, f"{path}.additionalProperties", inner)
        for name, each in props.get("properties", {}).items():
            self.visit(each, f"{path}.properties[{name}]", inner)
        if isinstance(items := props.get("items"), dict):
            if props.get("x-kubernetes-list-type") != "map" and not inner.uncorrelated:
                inner = replace(inner, uncorrelated=path)
            self.visit(items, f"{path}.items", inner)
        if has_rules and not any(wrong.startswith(path) for wrong in self._wrong):
            self._check_rules(props, f"{path}.{RULES}", place)

    def _check_rules(self, props: Props, path: str, place: _Place) -> None:
        is_resource = place.is_root or bool(props.get("x-kubernetes-embedded-resource"))
        of = None if place.is_untyped else cel.schema_type(props, is_resource=is_resource, name="selfType1")
        if of is None:
            why = "unable to convert structural schema to CEL declarations"
            what = f"failed to construct type information for {RULES} rules"
            self.errors.append(internal_error(path, f"internal error: {what}: {why}"))
            return
        for index, rule in enumerate(compile_rules(props, of, place.cardinality)):
            self._check_rule(rule, f"{path}[{index}]", place)

    def _check_rule(self, rule: CompiledRule, path: str, place: _Place) -> None:
        self._count(rule.cost, f"{path}.rule", "estimated rule cost")
        if rule.error:
            self.errors.append(bad_value(f"{path}.rule", _shown(rule.props), rule.error))
        if rule.message_error:
            shown = _shown(rule.props)
            self.errors.append(bad_value(f"{path}.messageExpression", shown, rule.message_error))
        elif rule.message is not None:
            self._count(rule.message_cost, f"{path}.messageExpression", "estimated messageExpression cost")
        optional = rule.props.get("optionalOldSelf")
        if rule.uses_old and place.uncorrelated:
            where = f"the uncorrelatable portion of the schema within {place.uncorrelated}"
            detail = f"oldSelf cannot be used on {where}"
            self.errors.append(bad_value(f"{path}.rule", rule.props["rule"], detail))
        elif not rule.uses_old and optional is not None:
            detail = "may not be set if oldSelf is not used in rule"
            self.errors.append(bad_value(f"{path}.optionalOldSelf", optional, detail))

    def _count(self, cost: int, path: str, what: str) -> None:
        if cost > PER_EXPRESSION_ESTIMATE:
            self.errors.append(forbidden(path, _too_expensive(what, cost, PER_EXPRESSION_ESTIMATE)))
        self._total = min(self._total + cost, 2**64 - 1)
        if cost >= PER_DEFINITION_ESTIMATE // 100:
            self._expensive.append((cost, path))
            self._expensive.sort(key=lambda each: -each[0])
            del self._expensive[_MOST_EXPENSIVE:]

    def total_errors(self, path: str) -> list[FieldError]:
        if self._total <= PER_DEFINITION_ESTIMATE:
            return []
        detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
        what = f"{RULES} estimated rule cost total for entire OpenAPIv3 schema"
        total = forbidden(path, _too_expensive(what, self._total, PER_DEFINITION_ESTIMATE))
        return [*(forbidden(at, detail) for _, at in self._expensive), total]


def _has_type(props: Props) -> bool:
    """Whether expressions can see values of the schema."""
    if props.get("x-kubernetes-int-or-string"):
        return True
    match props.get("type"):
        case "array":
            return _has_type(props.get("items") or {})
        case "object":
            additional = props.get("additionalProperties")
            return not isinstance(additional, dict) or _has_type(additional)
    return bool(props.get("type"))


def _too_expensive(what: str, cost: int, limit: int) -> str:
    factor = cost / limit
    shown = f"{factor:.1f}x" if factor >= 1.5 else f"{factor:f}x"
    if factor > 100:
        shown = "more than 100x"
    return f"{what} exceeds budget by factor of {shown} ({_ADVICE})"


def _shown(rule: Props) -> dict[str, Any]:
    """A rule with the names of upstream's Go type, which it shows."""
    return {
        "Rule": rule["rule"],
        "Message": rule.get("message", ""),
        "MessageExpression": rule.get("messageExpression", ""),
        "Reason": rule.get("reason"),
        "FieldPath": rule.get("fieldPath", ""),
        "OptionalOldSelf": rule.get("optionalOldSelf"),
    }

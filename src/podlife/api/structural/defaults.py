"""The errors of a schema: its structure, its defaults, its use of OpenAPI, and its rules, in this order."""

from __future__ import annotations

from copy import deepcopy

from podlife.api.field_errors import FieldError, FieldErrors, bad_value
from podlife.api.structural.fields import Budget, TooExpensiveError, prune
from podlife.api.structural.openapi_rules import check_openapi
from podlife.api.structural.props import Props, every_schema
from podlife.api.structural.rule_checks import check_rules
from podlife.api.structural.rule_evaluation import RuleEvaluation
from podlife.api.structural.rules import RuleTree, rule_tree
from podlife.api.structural.schema import ABSENT, Schema
from podlife.api.structural.structure import check_structural, why_not_convertible
from podlife.api.structural.values import validate_value

# Characters of all different patterns of a schema: each is compiled.
_MOST_PATTERNS = 16 * 1024


def check_schema(props: Props, path: str) -> list[FieldError]:
    """The errors of a schema whose path in the definition is `path`."""
    patterns = {each["pattern"] for each in every_schema(props) if "pattern" in each}
    if sum(map(len, patterns)) > _MOST_PATTERNS:
        return [bad_value(path, "", f"all patterns together may have at most {_MOST_PATTERNS} characters")]
    unusable = why_not_convertible(props)
    errors = [] if unusable else check_structural(props, path)
    if not errors and not unusable:
        schema = Schema(props)
        tree = rule_tree(props, is_resource=True) if schema.has_defaults else None
        try:
            errors = list(_Defaults().check(schema, tree, path))
        except TooExpensiveError:
            errors = [bad_value(path, "", "defaults are too large to be checked")]
    is_sound = not errors and not unusable
    errors += check_openapi(props, path)
    if is_sound:
        errors += check_rules(props, path, errors)
    if unusable and not errors:
        errors.append(bad_value(path, "", unusable))
    return errors


class _Defaults:
    """Checks all defaults of a schema, within one budget."""

    def __init__(self) -> None:
        self._budget = Budget()
        self._rules = RuleEvaluation(self._budget)

    def check(self, schema: Schema, rules: RuleTree | None, path: str) -> FieldErrors:
        if schema.default is not ABSENT:
            yield from self._check_one(schema, rules, f"{path}.default")
        if schema.items is not None:
            yield from self.check(schema.items, rules and rules.items, f"{path}.items")
        for name, inner in schema.properties.items():
            yield from self.check(inner, rules and rules.properties.get(name), f"{path}.properties[{name}]")

    def _check_one(self, schema: Schema, rules: RuleTree | None, at: str) -> FieldErrors:
        value = deepcopy(schema.default)
        prune(value, schema)
        if value != schema.default:
            yield bad_value(at, schema.default, "must not have unknown fields")
        if errors := validate_value(schema.default, schema, self._budget, root=at):
            yield from errors
        elif rules is not None:
            # As a value that stays, and as a new one.
            for old in (schema.default, None):
                self._rules.errors.clear()
                self._rules.validate(rules, schema.default, old, path=at, ratchets=False)
                yield from self._rules.errors
                if self._rules.errors:
                    break

"""The errors of a schema: its structure, its defaults, and its use of OpenAPI, in this order."""

from __future__ import annotations

from copy import deepcopy

from podlife.api.field_errors import FieldError, FieldErrors, bad_value
from podlife.api.structural.fields import Budget, TooExpensiveError, prune
from podlife.api.structural.openapi_rules import check_openapi
from podlife.api.structural.props import Props, every_schema
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
        try:
            errors = list(_check_defaults(Schema(props), path, Budget()))
        except TooExpensiveError:
            errors = [bad_value(path, "", "defaults are too large to be checked")]
    errors += check_openapi(props, path)
    if unusable and not errors:
        errors.append(bad_value(path, "", unusable))
    return errors


def _check_defaults(schema: Schema, path: str, budget: Budget) -> FieldErrors:
    if schema.default is not ABSENT:
        at = f"{path}.default"
        value = deepcopy(schema.default)
        prune(value, schema)
        if value != schema.default:
            yield bad_value(at, schema.default, "must not have unknown fields")
        yield from validate_value(schema.default, schema, budget, root=at)
    if schema.items is not None:
        yield from _check_defaults(schema.items, f"{path}.items", budget)
    for name, inner in schema.properties.items():
        yield from _check_defaults(inner, f"{path}.properties[{name}]", budget)

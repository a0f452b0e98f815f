"""Structural schemas: the schemas of custom resources, and what they do to a value.

`decode_props` reads the schema of a custom resource definition, `check_schema` finds its errors, `Schema` is its
compiled form. `prune`, `drop_nulls` and `default` bring a value into the shape that the schema asks for,
`validate_value` and `validate_lists` report what is wrong with it; `rule_tree` compiles its validation rules, which
a `RuleEvaluation` evaluates. Everything is pure; sizes, depth and work are
bounded, because both the schema and the value come from a tenant.
"""

from __future__ import annotations

from podlife.api.structural.defaults import check_schema
from podlife.api.structural.field_paths import find_field
from podlife.api.structural.fields import Budget, TooExpensiveError, default, drop_nulls, prune, whole_numbers
from podlife.api.structural.formats import is_checked_format
from podlife.api.structural.lists import validate_lists
from podlife.api.structural.props import Props, decode_props, every_schema
from podlife.api.structural.rule_evaluation import RuleEvaluation
from podlife.api.structural.rules import RULES, RuleTree, rule_tree
from podlife.api.structural.schema import ABSENT, Schema
from podlife.api.structural.values import NEW, NOWHERE, validate_value

__all__ = [
    "ABSENT",
    "NEW",
    "NOWHERE",
    "RULES",
    "Budget",
    "Props",
    "RuleEvaluation",
    "RuleTree",
    "Schema",
    "TooExpensiveError",
    "check_schema",
    "decode_props",
    "default",
    "drop_nulls",
    "every_schema",
    "find_field",
    "is_checked_format",
    "prune",
    "rule_tree",
    "validate_lists",
    "validate_value",
    "whole_numbers",
]

"""`x-kubernetes-validations` of a schema, compiled: one `RuleTree` for every part of the schema that has rules.

A definition is checked with the same compiled rules (`rule_checks`), so that those of a stored one compile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from podlife.api import cel
from podlife.api.cel import CelError, CelType, Environment, Program
from podlife.api.structural.field_paths import find_field
from podlife.api.structural.props import Props

RULES = "x-kubernetes-validations"
_LARGEST = 2**64 - 1
# Most bytes of a request: how often a value can occur in an object.
_MOST_BYTES = 3 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """Without a program the rule is empty, or has an error."""

    props: Props
    program: Program | None = None
    error: str = ""
    # Estimated, times how often the value may occur.
    cost: int = 0
    uses_old: bool = False
    message: Program | None = None
    message_error: str = ""
    message_cost: int = 0
    # Of the field that a violation is reported for, below the value.
    path: str = ""

    @property
    def is_optional(self) -> bool:
        """Whether `oldSelf` is an optional, so that the rule applies to new values too."""
        return bool(self.props.get("optionalOldSelf"))

    @property
    def shown(self) -> str:
        """What messages call the rule."""
        text: str = self.props.get("message") or self.props["rule"]
        return text.strip()


def compile_rules(props: Props, of: CelType, cardinality: int | None) -> list[CompiledRule]:
    """The rules of one schema, whose values have this type. `cardinality` is how often such a value can be in an
    object; None if nothing but the size of a request limits it."""
    times = _MOST_BYTES // (of.min_size + 1) if cardinality is None else cardinality
    return [_compile(rule, props, of, times) for rule in props.get(RULES, ())]


def _compile(rule: Props, props: Props, of: CelType, times: int) -> CompiledRule:
    if not rule["rule"].strip():
        return CompiledRule(rule)
    old = cel.optional_of(of) if rule.get("optionalOldSelf") else of
    environment = Environment({"self": of, "oldSelf": old})
    try:
        program = cel.compile(rule["rule"], environment)
    except CelError as error:
        return CompiledRule(rule, error=f"compilation failed: {error}")
    if program.type.kind != "bool":
        return CompiledRule(rule, error="cel expression must evaluate to a bool")
    message, message_error = _compile_message(rule.get("messageExpression", ""), environment)
    return CompiledRule(
        rule,
        program,
        cost=min(program.estimated_cost(_Sizes(self=of)).most * times, _LARGEST),
        uses_old=program.uses("oldSelf"),
        message=message,
        message_error=message_error,
        message_cost=message.estimated_cost(_Sizes(self=of)).most if message is not None else 0,
        path=_field_path(rule.get("fieldPath", ""), props),
    )


class _Sizes(dict[str, CelType]):
    """Upstream's estimate takes every name for the value, even that of a type."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> CelType:
        return self["self"]


def _compile_message(source: str, environment: Environment) -> tuple[Program | None, str]:
    if not source:
        return None, ""
    try:
        program = cel.compile(source, environment)
    except CelError as error:
        return None, f"messageExpression compilation failed: {error}"
    if program.type.kind != "string":
        return None, "messageExpression must evaluate to a string"
    return program, ""


def _field_path(text: str, props: Props) -> str:
    try:
        return find_field(text, props)[0]
    except ValueError:
        return ""


def inner_cardinality(props: Props, cardinality: int | None) -> int | None:
    """How often a value inside of one of this schema can be in an object."""
    most: int | None = 1
    match props.get("type"):
        case "object" if "additionalProperties" in props:
            most = props.get("maxProperties")
        case "array":
            most = props.get("maxItems")
    if cardinality is None or most is None:
        return None
    return min(cardinality * max(most, 0), _LARGEST)


@dataclass(frozen=True, slots=True)
class RuleTree:
    """The rules of a schema and of everything inside it."""

    # Of the schema.
    type: str
    rules: tuple[CompiledRule, ...]
    items: RuleTree | None
    additional: RuleTree | None
    properties: Mapping[str, RuleTree]
    # Of a list whose items are known by their keys; empty for all others.
    list_keys: tuple[str, ...]
    # Estimated cost of all rules in the tree.
    cost: int

    @property
    def uses_old(self) -> bool:
        return any(rule.uses_old for rule in self.rules)


def rule_tree(props: Props, *, is_resource: bool = False) -> RuleTree | None:
    """None if there are no rules. `is_resource` says that it is the schema of a whole object."""
    if not _has_rules(props):
        return None
    return _tree(props, cel.schema_type(props, is_resource=is_resource), 1)


def _has_rules(props: Props) -> bool:
    inner = [props.get("items"), props.get("additionalProperties"), *props.get("properties", {}).values()]
    return RULES in props or any(isinstance(each, dict) and _has_rules(each) for each in inner)


def _tree(props: Props, of: CelType | None, cardinality: int | None) -> RuleTree | None:
    """None if nothing in it has rules, or expressions cannot see it."""
    if of is None:
        return None
    rules = tuple(compile_rules(props, of, cardinality))
    below = inner_cardinality(props, cardinality)
    element = of.parameters[-1] if of.kind in ("list", "map") else None
    items, additional = (
        _tree(each, element, below) if isinstance(each := props.get(field), dict) else None
        for field in ("items", "additionalProperties")
    )
    properties = {}
    for name, each in props.get("properties", {}).items():
        escaped = cel.escape_name(name)
        if escaped is None:
            is_embedded = bool(each.get("x-kubernetes-embedded-resource"))
            found = cel.schema_type(each, is_resource=is_embedded) if _has_rules(each) else None
        else:
            found = of.fields.get(escaped)
        if tree := _tree(each, found, below):
            properties[name] = tree
    parts = [tree for tree in (items, additional, *properties.values()) if tree is not None]
    if not rules and not parts:
        return None
    is_map = props.get("x-kubernetes-list-type") == "map"
    return RuleTree(
        props.get("type", ""),
        rules,
        items,
        additional,
        properties,
        tuple(props.get("x-kubernetes-list-map-keys", ())) if is_map else (),
        sum(rule.cost + rule.message_cost for rule in rules) + sum(part.cost for part in parts),
    )

"""Rules of a policy file, each validated on its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import yaml

from podlife.api.durations import format_exact
from podlife.api.names import check_dns_label
from podlife.api.yaml_fields import Diagnostics, YamlNode
from podlife.podgc.policy.model import Keep, KeepOrder, OwnerWait, Per, Rule, Selector
from podlife.podgc.policy.parse.coverage import covers
from podlife.podgc.policy.parse.numbers import DURATION, DURATION_KIND, integer, read_duration
from podlife.podgc.policy.parse.selectors import SELECT, read_selector
from podlife.podgc.policy.parse.values import (
    BOOLEAN,
    Field,
    Fields,
    InvalidScalarError,
    ValueType,
    choice,
    fields_schema,
    read_fields,
    read_list,
    reference,
    scalar,
    shown,
    text,
    text_schema,
    write_fields,
)
from podlife.podgc.policy.parse.yaml_nodes import is_reported

# Each rule is compared with each one before it.
MAX_RULES = 1000
_LIMITS = ("keep", "ttlAfterFinished", "maxTerminating")
_ENDED = ("Succeeded", "Failed")


# Fields


def _read_name(name: str) -> str:
    if check_dns_label(name):
        raise InvalidScalarError(
            f"invalid name {shown(name)}: must be a lowercase RFC 1123 label, for example old-jobs"
        )
    return name


def _read_exclude(notes: Diagnostics, node: YamlNode, path: str) -> tuple[Selector, ...] | None:
    if isinstance(node, yaml.SequenceNode):
        selectors = read_list(notes, node, path, _read_excluded)
        return None if selectors is None else tuple(selectors)
    one = _read_excluded(notes, node, path)
    return None if one is None else (one,)


def _read_excluded(notes: Diagnostics, node: YamlNode, path: str) -> Selector | None:
    if isinstance(node, yaml.MappingNode) and not node.value:
        notes.add(node, f"{path} is empty and would exclude every pod: set fields, or omit it")
        return None
    return read_selector(notes, node, path)


_EXCLUDED = {"allOf": [SELECT.schema], "minProperties": 1}
_EXCLUDE = ValueType(
    _read_exclude,
    {"anyOf": [_EXCLUDED, {"type": "array", "items": _EXCLUDED}]},
    lambda selectors: [SELECT.write(each) for each in selectors],
)
_KEEP: Fields = {
    "count": Field("count", integer(0, "use 0 to keep none"), "Number of pods to keep per group."),
    "per": Field("per", choice({str(each): each for each in Per}), "How to group pods.", str(Per.CLUSTER)),
    "orderBy": Field(
        "order_by",
        choice({str(each): each for each in KeepOrder}),
        "Which time decides who is youngest.",
        str(KeepOrder.COMPLETION),
    ),
}


def _read_keep(notes: Diagnostics, node: YamlNode, path: str) -> Keep | None:
    if isinstance(node, yaml.ScalarNode) and node.value.isdecimal():
        notes.add(
            node,
            f"{path}: expected a mapping, got a single value: write {{count: {shown(node.value)[1:-1]}}}",
        )
        return None
    before = len(notes.mistakes)
    found, values = read_fields(notes, node, path, _KEEP)
    if isinstance(node, yaml.MappingNode) and "count" not in found:
        notes.add(node, f"{path}: missing required field count: for example {{count: 5, per: owner}}")
    if len(notes.mistakes) > before or is_reported(node):
        return None
    # Without a count, `compose` has reported its error.
    return Keep(**{"count": 0, **values})


def _read_wait(node: yaml.ScalarNode) -> OwnerWait:
    seconds = read_duration(node)
    if seconds == 0:
        raise InvalidScalarError("must be greater than 0: set the maximum time to wait, or omit it")
    return OwnerWait(seconds)


RULE: Fields = {
    "name": Field(
        "name",
        ValueType(text(_read_name), text_schema(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")),
        "Name in plans, events and metrics.",
    ),
    "select": Field("selector", SELECT, "Which pods; default: every pod."),
    "exclude": Field(
        "exclude", _EXCLUDE, "Which of them to leave alone; later rules do not apply to them either."
    ),
    "keep": Field(
        "keep",
        ValueType(
            _read_keep,
            fields_schema("Keep the youngest pods of each group.", _KEEP, ["count"]),
            partial(write_fields, _KEEP),
        ),
    ),
    "ttlAfterFinished": Field("ttl_seconds", DURATION, "Maximum time that a pod may stay after its end."),
    "collectWhen": Field(
        "is_either",
        choice({"all": False, "any": True}),
        "With keep and ttlAfterFinished: whether a pod must exceed all of them, or any.",
        "all",
    ),
    "maxTerminating": Field(
        "max_terminating_seconds",
        DURATION,
        "Maximum time that a deleted pod may stay after its grace period.",
    ),
    "waitForOwner": Field(
        "wait_for_owner",
        ValueType(
            scalar(_read_wait, *DURATION_KIND),
            reference("duration"),
            lambda wait: format_exact(wait.at_most_seconds),
        ),
        "Keep a pod until its owner has observed its end, at most this long after it.",
    ),
    "enabled": Field("is_on", BOOLEAN, "Whether the rule is enabled.", default=True),
}
RULE_SCHEMA = fields_schema("Selected pods and their limits.", RULE, ["name"]) | {
    "anyOf": [{"required": [limit]} for limit in _LIMITS]
}


# Rules


@dataclass(slots=True)
class Draft:
    """A rule and its location; `rule` is None if it has errors."""

    name: str
    place: YamlNode
    rule: Rule | None = None
    # Value nodes by key.
    values: dict[str, YamlNode] = field(default_factory=dict)


def read_rules(notes: Diagnostics, node: YamlNode, path: str) -> list[Draft]:
    if isinstance(node, yaml.SequenceNode) and len(node.value) > MAX_RULES:
        notes.add(
            node,
            f"{path}: {len(node.value)} rules exceed the maximum ({MAX_RULES}): use patterns for many names",
        )
        return []
    return read_list(notes, node, path, _read_rule) or []


def _read_rule(notes: Diagnostics, node: YamlNode, path: str) -> Draft:
    before = len(notes.mistakes)
    found, values = read_fields(notes, node, path, RULE)
    if isinstance(node, yaml.MappingNode) and "name" not in found:
        notes.add(node, f"{path}: missing required field name")
    draft = Draft(values.get("name", ""), node, values={key: value for key, (_, value) in found.items()})
    # A value may be missing because of an error that `compose` has reported.
    if len(notes.mistakes) > before or is_reported(node) or len(values) < len(found):
        return draft
    rule = Rule(**values, line=node.start_mark.line + 1)
    _check(notes, rule, {key: key_node for key, (key_node, _) in found.items()}, draft)
    if len(notes.mistakes) == before:
        draft.rule = rule
    return draft


def _check(notes: Diagnostics, rule: Rule, keys: dict[str, YamlNode], draft: Draft) -> None:
    """Reports contradictions in a rule whose values are valid."""
    about_ended = [key for key in ("keep", "ttlAfterFinished") if key in keys]
    if not any(key in keys for key in _LIMITS):
        notes.add(
            draft.place,
            f"rule {rule.name} has no limit: set keep, ttlAfterFinished or maxTerminating; "
            "to keep pods, use protect or exclude",
        )
        return
    if "collectWhen" in keys and len(about_ended) < 2:
        notes.add(
            keys["collectWhen"], f"rule {rule.name}: collectWhen requires both keep and ttlAfterFinished"
        )
    if "waitForOwner" in keys and not about_ended:
        notes.add(keys["waitForOwner"], f"rule {rule.name}: waitForOwner requires keep or ttlAfterFinished")
    phases = rule.selector.phases
    if phases and about_ended and not any(phase in _ENDED for phase in phases):
        notes.add(
            keys[about_ended[0]],
            f"rule {rule.name}: {about_ended[0]} applies to ended pods, but the rule selects only "
            f"{' and '.join(phases)}: use phase: [Succeeded, Failed], or maxTerminating",
        )
    for place, exclude in zip(_excludes(draft), rule.exclude, strict=True):
        if covers(exclude, rule.selector):
            notes.add(
                place,
                f"rule {rule.name} excludes every pod that it selects: exclude fewer pods, or set enabled: false",
            )


def _excludes(draft: Draft) -> list[YamlNode]:
    node = draft.values.get("exclude")
    if node is None:
        return []
    return list(node.value) if isinstance(node, yaml.SequenceNode) else [node]

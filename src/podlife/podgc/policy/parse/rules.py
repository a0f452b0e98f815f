"""Parses the rules of a policy file and validates each on its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import yaml

from podlife.api.names import check_dns_label
from podlife.podgc.policy.model import Keep, KeepOrder, OwnerWait, Per, Rule, Selector
from podlife.podgc.policy.parse.coverage import covers
from podlife.podgc.policy.parse.numbers import read_duration, read_number
from podlife.podgc.policy.parse.selectors import read_selector
from podlife.podgc.policy.parse.values import (
    Field,
    one_of,
    read_list,
    read_mapping,
    read_text,
    read_truth,
    shown,
)
from podlife.podgc.policy.parse.yaml_nodes import Diagnostics, YamlNode, is_told

# Each rule is compared with each one before it.
MOST_RULES = 1000
_LIMITS = ("keep", "ttlAfterFinished", "maxTerminating")
_ENDED = ("Succeeded", "Failed")


@dataclass(slots=True)
class Draft:
    """A rule and its location; `rule` is None if it has errors."""

    name: str
    place: YamlNode
    rule: Rule | None = None
    # Value nodes by key.
    values: dict[str, YamlNode] = field(default_factory=dict)


def read_rules(notes: Diagnostics, node: YamlNode, path: str) -> list[Draft]:
    if isinstance(node, yaml.SequenceNode) and len(node.value) > MOST_RULES:
        notes.add(
            node,
            f"{path}: {len(node.value)} rules exceed the maximum ({MOST_RULES}): use patterns for many names",
        )
        return []
    return read_list(notes, node, path, _read_rule) or []


def _read_rule(notes: Diagnostics, node: YamlNode, path: str) -> Draft:
    before = len(notes.mistakes)
    found = read_mapping(notes, node, path, RULE_KEYS)
    values: dict[str, Any] = {
        key: _RULE[key](notes, value, f"{path}.{key}") for key, (_, value) in found.items()
    }
    if isinstance(node, yaml.MappingNode) and "name" not in found:
        notes.add(node, f"{path}: missing required field name")
    draft = Draft(values.get("name") or "", node, values={key: value for key, (_, value) in found.items()})
    # None is a value whose error `compose` has reported.
    if len(notes.mistakes) > before or is_told(node) or None in values.values():
        return draft
    rule = _made(values, node.start_mark.line + 1)
    _check(notes, rule, {key: key_node for key, (key_node, _) in found.items()}, draft)
    if len(notes.mistakes) == before:
        draft.rule = rule
    return draft


def _made(values: dict[str, Any], line: int) -> Rule:
    return Rule(
        name=values["name"],
        selector=values.get("select", Selector()),
        exclude=values.get("exclude", ()),
        keep=values.get("keep"),
        ttl_seconds=values.get("ttlAfterFinished"),
        is_either=values.get("collectWhen") == "any",
        max_terminating_seconds=values.get("maxTerminating"),
        wait_for_owner=values.get("waitForOwner"),
        is_on=values.get("enabled", True),
        line=line,
    )


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
            keys["collectWhen"],
            f"rule {rule.name}: collectWhen requires both keep and ttlAfterFinished",
        )
    if "waitForOwner" in keys and not about_ended:
        notes.add(
            keys["waitForOwner"],
            f"rule {rule.name}: waitForOwner requires keep or ttlAfterFinished",
        )
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


# Fields


def _read_name(notes: Diagnostics, node: YamlNode, path: str) -> str | None:
    text = read_text(notes, node, path)
    if text is None:
        return None
    if check_dns_label(text):
        notes.add(
            node,
            f"{path}: invalid name {shown(text)}: must be a lowercase RFC 1123 label, for example old-jobs",
        )
        return None
    return text


def _read_exclude(notes: Diagnostics, node: YamlNode, path: str) -> tuple[Selector, ...] | None:
    if isinstance(node, yaml.SequenceNode):
        found = read_list(notes, node, path, _read_excluded)
        return None if found is None else tuple(found)
    one = _read_excluded(notes, node, path)
    return None if one is None else (one,)


def _read_excluded(notes: Diagnostics, node: YamlNode, path: str) -> Selector | None:
    if isinstance(node, yaml.MappingNode) and not node.value:
        notes.add(
            node,
            f"{path} is empty and would exclude every pod: set fields, or omit it",
        )
        return None
    return read_selector(notes, node, path)


def _read_keep(notes: Diagnostics, node: YamlNode, path: str) -> Keep | None:
    if isinstance(node, yaml.ScalarNode) and node.value.isdecimal():
        notes.add(
            node,
            f"{path}: expected a mapping, got a single value: write {{count: {shown(node.value)[1:-1]}}}",
        )
        return None
    before = len(notes.mistakes)
    found = read_mapping(notes, node, path, KEEP_KEYS)
    values: dict[str, Any] = {
        key: _KEEP[key](notes, value, f"{path}.{key}") for key, (_, value) in found.items()
    }
    if isinstance(node, yaml.MappingNode) and "count" not in found:
        notes.add(node, f"{path}: missing required field count: for example {{count: 5, per: owner}}")
    if len(notes.mistakes) > before or is_told(node):
        return None
    per, order = values.get("per", Per.CLUSTER), values.get("orderBy", KeepOrder.COMPLETION)
    return Keep(values["count"], Per(per), KeepOrder(order))


def _read_count(notes: Diagnostics, node: YamlNode, path: str) -> int | None:
    return read_number(notes, node, path, 0, "use 0 to keep none")


def _read_per(notes: Diagnostics, node: YamlNode, path: str) -> str | None:
    return one_of(notes, node, path, [str(each) for each in Per])


def _read_order(notes: Diagnostics, node: YamlNode, path: str) -> str | None:
    return one_of(notes, node, path, [str(each) for each in KeepOrder])


def _read_when(notes: Diagnostics, node: YamlNode, path: str) -> str | None:
    return one_of(notes, node, path, ("all", "any"))


def _read_wait(notes: Diagnostics, node: YamlNode, path: str) -> OwnerWait | None:
    seconds = read_duration(notes, node, path)
    if seconds == 0:
        notes.add(node, f"{path}: must be greater than 0: set the maximum time to wait, or omit it")
        return None
    return None if seconds is None else OwnerWait(seconds)


_RULE: dict[str, Field] = {
    "name": _read_name,
    "select": read_selector,
    "exclude": _read_exclude,
    "keep": _read_keep,
    "ttlAfterFinished": read_duration,
    "collectWhen": _read_when,
    "maxTerminating": read_duration,
    "waitForOwner": _read_wait,
    "enabled": read_truth,
}
RULE_KEYS = tuple(_RULE)
_KEEP: dict[str, Field] = {"count": _read_count, "per": _read_per, "orderBy": _read_order}
KEEP_KEYS = tuple(_KEEP)

"""Rules out of a policy file, and what is wrong with each of them for itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import yaml

from podlife.api.names import check_dns_label
from podlife.podgc.policy.model import (
    Keep,
    Order,
    OwnerWait,
    Per,
    Rule,
    Selector,
)
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
from podlife.podgc.policy.parse.yaml_nodes import Node, Notes, is_told

__all__ = ["KEEP_KEYS", "MOST_RULES", "RULE_KEYS", "Draft", "read_rules"]

# Each is held against each before it.
MOST_RULES = 1000
_LIMITS = ("keep", "ttlAfterFinished", "maxTerminating")
_ENDED = ("Succeeded", "Failed")


@dataclass(slots=True)
class Draft:
    """A rule and where it stands; `rule` is None when it could not be read."""

    name: str
    place: Node
    rule: Rule | None = None
    # By key: the node of the value.
    values: dict[str, Node] = field(default_factory=dict)


def read_rules(notes: Notes, node: Node, path: str) -> list[Draft]:
    if isinstance(node, yaml.SequenceNode) and len(node.value) > MOST_RULES:
        notes.add(
            node, f"{path} are {len(node.value)}: write at most {MOST_RULES}, and patterns for many names"
        )
        return []
    return read_list(notes, node, path, _read_rule) or []


def _read_rule(notes: Notes, node: Node, path: str) -> Draft:
    before = len(notes.mistakes)
    found = read_mapping(notes, node, path, RULE_KEYS)
    values: dict[str, Any] = {
        key: _RULE[key](notes, value, f"{path}.{key}") for key, (_, value) in found.items()
    }
    if isinstance(node, yaml.MappingNode) and "name" not in found:
        notes.add(node, f"{path} has no name: write name, by which plan and events call it")
    draft = Draft(values.get("name") or "", node, values={key: value for key, (_, value) in found.items()})
    # None is a value whose mistake was noted earlier, by `compose`.
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


def _check(notes: Notes, rule: Rule, keys: dict[str, Node], draft: Draft) -> None:
    """What contradicts itself in a rule whose values are all right."""
    about_ended = [key for key in ("keep", "ttlAfterFinished") if key in keys]
    if not any(key in keys for key in _LIMITS):
        notes.add(
            draft.place,
            f"rule {rule.name} has no limit: write keep, ttlAfterFinished or maxTerminating; "
            "to leave pods alone name them under protect, or under exclude of a rule",
        )
        return
    if "collectWhen" in keys and len(about_ended) < 2:
        notes.add(
            keys["collectWhen"],
            f"rule {rule.name} has collectWhen, which is about keep and ttlAfterFinished together: "
            "write both of them, or leave it out",
        )
    if "waitForOwner" in keys and not about_ended:
        notes.add(
            keys["waitForOwner"],
            f"rule {rule.name} has waitForOwner, which is about pods that have ended: "
            "write keep or ttlAfterFinished too, or leave it out",
        )
    phases = rule.selector.phases
    if phases and about_ended and not any(phase in _ENDED for phase in phases):
        notes.add(
            keys[about_ended[0]],
            f"rule {rule.name} has {about_ended[0]}, which is about pods that have ended, "
            f"and selects {' and '.join(phases)} alone: write phase: [Succeeded, Failed], or maxTerminating",
        )
    for place, exclude in zip(_excludes(draft), rule.exclude, strict=True):
        if covers(exclude, rule.selector):
            notes.add(
                place,
                f"rule {rule.name} excludes every pod that it selects: exclude fewer, or write enabled: false",
            )


def _excludes(draft: Draft) -> list[Node]:
    node = draft.values.get("exclude")
    if node is None:
        return []
    return list(node.value) if isinstance(node, yaml.SequenceNode) else [node]


# What stands at each key


def _read_name(notes: Notes, node: Node, path: str) -> str | None:
    text = read_text(notes, node, path)
    if text is None:
        return None
    if check_dns_label(text):
        notes.add(
            node, f"{path} {shown(text)} is no name of a rule: write up to 63 of a-z, 0-9 and -, as old-jobs"
        )
        return None
    return text


def _read_exclude(notes: Notes, node: Node, path: str) -> tuple[Selector, ...] | None:
    if isinstance(node, yaml.SequenceNode):
        found = read_list(notes, node, path, _read_excluded)
        return None if found is None else tuple(found)
    one = _read_excluded(notes, node, path)
    return None if one is None else (one,)


def _read_excluded(notes: Notes, node: Node, path: str) -> Selector | None:
    if isinstance(node, yaml.MappingNode) and not node.value:
        notes.add(
            node,
            f"{path} says nothing and would exclude every pod: write what is left alone, or leave it out",
        )
        return None
    return read_selector(notes, node, path)


def _read_keep(notes: Notes, node: Node, path: str) -> Keep | None:
    if isinstance(node, yaml.ScalarNode) and node.value.isdecimal():
        notes.add(
            node,
            f"{path} is a single value and must be a mapping: write {{count: {shown(node.value)[1:-1]}}}",
        )
        return None
    before = len(notes.mistakes)
    found = read_mapping(notes, node, path, KEEP_KEYS)
    values: dict[str, Any] = {
        key: _KEEP[key](notes, value, f"{path}.{key}") for key, (_, value) in found.items()
    }
    if isinstance(node, yaml.MappingNode) and "count" not in found:
        notes.add(node, f"{path} has no count: write how many stay, as {{count: 5, per: owner}}")
    if len(notes.mistakes) > before or is_told(node):
        return None
    per, order = values.get("per", Per.CLUSTER), values.get("orderBy", Order.COMPLETION)
    return Keep(values["count"], Per(per), Order(order))


def _read_count(notes: Notes, node: Node, path: str) -> int | None:
    return read_number(notes, node, path, 0, "write 0 to keep none")


def _read_per(notes: Notes, node: Node, path: str) -> str | None:
    return one_of(notes, node, path, [str(each) for each in Per])


def _read_order(notes: Notes, node: Node, path: str) -> str | None:
    return one_of(notes, node, path, [str(each) for each in Order])


def _read_when(notes: Notes, node: Node, path: str) -> str | None:
    return one_of(notes, node, path, ("all", "any"))


def _read_wait(notes: Notes, node: Node, path: str) -> OwnerWait | None:
    seconds = read_duration(notes, node, path)
    if seconds == 0:
        notes.add(node, f"{path} of no time waits for nobody: write how long at most, or leave it out")
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

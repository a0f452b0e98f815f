"""Parses a policy file.

A policy is used as a whole or not at all: anything invalid, contradictory or ambiguous raises `PolicyError`, with one
line per error: FILE:LINE:COLUMN, what is wrong, and what to write instead. Size and depth are bounded, so that a
running collector can parse it. `engine` and `guards` define what a policy means.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import yaml

from podlife.podgc.policy.model import Guards, Policy, Protection
from podlife.podgc.policy.parse.coverage import covers, pattern_covers
from podlife.podgc.policy.parse.guards import read_guards
from podlife.podgc.policy.parse.numbers import read_duration, read_number
from podlife.podgc.policy.parse.rules import Draft, read_rules
from podlife.podgc.policy.parse.selectors import read_annotation, read_labels, read_namespace
from podlife.podgc.policy.parse.values import (
    Field,
    read_fields,
    read_list,
    read_mapping,
    read_text,
    read_truth,
    shown,
)
from podlife.podgc.policy.parse.yaml_nodes import Diagnostics, Mistake, PolicyError, YamlNode, compose
from podlife.podgc.reasons import Reason

API_VERSION = "podlife.dev/v1"
KIND = "PodGCPolicy"
MOST_BYTES = 1 << 20


def load_policy(path: Path) -> Policy:
    """Parse a policy file. Raises PolicyError."""
    return read_policy_bytes(read_policy_file(path), str(path))


def read_policy_file(path: Path) -> bytes:
    """The contents of a file. Raises PolicyError if it cannot be read."""
    name = str(path)
    try:
        # Opening a pipe without a writer would block.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise _whole(name, "not a regular file")
            return file.read(MOST_BYTES + 1)
    except IsADirectoryError:
        raise _whole(name, "is a directory") from None
    except OSError as error:
        raise _whole(name, f"cannot read file: {error.strerror or error}") from None
    except ValueError as error:
        raise _whole(shown(name), f"invalid file name: {error}") from None


def read_policy_bytes(data: bytes, name: str) -> Policy:
    """As `read_policy`, for the contents of a file."""
    if len(data) > MOST_BYTES:
        raise _whole(name, f"file exceeds the maximum size ({MOST_BYTES >> 20} MiB)")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line, column = before.count(b"\n") + 1, len(before) - (before.rfind(b"\n") + 1) + 1
        raise PolicyError(name, [Mistake(line, column, "invalid UTF-8: save the file as UTF-8")]) from None
    return read_policy(text, name)


def read_policy(text: str, name: str) -> Policy:
    """Parse a policy; `name` is its file name in messages. Raises PolicyError."""
    notes = Diagnostics()
    if len(text) > MOST_BYTES:
        raise _whole(name, f"file exceeds the maximum size ({MOST_BYTES >> 20} MiB)")
    root = compose(text, notes)
    if isinstance(root, yaml.ScalarNode) and not root.value:
        root = None
    if root is None and not notes.mistakes:
        notes.mistakes.append(Mistake(1, 1, f"empty policy: start with apiVersion: {API_VERSION}"))
    policy = _read_root(notes, root) if root is not None else Policy()
    if notes.mistakes:
        raise PolicyError(name, notes.mistakes)
    return policy


def _whole(name: str, text: str) -> PolicyError:
    return PolicyError(name, [Mistake(0, 0, text)])


def _read_root(notes: Diagnostics, root: YamlNode) -> Policy:
    found = read_mapping(notes, root, "", ROOT_KEYS)
    if not isinstance(root, yaml.MappingNode):
        return Policy()
    for key, value in (("apiVersion", API_VERSION), ("kind", KIND)):
        if key not in found:
            notes.add(root, f"missing required field {key}: write {key}: {value}")
        elif (text := read_text(notes, found[key][1], key)) is not None and text != value:
            notes.add(found[key][1], f"unsupported {key} {shown(text)}: expected {value}")
    parts: dict[str, Any] = {key: _PARTS[key](notes, found[key][1], key) for key in _PARTS if key in found}
    drafts: list[Draft] = parts.get("rules", [])
    _check_names(notes, drafts)
    _check_reach(notes, drafts)
    if "protect" in found:
        _check_protected(notes, drafts, found["protect"][1])
    return Policy(
        rules=tuple(draft.rule for draft in drafts if draft.rule is not None),
        protection=parts.get("protect", Protection()),
        guards=parts.get("guards", Guards()),
        **parts.get("upstream", {}),
    )


# Upstream's reasons


def _read_upstream(notes: Diagnostics, node: YamlNode, path: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    switches: dict[Reason, bool] = {}
    for key, (_, value_node) in read_mapping(notes, node, path, UPSTREAM).items():
        reason, fields = UPSTREAM[key]
        said: dict[str, Any] = read_fields(notes, value_node, f"{path}.{key}", fields)
        if isinstance(value_node, yaml.MappingNode) and not value_node.value:
            notes.add(value_node, f"{path}.{key} is empty: set {', '.join(fields)}, or omit it")
        if "enabled" in said:
            switches[reason] = said["enabled"]
        if "threshold" in said:
            values["threshold"] = said["threshold"]
        if "quarantine" in said:
            values["quarantine_seconds"] = said["quarantine"]
    if switches:
        values["collect"] = frozenset(reason for reason in Reason if switches.get(reason, True))
    return values


def _read_threshold(notes: Diagnostics, node: YamlNode, path: str) -> int | None:
    return read_number(notes, node, path, 0, "use 0 or enabled: false to keep all pods")


UPSTREAM: dict[str, tuple[Reason, dict[str, Field]]] = {
    "terminated": (Reason.TERMINATED, {"enabled": read_truth, "threshold": _read_threshold}),
    "outOfService": (Reason.OUT_OF_SERVICE, {"enabled": read_truth}),
    "orphaned": (Reason.ORPHANED, {"enabled": read_truth, "quarantine": read_duration}),
    "unscheduled": (Reason.UNSCHEDULED, {"enabled": read_truth}),
}


# Protection


def _read_protection(notes: Diagnostics, node: YamlNode, path: str) -> Protection:
    values: dict[str, Any] = read_fields(notes, node, path, _PROTECTION)
    most = values.pop("maxKeepUntil", None)
    return Protection(**values, max_keep_until_seconds=most)


def _read_protected_namespaces(notes: Diagnostics, node: YamlNode, path: str) -> tuple[str, ...]:
    return tuple(read_list(notes, node, path, read_namespace) or ())


def _read_protected_labels(notes: Diagnostics, node: YamlNode, path: str) -> tuple[Any, ...]:
    return tuple(read_list(notes, node, path, read_labels) or ())


def _read_protected_annotations(notes: Diagnostics, node: YamlNode, path: str) -> tuple[Any, ...]:
    return tuple(read_list(notes, node, path, read_annotation) or ())


_PROTECTION: dict[str, Field] = {
    "namespaces": _read_protected_namespaces,
    "labels": _read_protected_labels,
    "annotations": _read_protected_annotations,
    "maxKeepUntil": read_duration,
}
PROTECTION_KEYS = tuple(_PROTECTION)

_PARTS: dict[str, Any] = {
    "upstream": _read_upstream,
    "protect": _read_protection,
    "rules": read_rules,
    "guards": read_guards,
}
ROOT_KEYS = ("apiVersion", "kind", *_PARTS)


# Contradictions between rules


def _check_names(notes: Diagnostics, drafts: list[Draft]) -> None:
    first: dict[str, int] = {}
    for draft in drafts:
        if not draft.name:
            continue
        place = draft.values["name"]
        line = place.start_mark.line + 1
        if first.setdefault(draft.name, line) != line:
            notes.add(
                place,
                f"duplicate rule name {draft.name}, first in line {first[draft.name]}",
            )


def _check_reach(notes: Diagnostics, drafts: list[Draft]) -> None:
    """A pod has the first rule that selects it: a later rule that selects no other pods never applies."""
    before: list[Draft] = []
    for draft in drafts:
        rule = draft.rule
        if rule is None or not rule.is_on:
            continue
        for earlier in before:
            assert earlier.rule is not None
            if covers(earlier.rule.selector, rule.selector):
                notes.add(
                    draft.place,
                    f"rule {rule.name} never applies: rule {earlier.name} in line {earlier.rule.line} "
                    "selects all of its pods: move it before that rule, or merge the two",
                )
                break
        before.append(draft)


def _check_protected(notes: Diagnostics, drafts: list[Draft], protect: YamlNode) -> None:
    """A rule for a protected namespace is an error, in the rule or in the protection."""
    protected = _scalars(_at(protect, "namespaces"))
    for draft in drafts:
        namespaces = _at(draft.values.get("select"), "namespaces")
        names = namespaces if isinstance(namespaces, yaml.SequenceNode) else _at(namespaces, "names")
        for name in _scalars(names):
            for pattern in protected:
                if pattern_covers(pattern.value, name.value):
                    line = pattern.start_mark.line + 1
                    notes.add(
                        name,
                        f"rule {draft.name or '(unnamed)'} selects the protected namespace {shown(name.value)}: "
                        f"line {line} protects {shown(pattern.value)}; remove one of the two",
                    )
                    break


def _at(node: YamlNode | None, key: str) -> YamlNode | None:
    if not isinstance(node, yaml.MappingNode):
        return None
    return next((value for name, value in node.value if name.value == key), None)


def _scalars(node: YamlNode | None) -> list[yaml.ScalarNode]:
    if not isinstance(node, yaml.SequenceNode):
        return []
    return [each for each in node.value if isinstance(each, yaml.ScalarNode)]

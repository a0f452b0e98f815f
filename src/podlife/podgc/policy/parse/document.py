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

from podlife.api.yaml_fields import Diagnostics, Mistake, Read, YamlNode
from podlife.podgc.policy.model import Guards, Policy, Protection
from podlife.podgc.policy.parse.coverage import covers, pattern_covers
from podlife.podgc.policy.parse.guards import read_guards
from podlife.podgc.policy.parse.numbers import DURATION, integer
from podlife.podgc.policy.parse.rules import Draft, read_rules
from podlife.podgc.policy.parse.selectors import ANNOTATION, LABELS, NAMESPACE
from podlife.podgc.policy.parse.values import (
    BOOLEAN,
    Field,
    Fields,
    list_of,
    read_fields,
    read_mapping,
    shown,
    text,
)
from podlife.podgc.policy.parse.yaml_nodes import PolicyError, compose
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
                raise _file_error(name, "not a regular file")
            return file.read(MOST_BYTES + 1)
    except IsADirectoryError:
        raise _file_error(name, "is a directory") from None
    except OSError as error:
        raise _file_error(name, f"cannot read file: {error.strerror or error}") from None
    except ValueError as error:
        raise _file_error(shown(name), f"invalid file name: {error}") from None


def read_policy_bytes(data: bytes, name: str) -> Policy:
    """As `read_policy`, for the contents of a file."""
    if len(data) > MOST_BYTES:
        raise _file_error(name, f"file exceeds the maximum size ({MOST_BYTES >> 20} MiB)")
    try:
        document = data.decode()
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line, column = before.count(b"\n") + 1, len(before) - (before.rfind(b"\n") + 1) + 1
        raise PolicyError(name, [Mistake(line, column, "invalid UTF-8: save the file as UTF-8")]) from None
    return read_policy(document, name)


def read_policy(document: str, name: str) -> Policy:
    """Parse a policy; `name` is its file name in messages. Raises PolicyError."""
    notes = Diagnostics()
    if len(document) > MOST_BYTES:
        raise _file_error(name, f"file exceeds the maximum size ({MOST_BYTES >> 20} MiB)")
    root = compose(document, notes)
    if isinstance(root, yaml.ScalarNode) and not root.value:
        root = None
    if root is None and not notes.mistakes:
        notes.mistakes.append(Mistake(1, 1, f"empty policy: start with apiVersion: {API_VERSION}"))
    policy = _read_root(notes, root) if root is not None else Policy()
    if notes.mistakes:
        raise PolicyError(name, notes.mistakes)
    return policy


def _file_error(name: str, text: str) -> PolicyError:
    return PolicyError(name, [Mistake(0, 0, text)])


def _read_root(notes: Diagnostics, root: YamlNode) -> Policy:
    found = read_mapping(notes, root, "", _ROOT_KEYS)
    if not isinstance(root, yaml.MappingNode):
        return Policy()
    for key, value in (("apiVersion", API_VERSION), ("kind", KIND)):
        if key not in found:
            notes.add(root, f"missing required field {key}: write {key}: {value}")
        elif (given := text(str)(notes, found[key][1], key)) is not None and given != value:
            notes.add(found[key][1], f"unsupported {key} {shown(given)}: expected {value}")
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

_ENABLED = Field("enabled", BOOLEAN, "Whether to collect pods for this reason.", default=True)
_THRESHOLD = Field(
    "threshold",
    integer(0, "use 0 or enabled: false to keep all pods"),
    "Maximum number of ended pods that no rule selects; 0 keeps all.",
)
_QUARANTINE = Field("quarantine_seconds", DURATION, "How long a node must be missing.")
UPSTREAM: dict[str, tuple[Reason, str, Fields]] = {
    "terminated": (Reason.TERMINATED, "Too many ended pods.", {"enabled": _ENABLED, "threshold": _THRESHOLD}),
    "outOfService": (Reason.OUT_OF_SERVICE, "Terminating on an out-of-service node.", {"enabled": _ENABLED}),
    "orphaned": (
        Reason.ORPHANED,
        "The node no longer exists.",
        {"enabled": _ENABLED, "quarantine": _QUARANTINE},
    ),
    "unscheduled": (Reason.UNSCHEDULED, "Terminating and never scheduled.", {"enabled": _ENABLED}),
}
"""The reason, its description and its fields."""


def _read_upstream(notes: Diagnostics, node: YamlNode, path: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    switches: dict[Reason, bool] = {}
    for key, (_, value_node) in read_mapping(notes, node, path, UPSTREAM).items():
        reason, _, fields = UPSTREAM[key]
        _, given = read_fields(notes, value_node, f"{path}.{key}", fields)
        if isinstance(value_node, yaml.MappingNode) and not value_node.value:
            notes.add(value_node, f"{path}.{key} is empty: set {', '.join(fields)}, or omit it")
        if "enabled" in given:
            switches[reason] = given.pop("enabled")
        values |= given
    if switches:
        values["collect"] = frozenset(reason for reason in Reason if switches.get(reason, True))
    return values


# Protection

PROTECTION: Fields = {
    "namespaces": Field("namespaces", list_of(NAMESPACE), "All pods of these namespaces."),
    "labels": Field("labels", list_of(LABELS), "Pods that match one of these selectors."),
    "annotations": Field("annotations", list_of(ANNOTATION), "Pods with one of these annotations."),
    "maxKeepUntil": Field(
        "max_keep_until_seconds",
        DURATION,
        "Maximum time after its end that the annotation podlife.dev/keep-until keeps a pod; 0 ignores it.",
    ),
}


def _read_protection(notes: Diagnostics, node: YamlNode, path: str) -> Protection:
    return Protection(**read_fields(notes, node, path, PROTECTION)[1])


_PARTS: dict[str, Read] = {
    "upstream": _read_upstream,
    "protect": _read_protection,
    "rules": read_rules,
    "guards": read_guards,
}
_ROOT_KEYS = ("apiVersion", "kind", *_PARTS)


# Contradictions between rules


def _check_names(notes: Diagnostics, drafts: list[Draft]) -> None:
    first: dict[str, int] = {}
    for draft in drafts:
        if not draft.name:
            continue
        place = draft.values["name"]
        line = place.start_mark.line + 1
        if first.setdefault(draft.name, line) != line:
            notes.add(place, f"duplicate rule name {draft.name}, first in line {first[draft.name]}")


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

"""A policy out of its file, or everything that is wrong with it.

A policy is used whole or not at all: whatever cannot be read, contradicts itself or could be read in two ways makes a
`PolicyError`, which has a line for each mistake: FILE:LINE:COLUMN, what is wrong, and what to write instead. Reading
has bounds (the size of the file, its depth), so that it can be done while a collector runs. What a policy means is
for `engine` and `guards`.
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
from podlife.podgc.policy.parse.yaml_nodes import (
    Mistake,
    Node,
    Notes,
    PolicyError,
    compose,
)
from podlife.podgc.settings import Reason

__all__ = [
    "API_VERSION",
    "KIND",
    "MOST_BYTES",
    "PolicyError",
    "load_policy",
    "read_policy",
    "read_policy_bytes",
    "read_policy_file",
]

API_VERSION = "podlife.dev/v1"
KIND = "PodGCPolicy"
MOST_BYTES = 1 << 20


def load_policy(path: Path) -> Policy:
    """The policy in a file; raises PolicyError."""
    return read_policy_bytes(read_policy_file(path), str(path))


def read_policy_file(path: Path) -> bytes:
    """What stands in the file; raises PolicyError when it is none, cannot be read, or is too large."""
    name = str(path)
    try:
        # A pipe that nobody writes to would be waited for.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise _whole(name, "this is no regular file: name a file with a policy")
            return file.read(MOST_BYTES + 1)
    except IsADirectoryError:
        raise _whole(name, "this is a folder: name a file in it") from None
    except OSError as error:
        raise _whole(name, f"cannot be read: {error.strerror or error}: name a file that can") from None
    except ValueError as error:
        raise _whole(shown(name), f"is no name of a file: {error}") from None


def read_policy_bytes(data: bytes, name: str) -> Policy:
    """As `read_policy`, for what a file has in it."""
    if len(data) > MOST_BYTES:
        raise _whole(name, f"is larger than a policy ever is: write at most {MOST_BYTES >> 20} MiB")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line, column = before.count(b"\n") + 1, len(before) - (before.rfind(b"\n") + 1) + 1
        raise PolicyError(name, [Mistake(line, column, "this is no UTF-8: save the file as UTF-8")]) from None
    return read_policy(text, name)


def read_policy(text: str, name: str) -> Policy:
    """The policy that the text says; raises PolicyError, in which the text is called by its name."""
    notes = Notes()
    if len(text) > MOST_BYTES:
        raise _whole(name, f"is larger than a policy ever is: write at most {MOST_BYTES >> 20} MiB")
    root = compose(text, notes)
    if isinstance(root, yaml.ScalarNode) and not root.value:
        root = None
    if root is None and not notes.mistakes:
        notes.mistakes.append(Mistake(1, 1, f"there is nothing here: begin with apiVersion: {API_VERSION}"))
    policy = _read_root(notes, root) if root is not None else Policy()
    if notes.mistakes:
        raise PolicyError(name, notes.mistakes)
    return policy


def _whole(name: str, text: str) -> PolicyError:
    return PolicyError(name, [Mistake(0, 0, text)])


def _read_root(notes: Notes, root: Node) -> Policy:
    found = read_mapping(notes, root, "", ROOT_KEYS)
    if not isinstance(root, yaml.MappingNode):
        return Policy()
    for key, value in (("apiVersion", API_VERSION), ("kind", KIND)):
        if key not in found:
            notes.add(root, f"{key} is missing: write {key}: {value}")
        elif (text := read_text(notes, found[key][1], key)) is not None and text != value:
            notes.add(found[key][1], f"{key} {shown(text)} is not known: write {value}")
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


def _read_upstream(notes: Notes, node: Node, path: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    switches: dict[Reason, bool] = {}
    for key, (_, value_node) in read_mapping(notes, node, path, UPSTREAM).items():
        reason, fields = UPSTREAM[key]
        said: dict[str, Any] = read_fields(notes, value_node, f"{path}.{key}", fields)
        if isinstance(value_node, yaml.MappingNode) and not value_node.value:
            notes.add(value_node, f"{path}.{key} says nothing: write {', '.join(fields)}, or leave it out")
        if "enabled" in said:
            switches[reason] = said["enabled"]
        if "threshold" in said:
            values["threshold"] = said["threshold"]
        if "quarantine" in said:
            values["quarantine_seconds"] = said["quarantine"]
    if switches:
        values["collect"] = frozenset(reason for reason in Reason if switches.get(reason, True))
    return values


def _read_threshold(notes: Notes, node: Node, path: str) -> int | None:
    return read_number(notes, node, path, 0, "write 0, or enabled: false, to keep all of them")


UPSTREAM: dict[str, tuple[Reason, dict[str, Field]]] = {
    "terminated": (Reason.TERMINATED, {"enabled": read_truth, "threshold": _read_threshold}),
    "outOfService": (Reason.OUT_OF_SERVICE, {"enabled": read_truth}),
    "orphaned": (Reason.ORPHANED, {"enabled": read_truth, "quarantine": read_duration}),
    "unscheduled": (Reason.UNSCHEDULED, {"enabled": read_truth}),
}


# Protection


def _read_protection(notes: Notes, node: Node, path: str) -> Protection:
    values: dict[str, Any] = read_fields(notes, node, path, _PROTECTION)
    most = values.pop("maxKeepUntil", None)
    return Protection(**values, max_keep_until_seconds=most)


def _read_protected_namespaces(notes: Notes, node: Node, path: str) -> tuple[str, ...]:
    return tuple(read_list(notes, node, path, read_namespace) or ())


def _read_protected_labels(notes: Notes, node: Node, path: str) -> tuple[Any, ...]:
    return tuple(read_list(notes, node, path, read_labels) or ())


def _read_protected_annotations(notes: Notes, node: Node, path: str) -> tuple[Any, ...]:
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


# What contradicts itself between rules


def _check_names(notes: Notes, drafts: list[Draft]) -> None:
    first: dict[str, int] = {}
    for draft in drafts:
        if not draft.name:
            continue
        place = draft.values["name"]
        line = place.start_mark.line + 1
        if first.setdefault(draft.name, line) != line:
            notes.add(
                place,
                f"a rule {draft.name} is there already, in line {first[draft.name]}: write another name",
            )


def _check_reach(notes: Notes, drafts: list[Draft]) -> None:
    """A pod has the first rule that selects it: a later one that selects no others is never anybody's."""
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
                    f"rule {rule.name} never has a pod: rule {earlier.name} in line {earlier.rule.line} "
                    "takes every one that it selects; write this one before it, or both limits into one rule",
                )
                break
        before.append(draft)


def _check_protected(notes: Notes, drafts: list[Draft], protect: Node) -> None:
    """A rule for a namespace that nothing may touch: one of the two is a mistake, and nobody knows which."""
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
                        f"rule {draft.name or '(without a name)'} selects a protected namespace, {shown(name.value)}: "
                        f"line {line} protects {shown(pattern.value)}; take it out of one of the two",
                    )
                    break


def _at(node: Node | None, key: str) -> Node | None:
    if not isinstance(node, yaml.MappingNode):
        return None
    return next((value for name, value in node.value if name.value == key), None)


def _scalars(node: Node | None) -> list[yaml.ScalarNode]:
    if not isinstance(node, yaml.SequenceNode):
        return []
    return [each for each in node.value if isinstance(each, yaml.ScalarNode)]

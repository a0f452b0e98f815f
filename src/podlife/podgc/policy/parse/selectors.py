"""Parses selectors, name patterns, labels and annotations of a policy file.

Patterns that cannot match any name are refused, because they would select nothing without notice: `team-.*` instead of
`team-*`, `job` instead of Job, Deployment instead of the ReplicaSet that owns its pods.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from typing import Any

import yaml

from podlife.api.names import check_dns_label, check_dns_subdomain, check_label_key
from podlife.api.selectors import LabelSelector, parse_label_selector
from podlife.podgc.policy.model import Selector
from podlife.podgc.policy.parse.numbers import read_number
from podlife.podgc.policy.parse.values import one_of, read_list, read_mapping, read_text, shown
from podlife.podgc.policy.parse.yaml_nodes import Diagnostics, YamlNode, is_told

PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
SELECT_KEYS = ("namespaces", "labels", "ownerKind", "node", "phase", "reason", "exitCode")
_NAMESPACE_KEYS = ("names", "labels")
_MOST_EXIT_CODE = 2**31 - 1

# Kinds that own pods, and kinds that only own their owners.
_OWNERS = (
    "DaemonSet",
    "Job",
    "YamlNode",
    "PipelineRun",
    "ReplicaSet",
    "ReplicationController",
    "StatefulSet",
    "TaskRun",
    "Workflow",
)
_ABOVE = {"deployment": "ReplicaSet", "cronjob": "Job", "cronworkflow": "Workflow"}


def read_selector(notes: Diagnostics, node: YamlNode, path: str) -> Selector | None:
    before = len(notes.mistakes)
    found = read_mapping(notes, node, path, SELECT_KEYS)
    values: dict[str, Any] = {
        key: _FIELDS[key](notes, value, f"{path}.{key}") for key, (_, value) in found.items()
    }
    if len(notes.mistakes) > before or is_told(node):
        return None
    names, namespace_labels = values.get("namespaces", ((), None))
    return Selector(
        namespaces=names,
        namespace_labels=namespace_labels,
        labels=values.get("labels"),
        owner_kinds=values.get("ownerKind", ()),
        nodes=values.get("node", ()),
        phases=values.get("phase", ()),
        reasons=values.get("reason", ()),
        exit_codes=frozenset(values.get("exitCode", ())),
    )


def read_labels(notes: Diagnostics, node: YamlNode, path: str) -> LabelSelector | None:
    """A label selector as for kubectl -l; one that matches everything or nothing is an error."""
    if isinstance(node, yaml.MappingNode):
        notes.add(node, f"{path}: expected a string as for kubectl -l, got a mapping: write {_as_text(node)}")
        return None
    text = read_text(notes, node, path)
    if text is None:
        return None
    try:
        selector = parse_label_selector(text)
    except ValueError as error:
        why = " ".join(str(error).split()).removeprefix("unable to parse requirement: ")
        notes.add(
            node,
            f'{path}: invalid label selector {shown(text)}: {why[:200]}: for example "app in (a, b),tier!=db"',
        )
        return None
    if selector.is_empty:
        notes.add(node, f"{path}: must not be empty, it would select everything: set labels, or omit it")
        return None
    if (key := _contradiction(selector)) is not None:
        notes.add(
            node,
            f"{path}: label selector {shown(text)} matches nothing: contradicting requirements for {key}",
        )
        return None
    return selector


def read_namespace(notes: Diagnostics, node: YamlNode, path: str) -> str | None:
    """A namespace, or a pattern."""
    return _read_pattern(notes, node, path, "[-a-z0-9*?]+", 63, _check_namespace)


def read_annotation(notes: Diagnostics, node: YamlNode, path: str) -> tuple[str, str | None] | None:
    """KEY, or KEY=VALUE."""
    text = read_text(notes, node, path)
    if text is None:
        return None
    key, sign, value = text.partition("=")
    if not key or check_label_key(key.lower()):
        notes.add(
            node,
            f"{path}: invalid annotation {shown(text)}: expected KEY or KEY=VALUE, for example example.com/hold=true",
        )
        return None
    return key, value if sign else None


def _as_text(node: yaml.MappingNode) -> str:
    pairs = [
        f"{key.value}={value.value}"
        for key, value in node.value
        if isinstance(key, yaml.ScalarNode) and isinstance(value, yaml.ScalarNode)
    ]
    text = ",".join(pairs)
    is_good = len(pairs) == len(node.value) and pairs and text.isprintable() and len(text) <= 100
    return f'"{text}"' if is_good else '"app=web"'


def _contradiction(selector: LabelSelector) -> str | None:
    """A label whose requirements contradict each other."""
    wanted: dict[str, set[str]] = {}
    present, absent = set(), set()
    for requirement in selector.requirements:
        key, values = requirement.key, set(requirement.values)
        if requirement.operator == "!":
            absent.add(key)
            continue
        if requirement.operator in ("=", "==", "in"):
            wanted[key] = wanted.get(key, values) & values
        if requirement.operator not in ("notin", "!="):
            present.add(key)
    for requirement in selector.requirements:
        if requirement.operator in ("notin", "!=") and requirement.key in wanted:
            wanted[requirement.key] -= set(requirement.values)
    return next((key for key in sorted(present) if key in absent or wanted.get(key) == set()), None)


# Name patterns


def _read_pattern(
    notes: Diagnostics, node: YamlNode, path: str, signs: str, most: int, check: Callable[[str], str]
) -> str | None:
    """A name with optional wildcards * and ?; `check` validates one that has none."""
    text = read_text(notes, node, path)
    if text is None:
        return None
    wrong = ""
    if not text:
        wrong = "must not be empty"
    elif len(text) > most:
        wrong = f"must be no more than {most} characters"
    elif not re.fullmatch(signs, text):
        wrong = _wrong_sign(text, signs)
    elif not ("*" in text or "?" in text):
        wrong = check(text)
    if wrong:
        notes.add(node, f"{path}: invalid name or pattern {shown(text)}: {wrong}")
        return None
    return text


def _wrong_sign(text: str, signs: str) -> str:
    if ".*" in text and re.fullmatch(signs, plain := text.replace(".*", "*").strip("^$")):
        return f"regular expressions are not supported: write {plain}"
    if re.fullmatch(signs, text.lower()):
        return f"must be lower case: write {text.lower()}"
    if text.startswith("!"):
        return "negation is not supported: use exclude"
    if any(sign in text for sign in "[]{}|"):
        return "only the wildcards * and ? are supported: write several names as several items"
    sign = next(each for each in text if not re.fullmatch(signs, each))
    return f"invalid character {sign!r}"


def _check_namespace(name: str) -> str:
    return "" if not check_dns_label(name) else "must start and end with an alphanumeric character"


def _check_node(name: str) -> str:
    return "" if not check_dns_subdomain(name) else "must start and end with an alphanumeric character"


def _check_owner(name: str) -> str:
    if name == "none":
        return ""
    if (instead := _ABOVE.get(name.lower())) is not None:
        return f"a {name} does not own pods directly: write {instead}"
    known = {each.lower(): each for each in _OWNERS}
    if name.lower() == "none":
        return "write none in lower case for pods without a controller"
    if name in _OWNERS:
        return ""
    if name.lower() in known:
        return f"write {known[name.lower()]}"
    if name[0].islower():
        close = difflib.get_close_matches(name.lower(), known, 1)
        return f"kinds start with a capital letter: write {known[close[0]] if close else name[0].upper() + name[1:]}"
    return ""


def _no_check(name: str) -> str:
    del name
    return ""


def _read_node(notes: Diagnostics, node: YamlNode, path: str) -> str | None:
    return _read_pattern(notes, node, path, "[-.a-z0-9*?]+", 253, _check_node)


def _read_owner(notes: Diagnostics, node: YamlNode, path: str) -> str | None:
    return _read_pattern(notes, node, path, "[A-Za-z0-9*?]+", 63, _check_owner)


def _read_reason(notes: Diagnostics, node: YamlNode, path: str) -> str | None:
    return _read_pattern(notes, node, path, r"[^\s\[\]{}|^$!]+", 128, _no_check)


def _read_phase(notes: Diagnostics, node: YamlNode, path: str) -> str | None:
    return one_of(notes, node, path, PHASES)


def _read_exit_code(notes: Diagnostics, node: YamlNode, path: str) -> int | None:
    code = read_number(notes, node, path, -_MOST_EXIT_CODE - 1)
    if code is not None and code > _MOST_EXIT_CODE:
        notes.add(node, f"{path}: invalid exit code {code}: expected 0 to 255")
        return None
    return code


def _read_namespaces(
    notes: Diagnostics, node: YamlNode, path: str
) -> tuple[tuple[str, ...], LabelSelector | None] | None:
    """A list of names, or names and labels."""
    if isinstance(node, yaml.SequenceNode):
        names = read_list(notes, node, path, read_namespace, _EMPTY)
        return None if names is None else (tuple(names), None)
    if not isinstance(node, yaml.MappingNode):
        read_list(notes, node, path, read_namespace, _EMPTY)
        return None
    found = read_mapping(notes, node, path, _NAMESPACE_KEYS)
    names, labels = None, None
    if "names" in found:
        names = read_list(notes, found["names"][1], f"{path}.names", read_namespace, _EMPTY)
    if "labels" in found:
        labels = read_labels(notes, found["labels"][1], f"{path}.labels")
    if not found:
        notes.add(node, f"{path} is empty: set names or labels, or omit it to match every namespace")
    return tuple(names or ()), labels


_EMPTY = "omit it to match everything"


def _listed(
    read: Callable[[Diagnostics, YamlNode, str], object],
) -> Callable[[Diagnostics, YamlNode, str], tuple[object, ...]]:
    def field(notes: Diagnostics, node: YamlNode, path: str) -> tuple[object, ...]:
        return tuple(read_list(notes, node, path, read, _EMPTY) or ())

    return field


# `read_selector` assigns the values.
_FIELDS: dict[str, Callable[[Diagnostics, YamlNode, str], object]] = {
    "namespaces": _read_namespaces,
    "labels": read_labels,
    "ownerKind": _listed(_read_owner),
    "node": _listed(_read_node),
    "phase": _listed(_read_phase),
    "reason": _listed(_read_reason),
    "exitCode": _listed(_read_exit_code),
}

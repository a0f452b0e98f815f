"""Selectors, name patterns, labels and annotations of a policy file.

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
from podlife.api.yaml_fields import Diagnostics, YamlNode
from podlife.podgc.policy.model import Selector
from podlife.podgc.policy.parse.numbers import read_integer
from podlife.podgc.policy.parse.values import (
    Field,
    Fields,
    InvalidScalarError,
    ValueType,
    choice,
    fields_schema,
    list_of,
    read_fields,
    reference,
    scalar,
    shown,
    text,
    text_schema,
    write_fields,
)
from podlife.podgc.policy.parse.yaml_nodes import is_reported

PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
_EMPTY = "omit it to match everything"
_MAX_EXIT_CODE = 2**31 - 1

# Kinds that own pods, and kinds that only own their owners.
_OWNERS = (
    "DaemonSet",
    "Job",
    "Node",
    "PipelineRun",
    "ReplicaSet",
    "ReplicationController",
    "StatefulSet",
    "TaskRun",
    "Workflow",
)
_ABOVE = {"deployment": "ReplicaSet", "cronjob": "Job", "cronworkflow": "Workflow"}


# Labels and annotations


def _read_label_text(words: str) -> LabelSelector:
    """A label selector as for kubectl -l; one that matches everything or nothing is an error."""
    try:
        selector = parse_label_selector(words)
    except ValueError as error:
        why = " ".join(str(error).split()).removeprefix("unable to parse requirement: ")
        raise InvalidScalarError(
            f'invalid label selector {shown(words)}: {why[:200]}: for example "app in (a, b),tier!=db"'
        ) from None
    if selector.is_empty:
        raise InvalidScalarError("must not be empty, it would select everything: set labels, or omit it")
    if (key := _contradiction(selector)) is not None:
        raise InvalidScalarError(
            f"label selector {shown(words)} matches nothing: contradicting requirements for {key}"
        )
    return selector


def _read_labels(notes: Diagnostics, node: YamlNode, path: str) -> LabelSelector | None:
    if isinstance(node, yaml.MappingNode):
        notes.add(node, f"{path}: expected a string as for kubectl -l, got a mapping: write {_as_text(node)}")
        return None
    return text(_read_label_text)(notes, node, path)


def _as_text(node: yaml.MappingNode) -> str:
    pairs = [
        f"{key.value}={value.value}"
        for key, value in node.value
        if isinstance(key, yaml.ScalarNode) and isinstance(value, yaml.ScalarNode)
    ]
    joined = ",".join(pairs)
    is_usable = len(pairs) == len(node.value) and pairs and joined.isprintable() and len(joined) <= 100
    return f'"{joined}"' if is_usable else '"app=web"'


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


def _read_annotation(words: str) -> tuple[str, str | None]:
    """KEY, or KEY=VALUE."""
    key, equals, value = words.partition("=")
    if not key or check_label_key(key.lower()):
        raise InvalidScalarError(
            f"invalid annotation {shown(words)}: expected KEY or KEY=VALUE, for example example.com/hold=true"
        )
    return key, value if equals else None


LABELS = ValueType(_read_labels, reference("labels"), str)
ANNOTATION = ValueType(
    text(_read_annotation),
    text_schema("KEY or KEY=VALUE.", r"^[^=\s]+(=[\s\S]*)?$"),
    lambda pair: pair[0] if pair[1] is None else "=".join(pair),
)


# Name patterns


def _pattern(characters: str, max_length: int, check: Callable[[str], str], description: str) -> ValueType:
    """A name with optional wildcards * and ?; `check` validates one that has none."""

    def read(name: str) -> str:
        wrong = ""
        if not name:
            wrong = "must not be empty"
        elif len(name) > max_length:
            wrong = f"must be no more than {max_length} characters"
        elif not re.fullmatch(f"{characters}+", name):
            wrong = _wrong_character(name, f"{characters}+")
        elif not ("*" in name or "?" in name):
            wrong = check(name)
        if wrong:
            raise InvalidScalarError(f"invalid name or pattern {shown(name)}: {wrong}")
        return name

    return ValueType(text(read), text_schema(description, f"^{characters}{{1,{max_length}}}$"))


def _wrong_character(text: str, characters: str) -> str:
    if ".*" in text and re.fullmatch(characters, plain := text.replace(".*", "*").strip("^$")):
        return f"regular expressions are not supported: write {plain}"
    if re.fullmatch(characters, text.lower()):
        return f"must be lower case: write {text.lower()}"
    if text.startswith("!"):
        return "negation is not supported: use exclude"
    if any(character in text for character in "[]{}|"):
        return "only the wildcards * and ? are supported: write several names as several items"
    character = next(each for each in text if not re.fullmatch(characters, each))
    return f"invalid character {character!r}"


def _check_ends(check: Callable[[str], object]) -> Callable[[str], str]:
    return lambda name: "must start and end with an alphanumeric character" if check(name) else ""


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


_WILDCARDS = "may contain the wildcards * and ?."
_NAMESPACE = _pattern("[-a-z0-9*?]", 63, _check_ends(check_dns_label), f"A namespace; {_WILDCARDS}")
NAMESPACE_SCHEMA = _NAMESPACE.schema
NAMESPACE = ValueType(_NAMESPACE.read, reference("namespace"))
_OWNER = _pattern("[A-Za-z0-9*?]", 63, _check_owner, f"A kind; {_WILDCARDS}")
_NODE = _pattern("[-.a-z0-9*?]", 253, _check_ends(check_dns_subdomain), f"A name; {_WILDCARDS}")
_REASON = _pattern(r"[^\s\[\]{}|^$!]", 128, lambda name: "", f"A reason; {_WILDCARDS}")


# Selectors


def _read_exit_code(node: yaml.ScalarNode) -> int:
    code = read_integer(node, -_MAX_EXIT_CODE - 1)
    if code > _MAX_EXIT_CODE:
        raise InvalidScalarError(f"invalid exit code {code}: expected 0 to 255")
    return code


_NAMES = list_of(NAMESPACE, _EMPTY)
# The two attributes that `namespaces` stands for in a selector.
_NAMESPACES: Fields = {
    "names": Field("namespaces", _NAMES, "One of these namespaces."),
    "labels": Field("namespace_labels", LABELS),
}
_BY_LABELS = fields_schema("By name and by label.", _NAMESPACES) | {"minProperties": 1}
_NAMESPACES_SCHEMA = {"anyOf": [_NAMESPACES["names"].schema, _BY_LABELS]}


def _read_namespaces(notes: Diagnostics, node: YamlNode, path: str) -> dict[str, Any] | None:
    """A list of names, or names and labels."""
    if not isinstance(node, yaml.MappingNode):
        names = _NAMES.read(notes, node, path)
        return None if names is None else {"namespaces": names}
    found, values = read_fields(notes, node, path, _NAMESPACES)
    if not found:
        notes.add(node, f"{path} is empty: set names or labels, or omit it to match every namespace")
    return values


def read_selector(notes: Diagnostics, node: YamlNode, path: str) -> Selector | None:
    before = len(notes.mistakes)
    _, values = read_fields(notes, node, path, SELECTOR)
    if len(notes.mistakes) > before or is_reported(node):
        return None
    namespaces = values.pop("namespaces", {})
    return Selector(**namespaces, **values)


def _write_selector(selector: Selector) -> dict[str, Any]:
    fields = write_fields(SELECTOR, selector)
    if selector.namespace_labels is None:
        return fields
    fields.pop("namespaces", None)
    return {"namespaces": write_fields(_NAMESPACES, selector), **fields}


SELECTOR: Fields = {
    "namespaces": Field("namespaces", ValueType(_read_namespaces, _NAMESPACES_SCHEMA, list)),
    "labels": Field("labels", LABELS),
    "ownerKind": Field(
        "owner_kinds",
        list_of(_OWNER, _EMPTY),
        'The kind of the controller: Job, ReplicaSet; "none" is a pod without one.',
    ),
    "node": Field("nodes", list_of(_NODE, _EMPTY), "The name of its node."),
    "phase": Field("phases", list_of(choice({phase: phase for phase in PHASES}), _EMPTY), "Its phase."),
    "reason": Field(
        "reasons",
        list_of(_REASON, _EMPTY),
        "Its reason: Evicted, NodeAffinity, Shutdown, OutOfcpu, Preempting.",
    ),
    "exitCode": Field(
        "exit_codes",
        list_of(ValueType(scalar(_read_exit_code, "an integer"), {"type": "integer"}), _EMPTY, frozenset),
        "The exit code of one of its containers.",
    ),
}
SELECTOR_SCHEMA = fields_schema("All fields must match.", SELECTOR)
SELECT = ValueType(read_selector, reference("selector"), _write_selector)

"""Parses a scenario file, and the same fields in annotations of a pod.

seed: 7
pods:
- labels: app=web
  share: 10%
  crash: {after: 30s, jitter: 10s, code: 2, times: 3}
- namespaces: [batch]
  start: 2s
  finish: {after: 1m}
images:
- {name: "broken.example/*", error: "manifest unknown"}
nodes:
- {names: ["sim-1*"], share: 50%, at: 2m, for: 5m}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from podlife.api.selectors import LabelSelector, parse_label_selector
from podlife.api.yaml_fields import Diagnostics, Mistake, Read, YamlNode, compose
from podlife.errors import ConfigError

from .scenario import Conduct, Crash, ImageRule, NodeRule, PodRule, Scenario, Stop, Wait
from .scenario_values import (
    read_fields,
    read_items,
    read_seconds,
    read_share,
    read_text,
    read_texts,
    read_truth,
    scalar,
    whole_number,
)

ANNOTATIONS = "sim.podlife.dev/"
_MAX_BYTES = 1 << 20
_MAX_SHOWN = 20
# Annotations come from any user who may create pods: limit the cost of parsing.
_MAX_ANNOTATION = 1000


def load_scenario(path: Path) -> Scenario:
    """Raises ConfigError: one line, with every mistake and its line number."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    if len(data) > _MAX_BYTES:
        raise ConfigError(f"{path} exceeds the maximum size of a scenario ({_MAX_BYTES >> 20} MiB)")
    try:
        return parse_scenario(data.decode())
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8 text") from None
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def parse_scenario(text: str) -> Scenario:
    """Raises ConfigError."""
    notes = Diagnostics()
    node = compose(text, notes, _invalid)
    values = {} if node is None else read_fields(notes, node, "", _SCENARIO)
    if notes.mistakes:
        raise ConfigError(_joined(sorted(notes.mistakes, key=lambda each: each.line)))
    return Scenario(**values)


def annotated(conduct: Conduct, annotations: Mapping[str, str], container: str) -> Conduct:
    """The conduct with the pod's annotations applied; raises ConfigError, which names the annotation."""
    own = {key: text for key, text in annotations.items() if key.startswith(ANNOTATIONS)}
    if not own:
        return conduct
    notes = Diagnostics()
    values: dict[str, Any] = {}
    for key, text in own.items():
        field = key.removeprefix(ANNOTATIONS)
        read = {**_CONDUCT, "containers": read_texts}.get(field)
        if read is None:
            raise ConfigError(f"unknown annotation {key}: choose from {', '.join(_CONDUCT)}")
        if len(text) > _MAX_ANNOTATION:
            raise ConfigError(f"annotation {key} exceeds {_MAX_ANNOTATION} characters")
        if (node := compose(text, notes, _invalid)) is not None:
            values[field] = read(notes, node, field)
        if notes.mistakes:
            # The line number only helps if the text is not valid YAML.
            first = notes.mistakes[0]
            raise ConfigError(f"annotation {key}: {first if node is None else first.text}")
    named = values.pop("containers", ())
    return conduct if named and container not in named else replace(conduct, **_python(values))


def _invalid(error: Any) -> str:
    reason = getattr(error, "problem", None) or " ".join(str(error).split()) or "nested too deeply"
    return f"invalid YAML: {reason}"


def _joined(mistakes: list[Mistake]) -> str:
    more = f"; and {len(mistakes) - _MAX_SHOWN} more" if len(mistakes) > _MAX_SHOWN else ""
    return "; ".join(map(str, mistakes[:_MAX_SHOWN])) + more


def _python(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key.replace("-", "_"): value for key, value in values.items()}


def _positive(notes: Diagnostics, node: YamlNode, path: str) -> float | None:
    seconds = read_seconds(notes, node, path)
    if seconds is not None and seconds <= 0:
        notes.add(node, f"{path} must be greater than zero")
        return None
    return seconds


def _labels(notes: Diagnostics, node: YamlNode, path: str) -> LabelSelector | None:
    text = read_text(notes, node, path)
    try:
        return None if text is None else parse_label_selector(text)
    except ValueError as error:
        notes.add(node, f"{path} is not a valid label selector: {error}")
        return None


_WAIT: dict[str, Read] = {"after": read_seconds, "jitter": read_seconds}


def _wait_of(values: Mapping[str, Any]) -> Wait:
    return Wait(values.get("after", 0.0), values.get("jitter", 0.0))


def _wait(notes: Diagnostics, node: YamlNode, path: str) -> Wait | None:
    """`2s`, or `{after: 2s, jitter: 1s}`."""
    if node.id != "scalar":
        return _wait_of(read_fields(notes, node, path, _WAIT))
    seconds = read_seconds(notes, node, path)
    return None if seconds is None else Wait(seconds)


def _crash(notes: Diagnostics, node: YamlNode, path: str) -> Crash | None:
    if node.id == "scalar":
        after = _wait(notes, node, path)
        return None if after is None else Crash(after)
    known: dict[str, Read] = {
        **_WAIT,
        "code": whole_number(1, 255),
        "times": whole_number(0),
        "out-of-memory": read_truth,
    }
    values = read_fields(notes, node, path, known)
    is_out_of_memory = values.get("out-of-memory", False)
    code = values.get("code", 137 if is_out_of_memory else 1)
    return Crash(_wait_of(values), code, values.get("times"), is_out_of_memory)


def _stop(notes: Diagnostics, node: YamlNode, path: str) -> Stop | None:
    if node.id == "scalar" and node.value == "never":
        return Stop(after=None)
    if node.id == "scalar":
        after = _wait(notes, node, path)
        return None if after is None else Stop(after)
    values = read_fields(notes, node, path, {**_WAIT, "code": whole_number(0, 255)})
    return Stop(_wait_of(values), values.get("code", 143))


_CONDUCT: dict[str, Read] = {
    "start": _wait,
    "crash": _crash,
    "finish": _wait,
    "stop": _stop,
    "create-error": read_text,
    "start-error": read_text,
    "output": read_texts,
    "message": read_text,
}
_SELECTION: dict[str, Read] = {
    "namespaces": read_texts,
    "labels": _labels,
    "containers": read_texts,
    "share": read_share,
}


def _pods(notes: Diagnostics, node: YamlNode, path: str) -> tuple[PodRule, ...]:
    def rule(each: YamlNode, where: str) -> PodRule:
        values = read_fields(notes, each, where, {**_SELECTION, **_CONDUCT})
        selection = {key: values.pop(key) for key in _SELECTION if key in values}
        return PodRule(**selection, conduct=Conduct(**_python(values)))

    return tuple(read_items(notes, node, path, rule))


_IMAGE: dict[str, Read] = {"name": read_text, "pull": _wait, "error": read_text}


def _images(notes: Diagnostics, node: YamlNode, path: str) -> tuple[ImageRule, ...]:
    def rule(each: YamlNode, where: str) -> ImageRule | None:
        values = read_fields(notes, each, where, _IMAGE, ("name",))
        return ImageRule(**values) if "name" in values else None

    return tuple(read_items(notes, node, path, rule))


_NODE: dict[str, Read] = {
    "names": read_texts,
    "share": read_share,
    "at": _wait,
    "every": _positive,
    "for": _wait,
    "what": scalar({"agent": False, "machine": True}.get, "agent (silent) or machine (off)"),
}


def _nodes(notes: Diagnostics, node: YamlNode, path: str) -> tuple[NodeRule, ...]:
    def rule(each: YamlNode, where: str) -> NodeRule | None:
        before = len(notes.mistakes)
        values = read_fields(notes, each, where, _NODE)
        if len(notes.mistakes) == before and ("at" in values) == ("every" in values):
            notes.add(each, f"{where} needs either at (once) or every (repeatedly)")
        return NodeRule(
            names=values.get("names", ()),
            share=values.get("share", 1.0),
            at=values.get("at"),
            every_seconds=values.get("every"),
            lasts=values.get("for"),
            is_machine=values.get("what", False),
        )

    return tuple(read_items(notes, node, path, rule))


_SCENARIO: dict[str, Read] = {"seed": whole_number(0), "pods": _pods, "images": _images, "nodes": _nodes}

"""A scenario as people write it, in YAML, and the same words as annotations of a pod.

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
from podlife.errors import ConfigError

from .scenario import Conduct, Crash, ImageRule, NodeRule, PodRule, Scenario, Stop, Wait
from .yaml_fields import Field, ScenarioMistake, YamlNode, YamlReader, compose

ANNOTATIONS = "sim.podlife.dev/"
_MOST_BYTES = 1 << 20
_MOST_TOLD = 20
# Whoever may create pods may write them: none costs more than it should.
_MOST_ANNOTATION = 1000


def load_scenario(path: Path) -> Scenario:
    """Raises ConfigError: one line, with every mistake and where it is."""
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    if len(data) > _MOST_BYTES:
        raise ConfigError(f"{path} is larger than a scenario ever is: write at most {_MOST_BYTES >> 20} MiB")
    try:
        scenario, mistakes = scenario_mistakes(data.decode())
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8 text") from None
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    if mistakes:
        raise ConfigError(f"{path}: {_told(mistakes)}")
    return scenario


def parse_scenario(text: str) -> Scenario:
    """Raises ConfigError."""
    scenario, mistakes = scenario_mistakes(text)
    if mistakes:
        raise ConfigError(_told(mistakes))
    return scenario


def scenario_mistakes(text: str) -> tuple[Scenario, list[ScenarioMistake]]:
    """What could be read, and everything that could not; raises ConfigError for what is no YAML."""
    reader = YamlReader()
    node = compose(text)
    if node is None:
        return Scenario(), []
    values = reader.fields(node, "", _SCENARIO)
    return Scenario(**values), sorted(reader.mistakes, key=lambda each: each.line)


def annotated(conduct: Conduct, annotations: Mapping[str, str], container: str) -> Conduct:
    """The conduct with what the pod itself says of it; raises ConfigError, which names the annotation."""
    own = {key: text for key, text in annotations.items() if key.startswith(ANNOTATIONS)}
    if not own:
        return conduct
    reader = YamlReader()
    values: dict[str, Any] = {}
    for key, text in own.items():
        word = key.removeprefix(ANNOTATIONS)
        field = {**_CONDUCT, "containers": YamlReader.texts}.get(word)
        if field is None:
            raise ConfigError(f"annotation {key} is not known: there is {', '.join(_CONDUCT)}")
        if len(text) > _MOST_ANNOTATION:
            raise ConfigError(f"annotation {key} is longer than {_MOST_ANNOTATION} letters: write less")
        try:
            node = compose(text)
        except ConfigError as error:
            raise ConfigError(f"annotation {key}: {error}") from None
        if node is not None:
            values[word] = field(reader, node, word)
        if reader.mistakes:
            raise ConfigError(f"annotation {key}: {reader.mistakes[0].text}")
    named = values.pop("containers", ())
    return conduct if named and container not in named else replace(conduct, **_python(values))


def _told(mistakes: list[ScenarioMistake]) -> str:
    more = f"; and {len(mistakes) - _MOST_TOLD} more" if len(mistakes) > _MOST_TOLD else ""
    return "; ".join(map(str, mistakes[:_MOST_TOLD])) + more


def _python(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key.replace("-", "_"): value for key, value in values.items()}


# What stands at each key


def _positive(reader: YamlReader, node: YamlNode, path: str) -> float | None:
    seconds = reader.seconds(node, path)
    if seconds is not None and seconds <= 0:
        reader.note(node, f"{path} must be longer than nothing")
        return None
    return seconds


def _whole_number(least: int, most: int | None = None) -> Field:
    return lambda reader, node, path: reader.whole_number(node, path, least, most)


def _labels(reader: YamlReader, node: YamlNode, path: str) -> LabelSelector | None:
    text = reader.text(node, path)
    try:
        return None if text is None else parse_label_selector(text)
    except ValueError as error:
        reader.note(node, f"{path} is not a label selector: {error}")
        return None


_WAIT: dict[str, Field] = {"after": YamlReader.seconds, "jitter": YamlReader.seconds}


def _wait_of(values: Mapping[str, Any]) -> Wait:
    return Wait(values.get("after", 0.0), values.get("jitter", 0.0))


def _wait(reader: YamlReader, node: YamlNode, path: str) -> Wait | None:
    """`2s`, or `{after: 2s, jitter: 1s}`."""
    if node.id != "scalar":
        return _wait_of(reader.fields(node, path, _WAIT))
    seconds = reader.seconds(node, path)
    return None if seconds is None else Wait(seconds)


def _crash(reader: YamlReader, node: YamlNode, path: str) -> Crash | None:
    if node.id == "scalar":
        after = _wait(reader, node, path)
        return None if after is None else Crash(after)
    known: dict[str, Field] = {
        **_WAIT,
        "code": _whole_number(1, 255),
        "times": _whole_number(0),
        "out-of-memory": YamlReader.truth,
    }
    values = reader.fields(node, path, known)
    is_out_of_memory = values.get("out-of-memory", False)
    code = values.get("code", 137 if is_out_of_memory else 1)
    return Crash(_wait_of(values), code, values.get("times"), is_out_of_memory)


def _stop(reader: YamlReader, node: YamlNode, path: str) -> Stop | None:
    if node.id == "scalar" and node.value == "never":
        return Stop(after=None)
    if node.id == "scalar":
        after = _wait(reader, node, path)
        return None if after is None else Stop(after)
    values = reader.fields(node, path, {**_WAIT, "code": _whole_number(0, 255)})
    return Stop(_wait_of(values), values.get("code", 143))


_CONDUCT: dict[str, Field] = {
    "start": _wait,
    "crash": _crash,
    "finish": _wait,
    "stop": _stop,
    "create-error": YamlReader.text,
    "start-error": YamlReader.text,
    "output": YamlReader.texts,
    "message": YamlReader.text,
}
_SELECTION: dict[str, Field] = {
    "namespaces": YamlReader.texts,
    "labels": _labels,
    "containers": YamlReader.texts,
    "share": YamlReader.share,
}


def _pods(reader: YamlReader, node: YamlNode, path: str) -> tuple[PodRule, ...]:
    def rule(each: YamlNode, where: str) -> PodRule:
        values = reader.fields(each, where, {**_SELECTION, **_CONDUCT})
        selection = {key: values.pop(key) for key in _SELECTION if key in values}
        return PodRule(**selection, conduct=Conduct(**_python(values)))

    return tuple(reader.items(node, path, rule))


def _images(reader: YamlReader, node: YamlNode, path: str) -> tuple[ImageRule, ...]:
    def rule(each: YamlNode, where: str) -> ImageRule | None:
        values = reader.fields(
            each, where, {"name": YamlReader.text, "pull": _wait, "error": YamlReader.text}, ("name",)
        )
        return ImageRule(**values) if "name" in values else None

    return tuple(reader.items(node, path, rule))


def _what(reader: YamlReader, node: YamlNode, path: str) -> str | None:
    if node.id != "scalar" or node.value not in ("agent", "machine"):
        reader.note(node, f"{path} must be agent (silent) or machine (off)")
        return None
    return str(node.value)


_NODE: dict[str, Field] = {
    "names": YamlReader.texts,
    "share": YamlReader.share,
    "at": _wait,
    "every": _positive,
    "for": _wait,
    "what": _what,
}


def _nodes(reader: YamlReader, node: YamlNode, path: str) -> tuple[NodeRule, ...]:
    def rule(each: YamlNode, where: str) -> NodeRule | None:
        before = len(reader.mistakes)
        values = reader.fields(each, where, _NODE)
        if len(reader.mistakes) == before and ("at" in values) == ("every" in values):
            reader.note(each, f"{where} needs either at (once) or every (again and again)")
        return NodeRule(
            names=values.get("names", ()),
            share=values.get("share", 1.0),
            at=values.get("at"),
            every_seconds=values.get("every"),
            lasts=values.get("for"),
            is_machine=values.get("what") == "machine",
        )

    return tuple(reader.items(node, path, rule))


_SCENARIO: dict[str, Field] = {"seed": _whole_number(0), "pods": _pods, "images": _images, "nodes": _nodes}

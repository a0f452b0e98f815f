"""Runs an area's steps on two servers in the same order, and says where the answers differ."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from time import monotonic, sleep
from typing import Any

from tests.real.differential.normalise import Normaliser, dig
from tests.real.differential.steps import Area, Step
from tests.real.differential.target import Answer, Target

_ABSENT = "<absent>"
# Some answers are a megabyte; their beginning tells enough.
_SHOWN = 1500
_UNTIL_SECONDS = 120.0
_PAUSE_SECONDS = 0.1


@dataclass(frozen=True)
class Difference:
    """One place where the answers are not the same."""

    path: str
    real: Any
    ours: Any

    def __str__(self) -> str:
        return f"{self.path}\n      real: {_short(self.real)}\n      ours: {_short(self.ours)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"


@dataclass(frozen=True)
class Outcome:
    step: Step
    real: dict[str, Any]
    ours: dict[str, Any]

    @property
    def differences(self) -> list[Difference]:
        return differences_between(self.real, self.ours)


class Side:
    """One server's half of an area: its variables and its symbols."""

    def __init__(self, target: Target, area: Area) -> None:
        self._target = target
        self._variables = {"ns": area.namespace}
        self._normaliser = Normaliser()

    def take(self, step: Step) -> dict[str, Any]:
        """Send the step; the answer in the form that is compared."""
        answer = self._target.send(step, self._variables)
        deadline = monotonic() + _UNTIL_SECONDS
        while step.until is not None and not step.until(answer.body) and monotonic() < deadline:
            sleep(_PAUSE_SECONDS)
            answer = self._target.send(step, self._variables)
        for variable, path in step.keep.items():
            if (value := dig(answer.body, path)) is not None:
                self._variables[variable] = str(value)
        return self._shown(answer, step)

    def _shown(self, answer: Answer, step: Step) -> dict[str, Any]:
        self._normaliser.begin(step.name)
        body = answer.body
        if step.random:
            body = json.loads(re.sub(step.random, "<random>", json.dumps(body)))
        if step.unordered and answer.code >= 400:
            body = _in_order(body)
        if step.pick is not None and answer.code < 300:
            body = step.pick(body)
        # Several lines of one header mean the same as one line with commas.
        ordered = sorted if step.unordered else list
        headers = {
            name: self._normaliser.text(", ".join(ordered(values))) for name, values in answer.headers.items()
        }
        return {"code": answer.code, "headers": headers, "body": self._normaliser.body(body)}


def _in_order(status: Any) -> Any:
    """A refusal with its causes sorted; the message, which repeats them, ends before they begin."""
    head, *lines = status["message"].partition(" is invalid: ")[0].split("\n")
    status = {**status, "message": "\n".join([head, *sorted(lines)])}
    details = status.get("details", {})
    if causes := details.get("causes"):
        in_order = sorted(causes, key=lambda cause: (cause["field"], cause["message"]))
        status["details"] = {**details, "causes": in_order}
    return status


class AreaRun:
    """Steps depend on those before them, so asking for one runs all up to it, once."""

    def __init__(self, area: Area, real: Target, ours: Target) -> None:
        self._steps = iter(area.steps)
        self._real = Side(real, area)
        self._ours = Side(ours, area)
        self._outcomes: dict[str, Outcome] = {}

    def outcome(self, step: Step) -> Outcome:
        while step.name not in self._outcomes:
            following = next(self._steps)
            self._outcomes[following.name] = Outcome(
                following, self._real.take(following), self._ours.take(following)
            )
        return self._outcomes[step.name]


def differences_between(real: Any, ours: Any, path: str = "") -> list[Difference]:
    """Where two values differ, as deep as they are of the same shape."""
    if isinstance(real, dict) and isinstance(ours, dict):
        found = []
        for key in sorted(real.keys() | ours.keys()):
            inner = f"{path}.{key}" if path else str(key)
            found += differences_between(real.get(key, _ABSENT), ours.get(key, _ABSENT), inner)
        return found
    if isinstance(real, list) and isinstance(ours, list) and len(real) == len(ours):
        return [
            difference
            for index, pair in enumerate(zip(real, ours, strict=True))
            for difference in differences_between(*pair, f"{path}[{index}]")
        ]
    # True equals 1 in Python, but not on the wire.
    is_same = real == ours and isinstance(real, bool) == isinstance(ours, bool)
    return [] if is_same else [Difference(path, real, ours)]

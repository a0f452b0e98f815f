"""What the options of several commands have in common: groups of them, and the values Kubernetes' users type.

A parameter of a command whose type is a dataclass stands for all of the dataclass's fields, each an option of
its own. So the flags of a connection are written once, however many commands connect.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar, get_type_hints

import typer

__all__ = ["format_duration", "parse_duration", "parse_timeout", "with_groups"]

R = TypeVar("R")

_UNIT_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_NUMBER = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)"
_PART = re.compile(rf"({_NUMBER})({'|'.join(_UNIT_SECONDS)})")
_DURATION = re.compile(rf"([-+]?)((?:{_PART.pattern})+)")


def with_groups(command: Callable[..., R]) -> Callable[..., R]:
    """The command, with an option for each field of each parameter whose type is a dataclass."""
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, type[Any]] = {
        name: parameter.annotation
        for name, parameter in signature.parameters.items()
        if isinstance(parameter.annotation, type) and dataclasses.is_dataclass(parameter.annotation)
    }
    options: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        if name in groups:
            options += _options_of(groups[name])
        else:
            options.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @functools.wraps(command)
    def with_fields(**given: Any) -> R:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in dataclasses.fields(group)})
        return command(**given)

    with_fields.__signature__ = signature.replace(parameters=options)  # type: ignore[attr-defined]
    with_fields.__annotations__ = {option.name: option.annotation for option in options}
    return with_fields


def _options_of(group: type[Any]) -> list[inspect.Parameter]:
    types = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=types[field.name]
        )
        for field in dataclasses.fields(group)
    ]


def parse_duration(text: str | float) -> float:
    """Seconds, from what Go reads as a duration: 40s, 1m30s, 500ms, 0."""
    if not isinstance(text, str):
        return text  # a default, which is in seconds already
    if text == "0":
        return 0.0
    match = _DURATION.fullmatch(text)
    if match is None:
        raise typer.BadParameter(f"{text!r} is not a duration: write it as 40s, 1m30s or 500ms")
    seconds = sum(float(number) * _UNIT_SECONDS[unit] for number, unit in _PART.findall(match[2]))
    return -seconds if match[1] == "-" else seconds


def parse_timeout(text: str | float) -> float:
    """As `parse_duration`; a bare number is seconds, as kubectl's --request-timeout has it."""
    seconds = float(text) if isinstance(text, str) and re.fullmatch(_NUMBER, text) else parse_duration(text)
    if seconds < 0:
        raise typer.BadParameter(f"{text!r} lies in the past: write how long to wait")
    return seconds


def format_duration(seconds: float) -> str:
    """A length of time as people read it, to two units: 3d4h, 2m5s, 40s."""
    left = max(0, round(seconds))
    parts = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts[:2]) or "0s"

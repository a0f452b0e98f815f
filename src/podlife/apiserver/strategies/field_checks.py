"""Checks that many validators share.

A check costs next to nothing if nothing is wrong: paths and messages are only built for errors.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from podlife.api.codec import Object
from podlife.api.field_errors import FieldError, bad_value, not_supported, required
from podlife.memory import CACHED_VALUES

IMMUTABLE = "field is immutable"
_LARGEST_INT32 = 2**31 - 1
_LONGEST_IP = 64


def not_one_of(path: str, value: Any, choices: Iterable[str]) -> FieldError:
    """An unsupported value, with the supported ones in the given order."""
    return not_supported(path, value, tuple(choices))


def required_choice(path: str, value: str, choices: Sequence[str]) -> list[FieldError]:
    if value in choices:
        return []
    return [not_one_of(path, value, choices) if value else required(path)]


def problems_at(path: str, value: str, problems: Iterable[str]) -> list[FieldError]:
    return [bad_value(path, value, problem) for problem in problems]


def non_negative(path: str, value: int | None) -> list[FieldError]:
    if value is None or value >= 0:
        return []
    return [bad_value(path, value, "must be greater than or equal to 0")]


def positive(path: str, value: int) -> list[FieldError]:
    return [] if value > 0 else [bad_value(path, value, "must be greater than zero")]


def at_most_int32(path: str, value: int | None, *, least: int = 0) -> list[FieldError]:
    if value is None or least <= value <= _LARGEST_INT32:
        return []
    return [bad_value(path, value, f"must be between {least} and {_LARGEST_INT32}, inclusive")]


def immutable(path: str, new: Any, old: Any) -> list[FieldError]:
    return [] if new == old else [bad_value(path, new, IMMUTABLE)]


def with_backsteps(target: str) -> bool:
    return ".." in target and ".." in target.split("/")


def is_ip(text: str) -> bool:
    # Long texts are neither parsed nor cached.
    return len(text) <= _LONGEST_IP and _is_ip(text)


@lru_cache(maxsize=CACHED_VALUES)
def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text


def show_times(status: Object, *fields: str) -> None:
    """Times in conditions that upstream shows even if they are not set."""
    for condition in status.get("conditions", ()):
        for field in fields:
            condition.setdefault(field, None)

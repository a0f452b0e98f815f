"""The syntax of a cron schedule: five fields, or a descriptor such as `@hourly` or `@every 5m`."""

from __future__ import annotations

import re
from typing import NamedTuple


class _Field(NamedTuple):
    least: int
    most: int
    names: dict[str, int]


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS = (
    _Field(0, 59, {}),
    _Field(0, 23, {}),
    _Field(1, 31, {}),
    _Field(1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    _Field(0, 6, {name: number for number, name in enumerate(_DAYS)}),
)
_DESCRIPTORS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_is_duration = re.compile(
    r"[-+]?(\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)((\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h))*"
)


def check_schedule(schedule: str) -> None:
    """Raise ValueError in upstream's words if the schedule cannot be parsed."""
    if schedule.startswith(("TZ=", "CRON_TZ=")):
        schedule = schedule.partition(" ")[2].strip()
    if schedule.startswith("@"):
        _check_descriptor(schedule)
        return
    parts = schedule.split()
    if len(parts) != 5:
        raise ValueError(f"expected exactly 5 fields, found {len(parts)}: [{' '.join(parts)}]")
    for part, field in zip(parts, _FIELDS, strict=True):
        for item in part.split(","):
            _check_range(item, field)


def _check_descriptor(descriptor: str) -> None:
    if descriptor in _DESCRIPTORS:
        return
    if descriptor.startswith("@every "):
        duration = descriptor.removeprefix("@every ")
        if not _is_duration.fullmatch(duration):
            raise ValueError(f'failed to parse duration {descriptor}: time: invalid duration "{duration}"')
        return
    raise ValueError(f"unrecognized descriptor: {descriptor}")


def _check_range(text: str, field: _Field) -> None:
    span, *steps = text.split("/")
    low, *highs = span.split("-")
    if len(highs) > 1:
        raise ValueError(f"too many hyphens: {text}")
    if low in ("*", "?"):
        start, end = field.least, field.most
    else:
        start = _number(low, field)
        end = _number(highs[0], field) if highs else start
    if len(steps) > 1:
        raise ValueError(f"too many slashes: {text}")
    step = 1
    if steps:
        step = _plain_number(steps[0])
        if not highs and low not in ("*", "?"):
            end = field.most
    if start < field.least:
        raise ValueError(f"beginning of range ({start}) below minimum ({field.least}): {text}")
    if end > field.most:
        raise ValueError(f"end of range ({end}) above maximum ({field.most}): {text}")
    if start > end:
        raise ValueError(f"beginning of range ({start}) beyond end of range ({end}): {text}")
    if step == 0:
        raise ValueError(f"step of range should be a positive number: {text}")


def _number(text: str, field: _Field) -> int:
    named = field.names.get(text.lower())
    return named if named is not None else _plain_number(text)


def _plain_number(text: str) -> int:
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text.removeprefix("+"))
    if not digits.isascii() or not digits.isdigit() or len(digits) > 18:
        raise ValueError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    if sign and int(digits):
        raise ValueError(f"negative number (-{int(digits)}) not allowed: {text}")
    return int(digits)

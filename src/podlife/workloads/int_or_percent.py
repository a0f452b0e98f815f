"""Fields that are a number or a percentage (`maxUnavailable`, `maxSurge`). Pure."""

from __future__ import annotations

import re

from podlife.podcontrol import InvalidInputError

IntOrPercent = int | str

# Numbers beyond 64 bits are invalid.
_PERCENT = re.compile(r"([0-9]{1,18})%", re.ASCII)


def scaled(value: IntOrPercent, total: int, *, round_up: bool, what: str = "") -> int:
    """A number as it is, a percentage of the total. Raises InvalidInputError for anything else, which says `what` it
    was given for."""
    if isinstance(value, int):
        return value
    if (percent := _PERCENT.fullmatch(value)) is None:
        given = f"invalid value for {what}: {value[:40]!r}" if what else f"{value[:40]!r}"
        raise InvalidInputError(f"{given} is neither a number nor a percentage")
    hundredfold = int(percent[1]) * total
    return -(-hundredfold // 100) if round_up else hundredfold // 100

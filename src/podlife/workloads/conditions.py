"""Conditions of a status as in the API: a list of dictionaries, one per type. Pure.

Lists are never modified in place, so the result can be compared with the input.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from podlife.api.codec import format_time

Conditions = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class ConditionDict:
    """A condition to be set."""

    type: str
    status: str
    reason: str = ""
    message: str = ""

    def to_object(self, now: datetime, **times: datetime) -> dict[str, Any]:
        """As the API has it, with `now` as its last transition. `times` are for the kinds whose conditions have more
        of them (`lastUpdateTime`, `lastProbeTime`), or another transition."""
        written: dict[str, Any] = {"type": self.type, "status": self.status}
        written |= {name: format_time(moment) for name, moment in times.items()}
        written.setdefault("lastTransitionTime", format_time(now))
        return written | {
            name: text for name, text in (("reason", self.reason), ("message", self.message)) if text
        }


def find_condition(conditions: Iterable[dict[str, Any]] | None, type_: str) -> dict[str, Any] | None:
    return next((each for each in conditions or () if each.get("type") == type_), None)


def has_condition(conditions: Iterable[dict[str, Any]] | None, type_: str, status: str = "True") -> bool:
    found = find_condition(conditions, type_)
    return found is not None and found.get("status") == status


def with_condition(conditions: Iterable[dict[str, Any]] | None, condition: dict[str, Any]) -> Conditions:
    """With this condition in place of the one of its type, at the end. One that says the same already (status and
    reason) stays as it is; one whose status stays keeps the time of its last transition."""
    known = list(conditions or ())
    old = find_condition(known, condition["type"])
    if old is not None and old.get("status") == condition["status"]:
        if old.get("reason", "") == condition.get("reason", ""):
            return known
        condition = {**condition, "lastTransitionTime": old.get("lastTransitionTime")}
    return [*without_condition(known, condition["type"]), condition]


def without_condition(conditions: Iterable[dict[str, Any]] | None, type_: str) -> Conditions:
    return [each for each in conditions or () if each.get("type") != type_]

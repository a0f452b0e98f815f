"""Guards and their windows out of a policy file."""

from __future__ import annotations

import re
import zoneinfo
from datetime import time
from typing import Any

from podlife.podgc.policy.model import Guards, Window
from podlife.podgc.policy.parse.numbers import read_clock, read_number, read_share
from podlife.podgc.policy.parse.values import (
    Field,
    one_of,
    read_fields,
    read_list,
    read_mapping,
    read_text,
    read_truth,
    shown,
)
from podlife.podgc.policy.parse.yaml_nodes import Node, Notes

__all__ = ["DAYS", "GUARD_KEYS", "WINDOW_KEYS", "read_guards"]

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_STOPS = "0 would let nothing go; write observeOnly: true to change nothing, or leave it out for no bound"
_UTC = "UTC"
_NO_WINDOW = "it could mean always or never; leave it out for always"


def read_guards(notes: Notes, node: Node, path: str) -> Guards:
    values: dict[str, Any] = read_fields(notes, node, path, _GUARDS)
    return Guards(
        per_minute=values.get("perMinute"),
        per_pass=values.get("perPass"),
        share_of_namespace=values.get("shareOfNamespace"),
        share_of_cluster=values.get("shareOfCluster"),
        share_at_least=values.get("shareAtLeast", Guards().share_at_least),
        windows=values.get("windows", ()),
        is_observing=values.get("observeOnly", False),
    )


def _read_bound(notes: Notes, node: Node, path: str) -> int | None:
    return read_number(notes, node, path, 1, _STOPS)


def _read_at_least(notes: Notes, node: Node, path: str) -> int | None:
    return read_number(notes, node, path, 0)


def _read_windows(notes: Notes, node: Node, path: str) -> tuple[Window, ...] | None:
    found = read_list(notes, node, path, _read_window, _NO_WINDOW)
    return None if found is None else tuple(found)


def _read_window(notes: Notes, node: Node, path: str) -> Window | None:
    before = len(notes.mistakes)
    found = read_mapping(notes, node, path, WINDOW_KEYS)
    values: dict[str, Any] = {
        key: _WINDOW[key](notes, value, f"{path}.{key}") for key, (_, value) in found.items()
    }
    if len(notes.mistakes) > before:
        return None
    if not found:
        notes.add(node, f"{path} says nothing: write days, from and to, or leave it out for always")
        return None
    start, end = values.get("from", time(0)), values.get("to", time(0))
    is_whole_day = start == end == time(0)
    if "from" in found and "to" in found and start == end and not is_whole_day:
        notes.add(
            found["to"][0], f"{path} begins and ends at the same time: for whole days leave out from and to"
        )
        return None
    if "timezone" not in found and (wrong := _wrong_zone(_UTC)):
        notes.add(node, f"{path}: {wrong}")
        return None
    every_day = frozenset(range(len(DAYS)))
    return Window(values.get("days", every_day), start, end, values.get("timezone", _UTC))


def _read_days(notes: Notes, node: Node, path: str) -> frozenset[int] | None:
    found = read_list(notes, node, path, _read_day, "leave it out for every day")
    return None if found is None else frozenset().union(*found)


def _read_day(notes: Notes, node: Node, path: str) -> frozenset[int] | None:
    """One day, or from one to another, over Sunday too."""
    text = read_text(notes, node, path)
    if text is None:
        return None
    match = re.fullmatch(rf"({'|'.join(DAYS)})-({'|'.join(DAYS)})", text)
    if match is None:
        day = one_of(notes, node, path, DAYS)
        return None if day is None else frozenset((DAYS.index(day),))
    first, last = DAYS.index(match[1]), DAYS.index(match[2])
    return frozenset((first + number) % 7 for number in range((last - first) % 7 + 1))


def _read_zone(notes: Notes, node: Node, path: str) -> str | None:
    text = read_text(notes, node, path)
    if text is None:
        return None
    if wrong := _wrong_zone(text):
        notes.add(node, f"{path} {wrong}")
        return None
    return text


def _wrong_zone(name: str) -> str:
    try:
        if not re.fullmatch(r"[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+)*", name):
            raise ValueError(name)
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return f"{shown(name)} is no time zone: {_zone_instead(name)}"
    return ""


def _zone_instead(text: str) -> str:
    known = zoneinfo.available_timezones()
    if not known:
        # Not even UTC is known then.
        return "this system has no time zones at all; install the package tzdata, of the system or of Python"
    folded = {each.lower(): each for each in known}
    if (same := folded.get(text.lower().replace(" ", "_"))) is not None:
        return f"write {same}"
    cities = sorted(each for each in known if each.lower().endswith(f"/{text.lower()}"))
    return f"write {cities[0]}" if cities else "write it as Europe/Berlin, or UTC"


_GUARDS: dict[str, Field] = {
    "perMinute": _read_bound,
    "perPass": _read_bound,
    "shareOfNamespace": read_share,
    "shareOfCluster": read_share,
    "shareAtLeast": _read_at_least,
    "windows": _read_windows,
    "observeOnly": read_truth,
}
GUARD_KEYS = tuple(_GUARDS)
_WINDOW: dict[str, Field] = {"days": _read_days, "from": read_clock, "to": read_clock, "timezone": _read_zone}
WINDOW_KEYS = tuple(_WINDOW)

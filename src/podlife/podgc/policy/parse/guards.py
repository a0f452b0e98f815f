"""Parses the guards of a policy file."""

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
from podlife.podgc.policy.parse.yaml_nodes import Diagnostics, YamlNode

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_AT_LEAST_ONE = "use observeOnly: true to delete nothing, or omit it for no limit"
_UTC = "UTC"
_NO_WINDOW = "omit it to allow deletions at any time"


def read_guards(notes: Diagnostics, node: YamlNode, path: str) -> Guards:
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


def _read_bound(notes: Diagnostics, node: YamlNode, path: str) -> int | None:
    return read_number(notes, node, path, 1, _AT_LEAST_ONE)


def _read_at_least(notes: Diagnostics, node: YamlNode, path: str) -> int | None:
    return read_number(notes, node, path, 0)


def _read_windows(notes: Diagnostics, node: YamlNode, path: str) -> tuple[Window, ...] | None:
    found = read_list(notes, node, path, _read_window, _NO_WINDOW)
    return None if found is None else tuple(found)


def _read_window(notes: Diagnostics, node: YamlNode, path: str) -> Window | None:
    before = len(notes.mistakes)
    found = read_mapping(notes, node, path, WINDOW_KEYS)
    values: dict[str, Any] = {
        key: _WINDOW[key](notes, value, f"{path}.{key}") for key, (_, value) in found.items()
    }
    if len(notes.mistakes) > before:
        return None
    if not found:
        notes.add(
            node, f"{path} is empty: set days, from or to, or omit windows to allow deletions at any time"
        )
        return None
    start, end = values.get("from", time(0)), values.get("to", time(0))
    is_whole_day = start == end == time(0)
    if "from" in found and "to" in found and start == end and not is_whole_day:
        notes.add(found["to"][0], f"{path}: from and to must differ: omit both for whole days")
        return None
    if "timezone" not in found and (wrong := _wrong_zone(_UTC)):
        notes.add(node, f"{path}: {wrong}")
        return None
    every_day = frozenset(range(len(DAYS)))
    return Window(values.get("days", every_day), start, end, values.get("timezone", _UTC))


def _read_days(notes: Diagnostics, node: YamlNode, path: str) -> frozenset[int] | None:
    found = read_list(notes, node, path, _read_day, "omit it for every day")
    return None if found is None else frozenset().union(*found)


def _read_day(notes: Diagnostics, node: YamlNode, path: str) -> frozenset[int] | None:
    """One day, or a range, which may include Sunday."""
    text = read_text(notes, node, path)
    if text is None:
        return None
    match = re.fullmatch(rf"({'|'.join(DAYS)})-({'|'.join(DAYS)})", text)
    if match is None:
        day = one_of(notes, node, path, DAYS)
        return None if day is None else frozenset((DAYS.index(day),))
    first, last = DAYS.index(match[1]), DAYS.index(match[2])
    return frozenset((first + number) % 7 for number in range((last - first) % 7 + 1))


def _read_zone(notes: Diagnostics, node: YamlNode, path: str) -> str | None:
    text = read_text(notes, node, path)
    if text is None:
        return None
    if wrong := _wrong_zone(text):
        notes.add(node, f"{path}: {wrong}")
        return None
    return text


def _wrong_zone(name: str) -> str:
    try:
        if not re.fullmatch(r"[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+)*", name):
            raise ValueError(name)
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return f"invalid time zone {shown(name)}: {_zone_instead(name)}"
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
    return f"write {cities[0]}" if cities else "for example Europe/Berlin or UTC"


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

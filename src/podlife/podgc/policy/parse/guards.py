"""Guards and deletion windows of a policy file."""

from __future__ import annotations

import re
import zoneinfo
from datetime import time
from functools import partial

from podlife.api.yaml_fields import Diagnostics, YamlNode
from podlife.podgc.policy.model import Guards, Window
from podlife.podgc.policy.parse.numbers import END, SHARE, START, integer
from podlife.podgc.policy.parse.values import (
    BOOLEAN,
    Field,
    Fields,
    InvalidScalarError,
    ValueType,
    fields_schema,
    known_word,
    list_of,
    read_fields,
    reference,
    shown,
    text,
    text_schema,
    write_fields,
)

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_DAY = "|".join(DAYS)
_ZONE = r"^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$"
_UTC = "UTC"
_AT_LEAST_ONE = "use observeOnly: true to delete nothing, or omit it for no limit"
_ANY_TIME = "to allow deletions at any time"


def _read_day(word: str) -> frozenset[int]:
    """One day, or a range, which may include Sunday."""
    match = re.fullmatch(rf"({_DAY})-({_DAY})", word)
    if match is None:
        return frozenset((DAYS.index(known_word(word, DAYS)),))
    first, last = DAYS.index(match[1]), DAYS.index(match[2])
    return frozenset((first + number) % 7 for number in range((last - first) % 7 + 1))


def _read_zone(name: str) -> str:
    try:
        if not re.fullmatch(_ZONE, name):
            raise ValueError(name)
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidScalarError(f"invalid time zone {shown(name)}: {_suggest_zone(name)}") from None
    return name


def _suggest_zone(text: str) -> str:
    known = zoneinfo.available_timezones()
    if not known:
        # Not even UTC is known then.
        return "this system has no time zones at all; install the package tzdata, of the system or of Python"
    folded = {each.lower(): each for each in known}
    if (same := folded.get(text.lower().replace(" ", "_"))) is not None:
        return f"write {same}"
    cities = sorted(each for each in known if each.lower().endswith(f"/{text.lower()}"))
    return f"write {cities[0]}" if cities else "for example Europe/Berlin or UTC"


_DAYS = list_of(
    ValueType(text(_read_day), text_schema("A day, or days.", f"^({_DAY})(-({_DAY}))?$"), DAYS.__getitem__),
    "omit it for every day",
    lambda days: frozenset().union(*days),
)
WINDOW: Fields = {
    "days": Field("days", _DAYS, "Mon, or Mon-Fri."),
    "from": Field("start", START, '"22:00"'),
    "to": Field("end", END, '"06:00"; if not after from, on the next day.'),
    "timezone": Field(
        "zone", ValueType(text(_read_zone), text_schema(pattern=_ZONE)), "Europe/Berlin; default: UTC."
    ),
}
WINDOW_SCHEMA = fields_schema("Days and times of the week.", WINDOW) | {"minProperties": 1}


def _read_window(notes: Diagnostics, node: YamlNode, path: str) -> Window | None:
    before = len(notes.mistakes)
    found, values = read_fields(notes, node, path, WINDOW)
    if len(notes.mistakes) > before:
        return None
    if not found:
        notes.add(node, f"{path} is empty: set days, from or to, or omit windows {_ANY_TIME}")
        return None
    window = Window(**values)
    if "from" in found and "to" in found and window.start == window.end != time(0):
        notes.add(found["to"][0], f"{path}: from and to must differ: omit both for whole days")
        return None
    if "timezone" not in found:
        try:
            _read_zone(_UTC)
        except InvalidScalarError as error:
            notes.add(node, f"{path}: {error}")
            return None
    return window


write_window = partial(write_fields, WINDOW)
_WINDOWS = list_of(ValueType(_read_window, reference("window"), write_window), f"omit it {_ANY_TIME}")
GUARDS: Fields = {
    "perMinute": Field(
        "per_minute", integer(1, _AT_LEAST_ONE), "Maximum number of pods deleted in any minute."
    ),
    "perPass": Field("per_pass", integer(1, _AT_LEAST_ONE), "Maximum number of pods deleted in one pass."),
    "shareOfNamespace": Field(
        "share_of_namespace", SHARE, "If a pass would delete more of a namespace, it deletes none there."
    ),
    "shareOfCluster": Field(
        "share_of_cluster", SHARE, "If a pass would delete more of the cluster, it deletes none."
    ),
    "shareAtLeast": Field(
        "share_at_least",
        integer(0),
        "Shares do not apply up to this number of pods.",
        Guards().share_at_least,
    ),
    "windows": Field("windows", _WINDOWS, "When pods may be deleted; default: always."),
    "observeOnly": Field("is_observing", BOOLEAN, "Only report what would be deleted.", default=False),
}


def read_guards(notes: Diagnostics, node: YamlNode, path: str) -> Guards:
    return Guards(**read_fields(notes, node, path, GUARDS)[1])

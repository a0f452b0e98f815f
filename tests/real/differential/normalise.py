"""Takes out of an answer what must differ between two servers, and keeps what must not.

UIDs, generated names and resourceVersions become symbols named after the step that first showed them, so that
"the same one again" still compares; a resourceVersion also says whether it was the newest then. Times become
distances from the moment they were first seen, in steps of five seconds. managedFields are compared with the
order of their fields, but without times, which also decide the order of entries. The dumps of Go structs that
kube-apiserver puts into some refusals, behind the sentence that says what is wrong, are taken out.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from podlife.api.codec import format_time, parse_time
from podlife.clock import Clock, SystemClock

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_AGE = re.compile(r"(?<![^( ])(\d+[smhdy])+(?= ago\)|$)")
# Service addresses are handed out at random; 10.0.0.0/24 is the range of the servers under test.
_ADDRESS = re.compile(r"\b10\.(0\.0|96\.\d+)\.\d+\b")
_VERSIONS_IN_TEXT = re.compile(
    r"(ResourceVersion in (?:the precondition|record) \(|resource version: |current: |\d \()(\d+)"
)
_DUMPS = [
    (re.compile(r'Invalid value: "\{(?:[^"\\]|\\.)*"'), "Invalid value: <object>"),
    (
        re.compile(r"Invalid value: \{.*\}: field is immutable", re.DOTALL),
        "Invalid value: <object>: field is immutable",
    ),
    (re.compile(r"(Forbidden: [^\n]*)\n.*", re.DOTALL), r"\1 <dump>"),
    # Parts of a definition, which the real server shows in its internal form.
    (
        re.compile(r"Invalid value: [\[{].*[\]}]: (?=must (?:have|contain) |only )"),
        "Invalid value: <object>: ",
    ),
]
_DAY_SECONDS = 86400
_STEP_SECONDS = 5
# How long ago something happened says when we looked, not what the server did. Less than the default grace of a
# pod, though, so that a pod which should have that and has none is seen.
_RECENT_SECONDS = 25


class Normaliser:
    """Holds the symbols of one server in one area."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._symbols: dict[tuple[str, str], str] = {}
        self._names: dict[str, str] = {}
        self._times: dict[tuple[str, str], str] = {}
        self._newest = 0
        self._step = ""
        self._in_step: Counter[str] = Counter()

    def begin(self, step: str) -> None:
        """Symbols that appear from now on are named after this step."""
        self._step = step
        self._in_step.clear()

    def body(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._event(event) for event in value if not _is_idle_bookmark(event)]
        if isinstance(value, dict) and ("items" in value or "rows" in value):
            return {**self._object(value), "metadata": self._list_metadata(value.get("metadata") or {})}
        return self._value(value)

    def text(self, value: str, key: str = "") -> str:
        value = _UUID.sub(lambda match: self._symbol("uid", match[0]), value)
        value = _TIME.sub(lambda match: self._time(match, key), value)
        value = _ADDRESS.sub("<address>", value)
        value = _VERSIONS_IN_TEXT.sub(r"\1<version>", value)
        for dump, short in _DUMPS:
            value = dump.sub(short, value)
        for name, symbol in self._names.items():
            value = value.replace(name, symbol)
        return value

    def _event(self, event: Any) -> Any:
        """A bookmark tells how far the whole store has come, which background writes move at any time."""
        if isinstance(event, dict) and event.get("type") == "BOOKMARK":
            metadata = {**event["object"]["metadata"], "resourceVersion": "<resourceVersion>"}
            event = {**event, "object": {**event["object"], "metadata": metadata}}
        return self.body(event)

    def _value(self, value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return self._object(value)
        if isinstance(value, list):
            return [self._value(item) for item in value]
        return self.text(value, key) if isinstance(value, str) else value

    def _object(self, value: dict[str, Any]) -> dict[str, Any]:
        if value.get("generateName") and value.get("name"):
            self._names.setdefault(value["name"], f"{value['generateName']}<random>")
        result: dict[str, Any] = {}
        # In one order for both servers: a symbol is numbered where it appears first.
        for key, item in sorted(value.items()):
            if key == "selfLink":
                continue
            if key == "causes" and all(cause.get("reason") == "FieldManagerConflict" for cause in item):
                # kube-apiserver lists them by manager, and managers in the order of a Go map.
                result[key] = sorted((self._value(cause) for cause in item), key=json.dumps)
                continue
            if key == "managedFields" and isinstance(item, list):
                result[key] = sorted(map(self._manager, item), key=partial(json.dumps, sort_keys=True))
                continue
            if key == "resourceVersion" and isinstance(item, str):
                result[key] = self._version(item)
            elif key == "deletionTimestamp" and isinstance(value.get("deletionGracePeriodSeconds"), int):
                # When the deletion was asked for: the grace itself is compared as it is.
                asked = parse_time(item) - timedelta(seconds=value["deletionGracePeriodSeconds"])
                result[key] = f"{self.text(format_time(asked), key)} + grace"
            elif key == "cells":
                result[key] = [self._cell(cell) for cell in item]
            else:
                result[key] = self._value(item, key)
        return result

    def _manager(self, entry: dict[str, Any]) -> dict[str, Any]:
        time = {"time": "<time>"} if "time" in entry else {}
        fields = {"fieldsV1": self.text(json.dumps(entry["fieldsV1"]))} if "fieldsV1" in entry else {}
        return {**entry, **time, **fields}

    def _list_metadata(self, metadata: dict[str, Any]) -> dict[str, Any]:
        """A list tells the version of the whole store, which background writes move at any time."""
        hidden = {key: f"<{key}>" for key in ("resourceVersion", "continue") if metadata.get(key)}
        return {**metadata, **hidden}

    def _cell(self, cell: Any) -> Any:
        if isinstance(cell, str):
            return _AGE.sub("<age>", self.text(cell))
        return self._value(cell)

    def _symbol(self, kind: str, value: str) -> str:
        if (kind, value) not in self._symbols:
            self._in_step[kind] += 1
            self._symbols[kind, value] = f"<{kind} {self._in_step[kind]} of {self._step}>"
        return self._symbols[kind, value]

    def _version(self, value: str) -> str:
        if not value.isdigit() or value == "0":
            # Also what was made a symbol before.
            return value
        if ("version", value) not in self._symbols:
            is_newest = int(value) > self._newest
            self._newest = max(self._newest, int(value))
            self._symbol("version", value)
            if not is_newest:
                self._symbols["version", value] += " older"
        return self._symbols["version", value]

    def _time(self, match: re.Match[str], key: str) -> str:
        """What a time was when it was first seen under its key, it stays: later it only seems to grow older."""
        if (key, match[0]) not in self._times:
            seconds = (datetime.fromisoformat(match[0]) - self._clock.now()).total_seconds()
            distance = f"now+{max(0, round(seconds / _STEP_SECONDS) * _STEP_SECONDS)}s"
            if seconds < -_RECENT_SECONDS:
                distance = "long ago"
            form = "micro" if match[1] else "time"
            is_ours = abs(seconds) > _DAY_SECONDS
            self._times[key, match[0]] = match[0] if is_ours else f"<{form} {distance}>"
        return self._times[key, match[0]]


def _is_idle_bookmark(event: Any) -> bool:
    """Bookmarks come when the server likes; only the one that ends the initial events has its place."""
    if not isinstance(event, dict) or event.get("type") != "BOOKMARK":
        return False
    return not dig(event, "object.metadata.annotations")


def dig(value: Any, path: str) -> Any:
    """What stands at a dotted path (`items.0.metadata.uid`), or None."""
    for key in path.split("."):
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value

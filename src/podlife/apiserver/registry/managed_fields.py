"""`metadata.managedFields`: the entries of an object as managers and their sets, and back.

A manager is a name, an operation, a subresource and, for updates, an API version: one client can have several entries.
Entries that the server wrote are trusted; entries of clients are checked.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from msgspec import Raw
from msgspec.json import Decoder, decode

from podlife.api.codec import Object
from podlife.api.fieldpath import (
    FieldSet,
    ManagedSet,
    Managers,
    Versions,
    from_outside,
    in_order,
    union,
    with_atomics,
)
from podlife.memory import cache_values

_MOST_UPDATERS = 10
_OLD_UPDATES = "ancient-changes"
# Of a set that is remembered.
_SHORT_BYTES = 8 * 1024
_decoder = Decoder(list[dict[str, Raw]])


class ManagerId(NamedTuple):
    """Who owns fields. `api_version` is empty for appliers: they keep their entry when they use another version."""

    manager: str
    operation: str
    api_version: str = ""
    subresource: str = ""

    def __str__(self) -> str:
        """As a conflict names it."""
        text = f'"{self.manager}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return f"{text} using {self.api_version}" if self.operation == "Update" else text


@dataclass(slots=True)
class Managed:
    """The managers of an object and when each wrote last."""

    managers: Managers = field(default_factory=dict)
    times: dict[ManagerId, str | None] = field(default_factory=dict)
    # The entries that they were read from: one that did not change is written as it was.
    _entries: dict[ManagerId, tuple[ManagedSet, str | None, Object]] = field(default_factory=dict)

    @classmethod
    def of(cls, entries: Iterable[Object]) -> Managed:
        """Read the entries that the server stored."""
        found = cls()
        for entry in entries:
            found._add(entry, entry.get("fieldsV1") or {})
        return found

    @classmethod
    def from_outside(cls, entries: Iterable[Object], versions: Versions) -> Managed:
        """Read the entries of a client; raises ValueError."""
        found = cls()
        for entry in entries:
            if entry.get("operation") not in ("Apply", "Update"):
                raise ValueError("operation must be `Apply` or `Update`")
            if not entry.get("apiVersion"):
                raise ValueError("apiVersion must not be empty")
            if entry.get("fieldsType") != "FieldsV1":
                raise ValueError("fieldsType must be `FieldsV1`")
            fields = from_outside(entry.get("fieldsV1"))
            if (version := versions.get(entry["apiVersion"])) is not None:
                fields = with_atomics(fields, version.kind)
            found._add({**entry, "fieldsV1": fields}, fields)
        return found

    def _add(self, entry: Object, fields: FieldSet) -> None:
        applied = entry["operation"] == "Apply"
        version = entry["apiVersion"]
        manager = ManagerId(
            entry.get("manager", ""),
            entry["operation"],
            "" if applied else version,
            entry.get("subresource", ""),
        )
        managed = ManagedSet(fields, version, applied)
        self.managers[manager] = managed
        self.times[manager] = entry.get("time")
        self._entries[manager] = managed, entry.get("time"), entry

    def entries(self) -> list[Object]:
        """As the object has them: appliers first, then by time and name."""
        found = [self._entry(manager, managed) for manager, managed in self.managers.items()]
        found.sort(key=_position)
        return found

    def _entry(self, manager: ManagerId, managed: ManagedSet) -> Object:
        time = self.times.get(manager)
        before = self._entries.get(manager)
        if before is not None and before[0] == managed and (time or not before[1]):
            return before[2] if before[1] == time else {**before[2], "time": time}
        return new_entry(manager, managed.api_version, time, in_order(managed.fields))

    def cap_updaters(self) -> None:
        """Unite the oldest updaters, so that many clients do not make an object grow without end."""
        updaters = [manager for manager, managed in self.managers.items() if not managed.applied]
        excess = len(updaters) - _MOST_UPDATERS
        if excess <= 0:
            return
        updaters.sort(key=lambda each: (self.times.get(each) or "", each))
        first: dict[str, ManagerId] = {}
        for manager in updaters:
            if excess <= 0:
                return
            managed = self.managers[manager]
            version = managed.api_version
            if version not in first:
                first[version] = manager
                continue
            bucket = ManagerId(_OLD_UPDATES, "Update", version)
            if bucket not in self.managers:
                self.managers[bucket] = self.managers.pop(first[version])
            fields = union(managed.fields, self.managers[bucket].fields)
            self.managers[bucket] = ManagedSet(fields, version)
            del self.managers[manager]
            # The more recent one.
            self.times[bucket] = self.times.get(manager)
            excess -= 1


def new_entry(manager: ManagerId, api_version: str, time: str | None, fields: FieldSet) -> Object:
    """An entry for a set that is in order."""
    entry: Object = {"manager": manager.manager} if manager.manager else {}
    entry |= {"operation": manager.operation, "apiVersion": api_version}
    if time is not None:
        entry["time"] = time
    entry |= {"fieldsType": "FieldsV1", "fieldsV1": fields}
    if manager.subresource:
        entry["subresource"] = manager.subresource
    return entry


def decode_entries(data: Raw) -> list[Object]:
    """The entries that the server stored. Objects made from one template have the same sets, which are never changed:
    they share them."""
    return [
        {
            name: _shared_set(bytes(raw)) if name == "fieldsV1" and len(raw) <= _SHORT_BYTES else decode(raw)
            for name, raw in entry.items()
        }
        for entry in _decoder.decode(data)
    ]


@cache_values
def _shared_set(raw: bytes) -> Any:
    return decode(raw)


def _position(entry: Object) -> tuple[Any, ...]:
    return (
        entry["operation"],
        entry.get("time") or "",
        entry.get("manager", ""),
        entry["apiVersion"],
        entry.get("subresource", ""),
    )


def without_managers(obj: Object) -> Object:
    meta = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    return {**obj, "metadata": meta}


def is_reset(entries: Any) -> bool:
    """Whether a client asks to forget all managers: an empty list, or one empty entry."""
    return isinstance(entries, list) and (not entries or entries == [{}])


def mark_reset(obj: Object) -> None:
    """Keep an empty list recognizable: the schema check removes empty values."""
    meta = obj.get("metadata")
    if isinstance(meta, dict) and meta.get("managedFields") == []:
        meta["managedFields"] = [{}]


def keep_times(new: Object, old: Object) -> None:
    """If nothing but the times of managers changed, nothing did: take back the new times (upstream's
    IgnoreManagedFieldsTimestampsTransformer)."""
    mine, theirs = new["metadata"].get("managedFields"), old["metadata"].get("managedFields")
    if not mine or not theirs or len(mine) != len(theirs) or mine == theirs:
        return
    for one, other in zip(mine, theirs, strict=True):
        if one != other and {**one, "time": None} != {**other, "time": None}:
            return
    new["metadata"]["managedFields"] = theirs
    if new != old:
        new["metadata"]["managedFields"] = mine

"""Who owns which fields after a write: upstream's merge.Updater.

Managers are known by an identifier that only the caller understands. An object has one form per API version; a manager
has the fields of the version that it wrote, so a change is compared in every version that a manager uses (`Versions`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from podlife.api.fieldpath.compare import Comparison, compare
from podlife.api.fieldpath.elements import SELF
from podlife.api.fieldpath.field_set import (
    FieldSet,
    Path,
    difference,
    intersection,
    paths,
    union,
)
from podlife.api.fieldpath.merge import merge, remove_items
from podlife.api.fieldpath.merge_type import LIST, MAP, MergeType
from podlife.api.fieldpath.typed import child_type, field_set_of, with_named_fields
from podlife.errors import PodlifeError

Object = dict[str, Any]
Reset = Callable[[FieldSet], FieldSet]
"""Leaves out of a set the fields that the endpoint does not write: the status of the main resource, for example."""


@dataclass(frozen=True, slots=True)
class ManagedSet:
    """The fields of one manager."""

    fields: FieldSet
    api_version: str
    applied: bool = False


Managers = dict[Any, ManagedSet]


class FieldConflictError(PodlifeError):
    """An apply would change fields of other managers: those of each, by identifier."""

    def __init__(self, fields: dict[Any, FieldSet]) -> None:
        super().__init__("apply conflict")
        self.fields = fields

    def conflicts(self) -> list[tuple[Any, Path]]:
        return [(manager, path) for manager in sorted(self.fields) for path in paths(self.fields[manager])]


@dataclass(frozen=True, slots=True)
class Version:
    """One API version of a kind. `convert` makes its form of an object from the stored one; `may_change` says that
    sets may have been written when the type was another one."""

    kind: MergeType
    convert: Callable[[Object], Object] | None = None
    may_change: bool = False

    def of(self, obj: Object) -> Object:
        return obj if self.convert is None else self.convert(obj)


Versions = dict[str, Version]


@dataclass(frozen=True, slots=True)
class Updater:
    """Decides for the requests of one endpoint. Objects are in the form of the stored version, without
    managedFields; `api_version` is that of the request. Nothing given is changed."""

    versions: Versions
    api_version: str
    reset: Reset | None = None

    def update(self, live: Object, new: Object, managers: Managers, manager: Any) -> Managers:
        """The managers after a write of the whole object. Raises TypedValueError."""
        known = self._reconciled(managers)
        others, comparison = self._take(live, new, known, manager, force=True)
        before = others.get(manager)
        fields = {} if before is None else difference(before.fields, comparison.removed)
        fields = self._written(union(union(fields, comparison.modified), comparison.added))
        others.pop(manager, None)
        if fields:
            others[manager] = ManagedSet(fields, self.api_version)
        return others

    def apply(
        self, live: Object, applied: Object, managers: Managers, manager: Any, *, force: bool
    ) -> tuple[Object, Managers]:
        """The object and the managers after an apply, for which `applied` has been checked.

        Raises FieldConflictError and TypedValueError."""
        known = self._reconciled(managers)
        kind = self.versions[self.api_version].kind
        merged = merge(live, applied, kind)
        last = known.get(manager)
        known[manager] = ManagedSet(
            self._written(field_set_of(applied, kind)), self.api_version, applied=True
        )
        new = self._pruned(merged, known, last, kind)
        left, _ = self._take(live, new, known, manager, force=force)
        return new, left

    def _written(self, fields: FieldSet) -> FieldSet:
        return fields if self.reset is None else self.reset(fields)

    def _reconciled(self, managers: Managers) -> Managers:
        """The managers whose version exists, with sets that fit the types as they are now."""
        found: Managers = {}
        for manager, managed in managers.items():
            version = self.versions.get(managed.api_version)
            if version is None:
                continue
            found[manager] = managed
            if version.may_change:
                found[manager] = replace(managed, fields=with_atomics(managed.fields, version.kind))
        return found

    def _take(
        self, live: Object, new: Object, managers: Managers, manager: Any, *, force: bool
    ) -> tuple[Managers, Comparison]:
        """Take what changes from its managers, or raise FieldConflictError."""
        mine = self._compare(live, new, self.api_version)
        compared = {self.api_version: mine}
        conflicts: dict[Any, FieldSet] = {}
        left = dict(managers)
        for name, managed in managers.items():
            if name == manager:
                continue
            if managed.api_version not in compared:
                compared[managed.api_version] = self._compare(live, new, managed.api_version)
            comparison = compared[managed.api_version]
            if comparison.is_same:
                continue
            taken = intersection(managed.fields, union(comparison.modified, comparison.added))
            if taken:
                conflicts[name] = taken
            fields = difference(difference(managed.fields, taken), comparison.removed)
            if fields is not managed.fields:
                left[name] = replace(managed, fields=fields)
        if conflicts and not force:
            raise FieldConflictError(conflicts)
        return {name: managed for name, managed in left.items() if managed.fields}, mine

    def _compare(self, live: Object, new: Object, api_version: str) -> Comparison:
        version = self.versions[api_version]
        found = compare(version.of(live), version.of(new), version.kind)
        if self.reset is None or found.is_same:
            return found
        return Comparison(*map(self.reset, found))

    def _pruned(self, merged: Object, managers: Managers, last: ManagedSet | None, kind: MergeType) -> Object:
        """Without what the manager applied before and does not mention any more, unless others own it."""
        if last is None or not last.fields or last.api_version != self.api_version:
            return merged
        was = with_named_fields(last.fields, kind)
        pruned = remove_items(merged, was, kind)
        owned: FieldSet = {}
        for managed in managers.values():
            if managed.api_version == self.api_version:
                owned = union(owned, managed.fields)
        everything = with_named_fields(field_set_of(merged, kind), kind)
        kept = union(with_named_fields(field_set_of(pruned, kind), kind), with_named_fields(owned, kind))
        pruned = remove_items(merged, difference(everything, kept), kind)
        # What was removed but never owned by the manager comes back.
        kept = with_named_fields(field_set_of(pruned, kind), kind)
        gone = intersection(difference(everything, kept), was)
        result: Object = remove_items(merged, gone, kind) or {}
        return result


def with_atomics(fields: FieldSet, kind: MergeType) -> FieldSet:
    """The set with every atomic field as one member: a type may have become atomic since the set was written."""
    changed: FieldSet = {}
    for element, node in fields.items():
        if not node or element == SELF:
            continue
        below = kind.element if kind.form == LIST else child_type(kind, element[2:])
        if below is None or below.form not in (MAP, LIST):
            continue
        left: FieldSet = {} if below.atomic else with_atomics(node, below)
        if left is not node:
            changed[element] = left
    return {**fields, **changed} if changed else fields

"""Who owns which fields after a write: upstream's merge.Updater.

Managers are known by an identifier that only the caller understands. An object has one form per API version; a manager
has the fields of the version that it wrote, so a change is compared in every version that a manager uses (`Versions`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from podlife.api.fieldpath.compare import Comparison, compare
from podlife.api.fieldpath.elements import SELF
from podlife.api.fieldpath.field_set import (
    FieldSet,
    Path,
    difference,
    intersection,
    paths,
    recursive_difference,
    union,
)
from podlife.api.fieldpath.merge import merge, remove_items
from podlife.api.fieldpath.merge_type import LIST, MAP, MergeType, merge_type_of_kind
from podlife.api.fieldpath.typed import (
    TypedValueError,
    check_typed,
    child_type,
    field_set_of,
    with_named_fields,
)
from podlife.errors import PodlifeError

Object = dict[str, Any]


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
    """One API version of a kind. `convert` makes its form of an object from the stored one.

    The types of a custom kind may change (`may_change`): sets and objects may have been written when they were others.
    Its objects look the same in all versions, unless `Updater.convert` is set, and are checked against the type of each
    version that uses them."""

    kind: MergeType
    convert: Callable[[Object], Object] | None = None
    may_change: bool = False

    def of(self, obj: Object) -> Object:
        return obj if self.convert is None else self.convert(obj)


Versions = dict[str, Version]
Convert = Callable[[Object, str, str], Object]


@dataclass(frozen=True, slots=True)
class Updater:
    """Decides for the requests of one endpoint. Objects are in the form of the stored version, without
    managedFields; `api_version` is that of the request. `reset` has, by version, the fields that the endpoint does not
    write: the status of the main resource, for example. Nothing given is changed."""

    versions: Versions
    api_version: str
    reset: Mapping[str, FieldSet] = field(default_factory=dict)
    # Converts an object from one version of a custom kind to another, if they differ. Raises TypedValueError.
    convert: Convert | None = None

    def update(self, live: Object, new: Object, managers: Managers, manager: Any) -> Managers:
        """The managers after a write of the whole object. Raises TypedValueError."""
        # What a write leaves as it was need not be checked twice.
        rest = {name: value for name, value in live.items() if name not in new or new[name] != value}
        for each in (new, live if self.convert else rest):
            self._check("failed to convert object", each, self.api_version, may_repeat=True)
        known = self._reconciled(live, managers)
        others, comparison = self._take(live, new, known, manager, force=True)
        before = others.get(manager)
        fields = {} if before is None else self._written(difference(before.fields, comparison.removed))
        fields = union(fields, comparison.written)
        others.pop(manager, None)
        if fields:
            others[manager] = ManagedSet(fields, self.api_version)
        return others

    def apply(
        self, live: Object, applied: Object, managers: Managers, manager: Any, *, force: bool
    ) -> tuple[Object, Managers]:
        """The object and the managers after an apply, for which `applied` has been checked.

        Raises FieldConflictError and TypedValueError."""
        kind = self.versions[self.api_version].kind
        known = self._reconciled(live, managers)
        try:
            merged = merge(live, applied, kind)
        except TypedValueError as error:
            raise TypedValueError(f"failed to merge config: {error}") from None
        last = known.get(manager)
        known[manager] = ManagedSet(
            self._written(field_set_of(applied, kind)), self.api_version, applied=True
        )
        new = self._pruned(merged, known, last)
        left, _ = self._take(live, new, known, manager, force=force)
        return new, left

    def _written(self, fields: FieldSet) -> FieldSet:
        return recursive_difference(fields, self.reset.get(self.api_version, {}))

    def _check(self, failure: str, obj: Object, api_version: str, *, may_repeat: bool = False) -> None:
        version = self.versions[api_version]
        if version.may_change:
            try:
                check_typed(self._in(obj, api_version), version.kind, may_repeat=may_repeat)
            except TypedValueError as error:
                raise TypedValueError(f"{failure}: {error}") from None

    def _checked(self, failure: str, obj: Object, api_version: str, given: str) -> Object:
        """An object of the version `given` in another, checked by its type; raises TypedValueError."""
        if api_version == given:
            return obj
        try:
            found = self._in(obj, api_version, given)
            check_typed(found, self.versions[api_version].kind)
        except TypedValueError as error:
            raise TypedValueError(f"failed to prune fields: {failure}: {error}") from None
        return found

    def _reconciled(self, live: Object, managers: Managers) -> Managers:
        """The managers whose version exists, with sets that fit the types as they are now."""
        found: Managers = {}
        for manager, managed in managers.items():
            version = self.versions.get(managed.api_version)
            if version is None:
                if self.versions[self.api_version].may_change:
                    raise TypedValueError(
                        f"request to convert CR to an invalid group/version: {managed.api_version}"
                    )
                continue
            fields = managed.fields
            if version.may_change:
                if managed.api_version != self.api_version:
                    check_typed(self._in(live, managed.api_version), version.kind)
                fields = with_atomics(fields, version.kind)
            found[manager] = managed if fields is managed.fields else replace(managed, fields=fields)
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
                self._check("failed to convert new object", new, managed.api_version)
                compared[managed.api_version] = self._compare(live, new, managed.api_version)
            comparison = compared[managed.api_version]
            if comparison.is_same:
                continue
            taken = intersection(managed.fields, comparison.written)
            if taken:
                conflicts[name] = taken
            fields = difference(difference(managed.fields, taken), comparison.removed)
            if fields is not managed.fields:
                left[name] = replace(managed, fields=fields)
        if conflicts and not force:
            raise FieldConflictError(conflicts)
        return {name: managed for name, managed in left.items() if managed.fields}, mine

    def _compare(self, live: Object, new: Object, api_version: str) -> Comparison:
        kind = self.versions[api_version].kind
        found = compare(self._in(live, api_version), self._in(new, api_version), kind)
        return found.without(self.reset.get(api_version, {}))

    def _in(self, obj: Object, api_version: str, given: str = "") -> Object:
        """An object of the version `given`, or of the request, in another."""
        if self.convert is not None:
            return self.convert(obj, given or self.api_version, api_version)
        return self.versions[api_version].of(obj)

    def _pruned(self, merged: Object, managers: Managers, last: ManagedSet | None) -> Object:
        """Without what the manager applied before and does not mention any more, unless others own it."""
        if last is None or not last.fields:
            return merged
        version = self.versions[last.api_version]
        if last.api_version != self.api_version and not version.may_change:
            return merged
        kind, at = version.kind, last.api_version
        failure = "failed to convert merged object to last applied version"
        merged = first = self._checked(failure, merged, at, self.api_version)
        was = with_named_fields(last.fields, kind)
        everything = with_named_fields(field_set_of(merged, kind), kind)
        pruned = remove_items(merged, was, kind)
        for owner, owned in self._owned(managers, at).items():
            of = self.versions[owner].kind
            failure = "failed add back owned items: failed to convert {} object at version " + owner
            merged = self._checked(failure.format("merged"), merged, owner, at)
            pruned = self._checked(failure.format("pruned"), pruned, owner, at)
            at = owner
            known = everything if of is kind else with_named_fields(field_set_of(merged, of), of)
            kept = union(with_named_fields(field_set_of(pruned, of), of), with_named_fields(owned, of))
            pruned = remove_items(merged, difference(known, kept), of)
        # What was removed but never owned by the manager comes back.
        failure = "failed add back dangling items: failed to convert pruned object to last applied version"
        pruned = self._checked(failure, pruned, last.api_version, at)
        kept = with_named_fields(field_set_of(pruned, kind), kind)
        gone = intersection(difference(everything, kept), was)
        result: Object = remove_items(first, gone, kind) or {}
        try:
            return self._in(result, self.api_version, last.api_version)
        except TypedValueError as error:
            raise TypedValueError(f"failed to prune fields: {error}") from None

    def _owned(self, managers: Managers, first: str) -> dict[str, FieldSet]:
        """The fields of all managers by version, `first` before others: those whose objects look the same."""
        found: dict[str, FieldSet] = {first: {}}
        for managed in managers.values():
            if managed.api_version == first or self.versions[managed.api_version].may_change:
                found[managed.api_version] = union(found.get(managed.api_version, {}), managed.fields)
        return found


def updater_of_kind(api_version: str, kind: str) -> Updater:
    """For a built-in kind in its only version."""
    return Updater({api_version: Version(merge_type_of_kind(api_version, kind))}, api_version)


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

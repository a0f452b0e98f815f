"""Tracks who manages which fields of an object: upstream's field manager, for every verb that writes.

`track` runs after defaulting and before admission, as upstream: what admission and the strategy change later has no
manager. An object gets managers when it is created, or at its first apply (`before-first-apply` then owns what it has);
a client can remove them all with an empty list. A deletion and a binding change nothing here.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import msgspec

from podlife.api import schema
from podlife.api.codec import Object, decode_object, encode, format_time, is_same
from podlife.api.fieldpath import (
    FieldConflictError,
    FieldSet,
    ManagedSet,
    MergeType,
    TypedValueError,
    Updater,
    check_typed,
    compare,
    difference,
    field_set_of,
    has,
    in_order,
    of_paths,
    show_path,
    union,
    zero_object,
)
from podlife.api.fieldpath.elements import go_json
from podlife.apiserver.registry.managed_fields import (
    Managed,
    ManagerId,
    is_reset,
    new_entry,
    without_managers,
)
from podlife.apiserver.registry.object_codec import with_type
from podlife.apiserver.registry.request_body import bad_request, check_type
from podlife.apiserver.registry.request_scope import RequestScope
from podlife.apiserver.registry.updaters import applier_for, applier_of, updater_of
from podlife.apiserver.resource import Resource
from podlife.errors import ApiError, ConflictError
from podlife.memory import cache_values

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_BEFORE_FIRST_APPLY = "before-first-apply"
_LONGEST_NAME_BYTES = 128
# Of a part of an object whose fields are remembered.
_SHORT_BYTES = 8 * 1024
# Written by the server itself: they have no manager.
_SYSTEM_METADATA = (
    *("name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation"),
    *("managedFields", "resourceVersion"),
)
_SYSTEM_FIELDS: FieldSet = of_paths(
    ("f:apiVersion",),
    ("f:kind",),
    ("f:metadata",),
    *(("f:metadata", f"f:{name}") for name in _SYSTEM_METADATA),
)
_CURRENT = ManagerId("current-operation", "")


def _manager_name(scope: RequestScope) -> str:
    """The manager that the request names, or the program in its User-Agent."""
    return scope.request.query.get("fieldManager") or _program(scope.request.headers.get("User-Agent", ""))


@cache_values
def _program(user_agent: str) -> str:
    program = user_agent.partition("/")[0]
    printable = "".join(letter for letter in program if letter.isprintable())
    return printable.encode()[:_LONGEST_NAME_BYTES].decode(errors="ignore")


def track(scope: RequestScope, new: Object, old: Object | None) -> None:
    """Set the managers of an object after a create, an update or a patch; `old` is None for a new one.

    Never fails: upstream removes managers that it cannot compute."""
    meta = new["metadata"]
    sent = meta.pop("managedFields", None)
    live = (old or {}).get("metadata", {}).get("managedFields") or ()
    if old is not None and not live and not sent:
        return
    resource = scope.resource
    # As upstream: in the version of the request, from which others are converted.
    # A new object has managers in other versions only if the client says so: these are not worth a webhook's call.
    updater = applier_of(resource, scope.subresource) if old is None else applier_for(scope)
    managed = _managed(sent, live, updater, is_view=bool(scope.subresource))
    if not managed.managers and (old is not None or not scope.registry.tracks_managers):
        return
    manager, now = updating_manager(scope, updater), format_time(scope.now)
    try:
        if managed.managers:
            if old is None:
                before = zero_object(resource.api_version, resource.kind)
            else:
                before = _shown_as(resource, without_managers(old))
            update(updater, managed, before, _shown_as(resource, new), manager, now)
            entries = managed.entries()
        else:
            fields = _fields_of_new(resource, updater, _shown_as(resource, new))
            entries = [new_entry(manager, updater.api_version, now, fields)] if fields else []
    except (TypedValueError, RecursionError):
        return
    if entries:
        meta["managedFields"] = entries


def _fields_of_new(resource: Resource, updater: Updater, new: Object) -> FieldSet:
    """What the creator of an object manages, in order. Raises TypedValueError."""
    if resource.custom is not None or "spec" not in new:
        return _fields_of_part(resource, updater, new)
    # Objects with a spec are often made from one template: they differ in their names.
    meta = {name: value for name, value in new["metadata"].items() if name not in _SYSTEM_METADATA}
    rest = {name: value for name, value in new.items() if name != "spec"} | {"metadata": meta}
    found: FieldSet = {}
    for part in (rest, {"spec": new["spec"]}):
        data = encode(part)
        is_short = len(data) <= _SHORT_BYTES
        found |= _cached_fields(resource, data) if is_short else _fields_of_part(resource, updater, part)
    return {element: found[element] for element in sorted(found)}


@cache_values
def _cached_fields(resource: Resource, data: bytes) -> FieldSet:
    return _fields_of_part(resource, applier_of(resource, ""), decode_object(data))


def _fields_of_part(resource: Resource, updater: Updater, part: Object) -> FieldSet:
    """The fields of a new object that has these top-level fields."""
    zero = zero_object(resource.api_version, resource.kind)
    before = {name: zero[name] for name in part if name in zero}
    managers = updater.update(before, part, {}, _CURRENT)
    return in_order(difference(managers[_CURRENT].fields, _SYSTEM_FIELDS)) if managers else {}


def _shown_as(resource: Resource, obj: Object) -> Object:
    return obj if resource.from_stored is None else resource.from_stored(obj)


def _managed(sent: Any, live: Any, updater: Updater, *, is_view: bool) -> Managed:
    """The managers before the write: what the client sent counts, if it is valid. Through a subresource it does not
    count: that would let who may write only the status take the managers of the spec away."""
    if is_view or not sent or sent == live:
        return Managed.of(live)
    if is_reset(sent):
        return Managed()
    try:
        return Managed.from_outside(sent, updater.versions)
    except ValueError:
        return Managed.of(live)


def update(
    updater: Updater, managed: Managed, old: Object, new: Object, manager: ManagerId, now: str
) -> None:
    """Give the changed fields to a manager. Raises TypedValueError."""
    managers = updater.update(old, new, managed.managers, _CURRENT)
    mine = managers.pop(_CURRENT, None)
    managed.managers = managers
    if mine is not None and (fields := difference(mine.fields, _SYSTEM_FIELDS)):
        if manager in managers:
            fields = union(managers[manager].fields, fields)
        managers[manager] = ManagedSet(fields, updater.api_version)
        managed.times[manager] = now
    managed.cap_updaters()


def track_own(resource: Resource, subresource: str, new: Object, old: Object, now: str) -> None:
    """Give what the server itself changed, as if it had used its own API, to `kube-apiserver`."""
    entries = old["metadata"].get("managedFields")
    if entries:
        managed, updater = Managed.of(entries), updater_of(resource, subresource)
        manager = ManagerId("kube-apiserver", "Update", resource.api_version, subresource)
        update(updater, managed, without_managers(old), without_managers(new), manager, now)
        new["metadata"]["managedFields"] = managed.entries()


def updating_manager(scope: RequestScope, updater: Updater) -> ManagerId:
    """Who makes this request, if it is not an apply."""
    name = _manager_name(scope) or "unknown"
    return ManagerId(name, "Update", updater.api_version, scope.subresource)


def apply(scope: RequestScope, updater: Updater, live: Object, config: Object, *, force: bool) -> Object:
    """The live object, without kind and apiVersion, after an apply. Nothing given is changed.

    Raises ApiError: 409 for conflicts with other managers, 500 for an object that does not fit its schema."""
    kind = updater.versions[updater.api_version].kind
    meta = config.get("metadata")
    if isinstance(meta, dict) and meta.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    name = scope.request.query.get("fieldManager")
    before = without_managers(live)
    _check_typed("patch", config, config, kind)
    if scope.resource.custom is not None and scope.subresource != "scale":
        _check_typed("live", with_type(scope.resource, before), before, kind, may_repeat=True)
    managed = Managed.of(live["metadata"].get("managedFields") or ())
    if not managed.managers:
        view = "Scale" if scope.subresource == "scale" else scope.resource.kind
        first = ManagerId(_BEFORE_FIRST_APPLY, "Update", updater.api_version, scope.subresource)
        zero = zero_object(updater.api_version, view)
        update(updater, managed, zero, before, first, format_time(scope.now))
    me = ManagerId(name, "Apply", "", scope.subresource)
    try:
        new, managers = _apply(updater, before, config, managed, me, force=force)
    except TypedValueError as error:
        raise ApiError(str(error), reason="") from None
    if (mine := managers.get(me)) is not None:
        fields = difference(mine.fields, _SYSTEM_FIELDS)
        if fields:
            managers[me] = ManagedSet(fields, mine.api_version, applied=True)
        else:
            del managers[me]
    managed.managers = managers
    if is_same(new, before):
        new = deepcopy(before)
    else:
        managed.times[me] = format_time(scope.now)
        new = _decoded(scope, updater, new)
    if name == "kubectl" and (new["metadata"].get("annotations") or {}).get(_LAST_APPLIED):
        new["metadata"]["annotations"][_LAST_APPLIED] = _last_applied(config)
    if managed.managers:
        new["metadata"]["managedFields"] = managed.entries()
    return new


def _check_typed(what: str, named: Object, obj: Object, kind: MergeType, *, may_repeat: bool = False) -> None:
    try:
        check_typed(obj, kind, may_repeat=may_repeat)
    except TypedValueError as error:
        raise ApiError(
            f"failed to create typed {what} object ({_shown(named)}): {error}", reason=""
        ) from None


def _apply(
    updater: Updater, live: Object, config: Object, managed: Managed, me: ManagerId, *, force: bool
) -> tuple[Object, dict[Any, ManagedSet]]:
    """As `Updater.apply`, and with upstream's way from client-side apply: kubectl owns what it applied before, as the
    annotation says, so these fields do not conflict."""
    content = {name: value for name, value in config.items() if name not in ("kind", "apiVersion")}
    try:
        return updater.apply(live, content, managed.managers, me, force=force)
    except FieldConflictError as error:
        conflicts = error.conflicts()
        if me.manager == "kubectl" and (allowed := _applied_before(updater, live)) is not None:
            conflicts = [(manager, path) for manager, path in conflicts if not has(allowed, path)]
        if conflicts:
            raise _conflict(conflicts) from None
    return updater.apply(live, content, managed.managers, me, force=True)


def _applied_before(updater: Updater, live: Object) -> FieldSet | None:
    """The fields that client-side apply set and that still have its values."""
    text = (live["metadata"].get("annotations") or {}).get(_LAST_APPLIED)
    if not text:
        return None
    kind = updater.versions[updater.api_version].kind
    try:
        last = decode_object(text.encode())
        if last.get("apiVersion") != updater.api_version:
            return None
        check_typed(last, kind)
        changed = compare(last, live, kind)
        fields = field_set_of(last, kind)
    except (TypedValueError, ValueError, AttributeError):
        return None
    for each in (changed.modified, changed.added, changed.removed):
        fields = difference(fields, each)
    return fields


def _conflict(conflicts: list[tuple[Any, tuple[str, ...]]]) -> ApiError:
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {manager}", "field": show_path(path)}
        for manager, path in conflicts
    ]
    if len(conflicts) == 1:
        [(manager, path)] = conflicts
        message = f"Apply failed with 1 conflict: conflict with {manager}: {show_path(path)}"
    else:
        lines: dict[str, list[str]] = {}
        for manager, path in conflicts:
            lines.setdefault(f"conflicts with {manager}:", []).append(f"- {show_path(path)}")
        text = "\n".join("\n".join([head, *rest]) for head, rest in lines.items())
        message = f"Apply failed with {len(conflicts)} conflicts: {text}"
    return ConflictError(message, details={"causes": causes})


def _decoded(scope: RequestScope, updater: Updater, new: Object) -> Object:
    """The merged object in the shape of its type, with defaults, sharing nothing."""
    resource = scope.resource
    is_view = updater.api_version != resource.api_version
    kind, api_version = ("Scale", updater.api_version) if is_view else (resource.kind, resource.api_version)
    obj: Object = {"kind": kind, "apiVersion": api_version, **new}
    try:
        if resource.custom is None or is_view:
            check_type(resource, api_version, kind, obj)
        else:
            # As upstream: it fits its schema, and nulls stay for validation.
            obj = deepcopy(obj)
            schema.check_metadata(obj.setdefault("metadata", {}))
    except schema.DecodeError as error:
        shown = _shown(obj)
        raise ApiError(
            f"failed to convert new object ({shown}) to proper version: {error}", reason=""
        ) from None
    del obj["kind"], obj["apiVersion"]
    obj.setdefault("metadata", {})
    if not is_view:
        scope.strategy.default(obj)
    return obj


def _shown(obj: Mapping[str, Any]) -> str:
    """How upstream names an object in messages about its schema."""
    meta = obj.get("metadata")
    meta = meta if isinstance(meta, dict) else {}
    group, _, version = str(obj.get("apiVersion", "")).rpartition("/")
    where = f"{meta.get('namespace', '')}/{meta.get('name', '')}"
    return f"{where}; {group}/{version}, Kind={obj.get('kind', '')}"


def _last_applied(config: Object) -> str:
    """The annotation that client-side apply would have written."""
    obj = deepcopy(config)
    meta = obj.get("metadata") or {}
    if isinstance(meta.get("annotations"), dict):
        meta["annotations"].pop(_LAST_APPLIED, None)
    ordered = msgspec.to_builtins(obj, order="deterministic")
    return go_json(ordered) + "\n"

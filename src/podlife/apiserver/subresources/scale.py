"""The scale subresource: current and desired replicas of a workload, in the same form for all kinds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cache, partial
from typing import Any

from podlife.api import schema
from podlife.api.codec import Object, encode, format_time
from podlife.api.field_errors import bad_value, invalid
from podlife.api.fieldpath import (
    ManagedSet,
    Path,
    Updater,
    difference,
    has,
    of_paths,
    updater_of_kind,
)
from podlife.api.selectors import label_selector_from_dict
from podlife.apiserver.admission import Operation
from podlife.apiserver.admission.webhooks import View
from podlife.apiserver.registry import RequestScope, apply, field_managers, response
from podlife.apiserver.registry.conversion import record_in_version
from podlife.apiserver.registry.field_managers import updating_manager
from podlife.apiserver.registry.managed_fields import Managed, without_managers
from podlife.apiserver.registry.object_codec import decode_stored
from podlife.apiserver.registry.patch import Patch
from podlife.apiserver.registry.request_body import check_name, media_type, read_typed
from podlife.apiserver.registry.update import Transform, change_stored
from podlife.apiserver.registry.webhook_admission import WebhookAdmission
from podlife.apiserver.registry.worker_threads import offload
from podlife.apiserver.resource import Resource
from podlife.apiserver.strategies.field_checks import accessed
from podlife.errors import ApiError
from podlife.wire import Response

_KIND, _VERSION = "Scale", "autoscaling/v1"
_PATH = ("f:spec", "f:replicas")
_REPLICAS = of_paths(_PATH)


async def get_scale(scope: RequestScope) -> Response:
    record = await record_in_version(scope.resource, scope.find())
    obj = decode_stored(scope.resource, record.value)
    return Response(body=encode(_scale_of(scope.resource, obj)))


async def update_scale(scope: RequestScope) -> Response:
    dry_run = scope.dry_run("UpdateOptions")
    scale = await offload(lambda: read_typed(scope, _KIND, _VERSION), scope.request.body)
    check_name(scope, scale.get("metadata", {}).get("name", ""))
    return await _apply(scope, lambda _: scale, dry_run=dry_run)


async def patch_scale(scope: RequestScope) -> Response:
    if media_type(scope.request) == apply.MEDIA_TYPE:
        return await _apply_scale(scope)
    dry_run = scope.dry_run("PatchOptions")
    change = await offload(lambda: Patch.from_request(scope), scope.request.body)
    return await _apply(scope, lambda old: change.apply(scope, old), dry_run=dry_run)


async def _apply_scale(scope: RequestScope) -> Response:
    dry_run = scope.dry_run("PatchOptions", needs_manager=True)
    config = await offload(lambda: apply.read_config(scope, _KIND, _VERSION), scope.request.body)

    def applied(scale: Object) -> Object:
        live = {name: value for name, value in scale.items() if name not in ("kind", "apiVersion")}
        return field_managers.apply(scope, _updater(), live, config, force=apply.is_forced(scope))

    return await _apply(scope, applied, dry_run=dry_run, is_applied=True)


@cache
def _updater() -> Updater:
    return updater_of_kind(_VERSION, _KIND)


def _track(scope: RequestScope, after: Object, before: Object) -> None:
    """Set the managers of a scale after an update, unless it had none."""
    managed = Managed.of(before["metadata"].get("managedFields", ()))
    after.setdefault("metadata", {}).pop("managedFields", None)
    if managed.managers:
        live, manager = without_managers(before), updating_manager(scope, _updater())
        field_managers.update(_updater(), managed, live, after, manager, format_time(scope.now))
        after["metadata"]["managedFields"] = managed.entries()


def _replicas_paths(resource: Resource) -> Mapping[str, Path]:
    """By API version: where the workload has what its scale shows."""
    return {resource.api_version: _PATH} if resource.custom is None else resource.custom.replicas_paths


def _scale_managers(resource: Resource, entries: Sequence[Object]) -> list[Object]:
    """The managers of a workload's replicas, as managers of its scale."""
    paths = _replicas_paths(resource)
    return [
        {**entry, "apiVersion": _VERSION, "fieldsV1": _REPLICAS}
        for entry in entries
        if has(entry["fieldsV1"], paths.get(entry["apiVersion"], ()))
    ]


def _workload_managers(
    resource: Resource, entries: Sequence[Object], scale: Sequence[Object]
) -> list[Object]:
    """The managers of a workload after a write of its scale. As upstream, who updates the scale has no time."""
    paths = _replicas_paths(resource)
    before, after = Managed.of(entries), Managed.of(scale)
    managers = {}
    for manager, managed in before.managers.items():
        path = paths.get(managed.api_version)
        if path is None:
            continue
        if not has(managed.fields, path) or after.managers.pop(manager, None) is not None:
            managers[manager] = managed
        elif fields := difference(managed.fields, of_paths(path)):
            managers[manager] = replace(managed, fields=fields)
    mine = of_paths(paths[resource.api_version])
    for manager, managed in after.managers.items():
        if has(managed.fields, _PATH):
            managers[manager] = ManagedSet(mine, resource.api_version, managed.applied)
    before.managers = managers
    return before.entries()


async def _apply(
    scope: RequestScope, change: Transform, *, dry_run: bool, is_applied: bool = False
) -> Response:
    def transform(old: Object) -> Object:
        before = _scale_of(scope.resource, old)
        if entries := old["metadata"].get("managedFields"):
            before["metadata"]["managedFields"] = _scale_managers(scope.resource, entries)
        after = change(before)
        if not is_applied:
            _track(scope, after, before)
        replicas = after.get("spec", {}).get("replicas", 0)
        if replicas < 0 and scope.resource.custom is None:
            errors = [bad_value("spec.replicas", replicas, "must be greater than or equal to 0")]
            raise invalid(_KIND, "autoscaling", scope.name, errors)
        found = old["metadata"]["uid"]
        if (uid := after.get("metadata", {}).get("uid")) and uid != found:
            raise scope.precondition_failed("UID", uid, found)
        obj = deepcopy(old)
        _set_replicas(scope.resource, obj, replicas)
        given = after.get("metadata", {}).get("resourceVersion", "")
        # A custom resource needs one for an update, its scale does not.
        unconditional = "" if scope.resource.custom is None else old["metadata"]["resourceVersion"]
        obj["metadata"]["resourceVersion"] = given or unconditional
        managers = after["metadata"].get("managedFields", ())
        obj["metadata"]["managedFields"] = _workload_managers(scope.resource, entries or (), managers)
        if not obj["metadata"]["managedFields"]:
            del obj["metadata"]["managedFields"]
        return obj

    # A Scale looks the same whichever version of the workload it is shown for.
    view = _as_scale(scope.resource)
    with_managers = _with_managers(view, scope.resource, format_time(scope.now))
    webhooks = WebhookAdmission.of(
        scope,
        Operation.UPDATE,
        dry_run=dry_run,
        subresource="scale",
        views=lambda _: view,
        mutating_views=lambda _: with_managers,
    )
    value = await change_stored(webhooks, scope, scope.find, transform, dry_run=dry_run, is_applied=True)
    body = encode(_scale_of(scope.resource, decode_stored(scope.resource, value)))
    return Response(body=body, headers=response.headers(scope))


def _as_scale(resource: Resource) -> View:
    """Webhooks see the Scale, and can change the number of replicas."""

    def take(patched: Object, obj: Object, is_strict: bool) -> Object:
        schema.check(_VERSION, _KIND, patched)
        changed = deepcopy(obj)
        _set_replicas(resource, changed, patched.get("spec", {}).get("replicas", 0))
        return changed

    return View(_VERSION, _KIND, partial(_scale_of, resource), take)


def _with_managers(view: View, resource: Resource, now: str) -> View:
    """Mutating webhooks see the managers of the Scale, too, before they become those of the workload."""

    def show(obj: Object) -> Object:
        scale = view.show(obj)
        managers = _scale_managers(resource, obj["metadata"].get("managedFields") or ())
        if managers:
            # Who updates the scale has a time until then.
            scale["metadata"]["managedFields"] = [{"time": now, **entry} for entry in managers]
        return scale

    return replace(view, show=show)


def _set_replicas(resource: Resource, obj: Object, replicas: int) -> None:
    paths = resource.custom.scale if resource.custom is not None else None
    *way, name = paths["specReplicasPath"].split(".")[1:] if paths else ("spec", "replicas")
    for field in way:
        obj = obj.setdefault(field, {})
    obj[name] = replicas


def _scale_of(resource: Resource, obj: Object) -> Object:
    custom = resource.custom
    replicas, state = _workload_scale(obj) if custom is None else _custom_scale(obj, custom.scale or {})
    meta = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    return {
        "kind": _KIND,
        "apiVersion": _VERSION,
        "metadata": {field: meta[field] for field in kept if field in meta},
        "spec": {"replicas": replicas} if replicas else {},
        "status": state,
    }


def _custom_scale(obj: Object, paths: Object) -> tuple[int, Object]:
    replicas = _at(obj, paths["specReplicasPath"], int)
    if replicas is None:
        raise ApiError(
            f'Internal error occurred: the spec replicas field "{paths["specReplicasPath"]}" does not exist',
            details={
                "causes": [
                    {"message": f'the spec replicas field "{paths["specReplicasPath"]}" does not exist'}
                ]
            },
        )
    state: Object = {"replicas": _at(obj, paths["statusReplicasPath"], int) or 0}
    selector = _at(obj, paths["labelSelectorPath"], str) if paths.get("labelSelectorPath") else None
    return replicas, state | ({"selector": selector} if selector else {})


def _at(obj: Object, path: str, wanted: type) -> Any:
    found, problem = accessed(obj, path, wanted)
    if problem:
        raise ApiError(problem, reason="")
    return found


def _workload_scale(obj: Object) -> tuple[int, Object]:
    selector = obj.get("spec", {}).get("selector") or {}
    is_plain = not (selector.keys() & {"matchLabels", "matchExpressions"})
    text = str(label_selector_from_dict({"matchLabels": selector} if is_plain else selector))
    replicas = obj.get("spec", {}).get("replicas", 0)
    state: Object = {"replicas": obj.get("status", {}).get("replicas", 0)}
    if text:
        state["selector"] = text
    return replicas, state

"""The scale subresource: current and desired replicas of a workload, in the same form for all kinds."""

from __future__ import annotations

from copy import deepcopy

from podlife.api.codec import Object, encode
from podlife.api.field_errors import bad_value, invalid
from podlife.api.selectors import label_selector_from_dict
from podlife.apiserver.registry import RequestScope
from podlife.apiserver.registry.object_codec import decode_stored
from podlife.apiserver.registry.patch import Patch
from podlife.apiserver.registry.request_body import check_name, read_typed
from podlife.apiserver.registry.update import Transform, apply_change
from podlife.apiserver.registry.worker_threads import offload
from podlife.apiserver.resource import Resource
from podlife.apiserver.strategies.field_checks import value_at
from podlife.errors import ApiError
from podlife.wire import Response

_KIND, _VERSION = "Scale", "autoscaling/v1"


async def get_scale(scope: RequestScope) -> Response:
    obj = decode_stored(scope.resource, scope.find().value)
    return Response(body=encode(_scale_of(scope, obj)))


async def update_scale(scope: RequestScope) -> Response:
    dry_run = scope.dry_run("UpdateOptions")
    scale = await offload(lambda: read_typed(scope, _KIND, _VERSION), scope.request.body)
    check_name(scope, scale.get("metadata", {}).get("name", ""))
    return await _apply(scope, lambda _: scale, dry_run=dry_run)


async def patch_scale(scope: RequestScope) -> Response:
    dry_run = scope.dry_run("PatchOptions")
    change = await offload(lambda: Patch.from_request(scope), scope.request.body)
    return await _apply(scope, lambda old: change.apply(scope, old), dry_run=dry_run)


async def _apply(scope: RequestScope, change: Transform, *, dry_run: bool) -> Response:
    def transform(old: Object) -> Object:
        after = change(_scale_of(scope, old))
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
        return obj

    async with scope.registry.store.locked(scope.key):
        record = scope.find()
        value = await apply_change(scope, record, transform, dry_run=dry_run)
    return Response(body=encode(_scale_of(scope, decode_stored(scope.resource, value))))


def _set_replicas(resource: Resource, obj: Object, replicas: int) -> None:
    paths = resource.custom.scale if resource.custom is not None else None
    *way, name = paths["specReplicasPath"].split(".")[1:] if paths else ("spec", "replicas")
    for field in way:
        obj = obj.setdefault(field, {})
    obj[name] = replicas


def _scale_of(scope: RequestScope, obj: Object) -> Object:
    custom = scope.resource.custom
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
    replicas = value_at(obj, paths["specReplicasPath"])
    if replicas is None:
        raise ApiError(
            f'Internal error occurred: the spec replicas field "{paths["specReplicasPath"]}" does not exist',
            details={
                "causes": [
                    {"message": f'the spec replicas field "{paths["specReplicasPath"]}" does not exist'}
                ]
            },
        )
    state: Object = {"replicas": value_at(obj, paths["statusReplicasPath"]) or 0}
    selector = value_at(obj, paths["labelSelectorPath"]) if paths.get("labelSelectorPath") else None
    return replicas, state | ({"selector": selector} if selector else {})


def _workload_scale(obj: Object) -> tuple[int, Object]:
    selector = obj.get("spec", {}).get("selector") or {}
    is_plain = not (selector.keys() & {"matchLabels", "matchExpressions"})
    text = str(label_selector_from_dict({"matchLabels": selector} if is_plain else selector))
    replicas = obj.get("spec", {}).get("replicas", 0)
    state: Object = {"replicas": obj.get("status", {}).get("replicas", 0)}
    if text:
        state["selector"] = text
    return replicas, state

"""The scale subresource: current and desired replicas of a workload, in the same form for all kinds."""

from __future__ import annotations

from copy import deepcopy

from podlife.api.codec import Object, decode_object, encode
from podlife.api.field_errors import bad_value, invalid
from podlife.api.selectors import label_selector_from_dict
from podlife.apiserver.registry import RequestScope
from podlife.apiserver.registry.patch import Patch
from podlife.apiserver.registry.request_body import check_name, read_typed
from podlife.apiserver.registry.update import Transform, apply_change
from podlife.apiserver.registry.worker_threads import offload
from podlife.wire import Response

_KIND, _VERSION = "Scale", "autoscaling/v1"


async def get_scale(scope: RequestScope) -> Response:
    return Response(body=encode(_scale_of(decode_object(scope.find().value))))


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
        after = change(_scale_of(old))
        replicas = after.get("spec", {}).get("replicas", 0)
        if replicas < 0:
            errors = [bad_value("spec.replicas", replicas, "must be greater than or equal to 0")]
            raise invalid(_KIND, "autoscaling", scope.name, errors)
        found = old["metadata"]["uid"]
        if (uid := after.get("metadata", {}).get("uid")) and uid != found:
            raise scope.precondition_failed("UID", uid, found)
        obj = deepcopy(old)
        obj["spec"]["replicas"] = replicas
        obj["metadata"]["resourceVersion"] = after.get("metadata", {}).get("resourceVersion", "")
        return obj

    async with scope.registry.store.locked(scope.key):
        record = scope.find()
        value = await apply_change(scope, record, transform, dry_run=dry_run)
    return Response(body=encode(_scale_of(decode_object(value))))


def _scale_of(obj: Object) -> Object:
    meta = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    selector = obj.get("spec", {}).get("selector") or {}
    is_plain = not (selector.keys() & {"matchLabels", "matchExpressions"})
    text = str(label_selector_from_dict({"matchLabels": selector} if is_plain else selector))
    replicas = obj.get("spec", {}).get("replicas", 0)
    state: Object = {"replicas": obj.get("status", {}).get("replicas", 0)}
    if text:
        state["selector"] = text
    return {
        "kind": _KIND,
        "apiVersion": _VERSION,
        "metadata": {field: meta[field] for field in kept if field in meta},
        "spec": {"replicas": replicas} if replicas else {},
        "status": state,
    }

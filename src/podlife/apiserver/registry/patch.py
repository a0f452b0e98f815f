"""PATCH: JSON patch, merge patch and strategic merge patch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from podlife.api.codec import Object
from podlife.api.patch import json_patch, merge_patch, strategic_merge_patch
from podlife.apiserver.registry import output
from podlife.apiserver.registry.body import bad_request, check_shape, media_type, unsupported_media_type
from podlife.apiserver.registry.objects import with_type
from podlife.apiserver.registry.scope import Registry, Scope
from podlife.apiserver.registry.update import apply_change
from podlife.errors import ApiError
from podlife.wire import Response

__all__ = ["patch", "patched", "read_patch"]

_JSON = "application/json-patch+json"
_MERGE = "application/merge-patch+json"
_STRATEGIC = "application/strategic-merge-patch+json"
_APPLY = ("application/apply-patch+yaml", "application/apply-patch+cbor")


async def patch(registry: Registry, scope: Scope) -> Response:
    dry_run = scope.dry_run("PatchOptions")
    resource = scope.resource
    change = read_patch(scope, resource.kind, resource.api_version)

    def transform(stored: Object) -> Object:
        obj = resource.from_stored(stored) if resource.from_stored is not None else stored
        obj = patched(scope, with_type(resource, obj), change, resource.kind, resource.api_version)
        return resource.to_stored(obj) if resource.to_stored is not None else obj

    async with registry.store.locked(scope.key):
        value = await apply_change(registry, scope, scope.find(registry), transform, dry_run=dry_run)
    return output.one(registry, scope, value)


def read_patch(scope: Scope, kind: str, api_version: str) -> Callable[[Object], Object]:
    """The function that the body of the request stands for."""
    format_ = media_type(scope.request)
    if format_ in _APPLY:
        raise ApiError(
            "server-side apply is not offered by this server: use client-side apply "
            "(kubectl apply --server-side=false) or a merge patch",
            code=415,
            reason="UnsupportedMediaType",
        )
    if format_ not in (_JSON, _MERGE, _STRATEGIC):
        raise unsupported_media_type((_JSON, _MERGE, _STRATEGIC))
    body = _decode(scope.request.body)
    if format_ == _JSON:
        if not isinstance(body, list):
            raise bad_request("error decoding patch: a JSON patch is a list of operations")
        return lambda obj: json_patch(obj, body)
    if not isinstance(body, dict):
        raise bad_request("error decoding patch: expected a JSON object")
    if format_ == _MERGE:
        return lambda obj: merge_patch(obj, body)
    return lambda obj: strategic_merge_patch(obj, body, api_version, kind)


def _decode(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except RecursionError:
        raise bad_request("error decoding patch: the JSON is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise bad_request(f"error decoding patch: {error}") from None


def patched(
    scope: Scope, obj: Object, change: Callable[[Object], Object], kind: str, api_version: str
) -> Object:
    """The object after the patch, in the shape of its type and without `kind` and `apiVersion`."""
    result = change(obj)
    if not isinstance(result, dict):
        raise bad_request("the patch does not leave an object")
    if result.get("kind") != kind or result.get("apiVersion") != api_version:
        raise bad_request("a patch can not change kind or apiVersion")
    check_shape(scope, result, kind, api_version)
    result.pop("kind")
    result.pop("apiVersion")
    name = result.setdefault("metadata", {}).get("name")
    if name != scope.name:
        raise bad_request(
            f"the name of the object ({name or ''}) does not match the name on the URL ({scope.name})"
        )
    return result

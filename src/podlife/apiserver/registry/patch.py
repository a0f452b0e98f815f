"""PATCH: JSON patch, merge patch and strategic merge patch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from podlife.api import schema
from podlife.api.codec import Object, decode_object, encode, why_unreadable
from podlife.api.field_errors import forbidden, invalid
from podlife.api.patch import (
    go_format,
    invalid_patch,
    json_patch,
    merge_patch,
    strategic_merge_patch,
    unknown_operation_fields,
)
from podlife.apiserver.admission import Operation
from podlife.apiserver.registry import apply, response
from podlife.apiserver.registry.managed_fields import without_managers
from podlife.apiserver.registry.object_codec import with_type
from podlife.apiserver.registry.request_body import (
    bad_request,
    check_custom_kind,
    check_name,
    check_size,
    check_type,
    media_type,
    unsupported_media_type,
    why_not_convertible,
)
from podlife.apiserver.registry.request_scope import RequestScope
from podlife.apiserver.registry.update import change_stored
from podlife.apiserver.registry.webhook_admission import WebhookAdmission
from podlife.apiserver.registry.worker_threads import offload
from podlife.errors import InvalidError
from podlife.wire import Response

_JSON = "application/json-patch+json"
_MERGE = "application/merge-patch+json"
_STRATEGIC = "application/strategic-merge-patch+json"


async def patch(scope: RequestScope) -> Response:
    if media_type(scope.request) == apply.MEDIA_TYPE:
        return await apply.apply(scope)
    dry_run = scope.dry_run("PatchOptions")
    resource = scope.resource
    change = await offload(lambda: Patch.from_request(scope), scope.request.body)

    def transform(stored: Object) -> Object:
        obj = stored if resource.custom or resource.from_stored is None else resource.from_stored(stored)
        obj = change.apply(scope, with_type(resource, obj))
        return resource.to_stored(obj) if resource.to_stored is not None else obj

    webhooks = WebhookAdmission.of(scope, Operation.UPDATE, dry_run=dry_run, subresource=scope.subresource)
    value = await change_stored(
        webhooks, scope, scope.find, transform, dry_run=dry_run, may_grow=change.copies
    )
    return await response.one(scope, value)


@dataclass(frozen=True, slots=True)
class Patch:
    """The patch in the body of a PATCH."""

    format: str
    body: Any
    raw: bytes

    @classmethod
    def from_request(cls, scope: RequestScope) -> Patch:
        format_ = media_type(scope.request)
        formats = (_JSON, _MERGE) if scope.resource.custom is not None else (_JSON, _MERGE, _STRATEGIC)
        if format_ not in formats:
            raise unsupported_media_type((*formats, apply.MEDIA_TYPE))
        if "force" in scope.request.query:
            errors = [forbidden("force", "may not be specified for non-apply patch")]
            raise invalid("PatchOptions", "meta.k8s.io", "", errors)
        raw = scope.request.body
        check_size(raw)
        return cls(format_, _decode(raw, "" if format_ == _STRATEGIC else "error decoding patch: "), raw)

    @property
    def copies(self) -> bool:
        """Whether the result may be much larger than object and patch."""
        operations = self.body if self.format == _JSON and isinstance(self.body, list) else ()
        return any(isinstance(each, dict) and each.get("op") == "copy" for each in operations)

    def apply(self, scope: RequestScope, obj: Object) -> Object:
        """Return the object after the patch, in the shape of its type, without `kind` and `apiVersion`.

        `obj` has both; they cannot be changed, and neither can the name.
        """
        kind, api_version = obj["kind"], obj["apiVersion"]
        managers = obj["metadata"].get("managedFields") if b"managedFields" not in self.raw else None
        if managers is not None:
            # Half of an object: what the patch cannot change need not be copied and checked.
            obj = without_managers(obj)
        if scope.resource.custom is not None:
            # What is checked by a structural schema is changed in place, and a patch shares what it does not change.
            # Through JSON it is copied in a fifth of deepcopy's time.
            obj = decode_object(encode(obj))
        try:
            result = self._applied(scope, obj, kind, api_version)
            self._check_shape(scope, result, kind, api_version)
        except RecursionError:
            # The patch alone was shallow enough to be read, but operations can nest what it adds.
            raise bad_request("the object is nested too deeply after the patch") from None
        del result["kind"], result["apiVersion"]
        name = result.setdefault("metadata", {}).get("name", "")
        check_name(scope, name)
        if managers is not None:
            result["metadata"]["managedFields"] = managers
        return result

    def _applied(self, scope: RequestScope, obj: Object, kind: str, api_version: str) -> Object:
        match self.format:
            case "application/json-patch+json":
                result = json_patch(obj, self.body)
            case "application/merge-patch+json":
                result = merge_patch(obj, self.body)
            case _:
                result = strategic_merge_patch(obj, self.body, api_version, kind)
        if not isinstance(result, dict):
            raise self._unreadable(result, f"expected an object, not {type(result).__name__}")
        if scope.resource.custom is not None and kind == scope.resource.kind:
            check_custom_kind(scope.resource, result.get("kind"), scope.name)
        given = result.get("kind") or kind, result.get("apiVersion") or api_version
        if given != (kind, api_version):
            raise self._unreadable(
                result, why_not_convertible(str(given[0]), str(given[1]), kind, api_version)
            )
        result["kind"], result["apiVersion"] = given
        return result

    def _check_shape(self, scope: RequestScope, result: Object, kind: str, api_version: str) -> None:
        directive = scope.request.query.get("fieldValidation") or "Warn"
        shown = dict(result) if directive == "Strict" else result
        try:
            unknown = check_type(scope.resource, api_version, kind, result)
        except schema.DecodeError as error:
            raise self._unreadable(result, str(error)) from None
        if directive == "Ignore":
            return
        if self.format != _STRATEGIC:
            unknown.sort()  # upstream decodes the result again from a document whose fields are sorted
        unknown = schema.duplicate_fields(self.raw) + unknown
        if self.format == _JSON:
            unknown = unknown_operation_fields(self.body) + unknown
        if unknown and directive == "Strict":
            raise self._unreadable(shown, f"strict decoding error: {', '.join(unknown)}")
        scope.warnings.extend(unknown)

    def _unreadable(self, result: Any, cause: str) -> InvalidError:
        shown = go_format(self.body) if self.format == _STRATEGIC else encode(result).decode()
        return invalid_patch(shown, cause)


def _decode(data: bytes, prefix: str) -> Any:
    try:
        return msgspec.json.decode(data)
    except RecursionError:
        raise bad_request(f"{prefix}the JSON is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise bad_request(prefix + why_unreadable(error)) from None

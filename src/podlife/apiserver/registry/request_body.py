"""Decodes a request body into an object of the right shape.

Rejects everything a client can get wrong in a body: the media type (415), broken JSON and wrong types (400), a kind
that does not belong to the URL (400), unknown and duplicate fields (by `fieldValidation`). The result has passed the
schema check, so the verbs and strategies behind it need not be defensive.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from podlife.api import protobuf, schema
from podlife.api.codec import MOST_VALUES, Object, decode_object, encode, has_too_many_values
from podlife.api.excerpt import excerpt
from podlife.api.field_errors import bad_value, invalid
from podlife.apiserver.registry.managed_fields import mark_reset
from podlife.apiserver.registry.request_scope import RequestScope
from podlife.apiserver.registry.worker_threads import run_in_thread
from podlife.apiserver.resource import Resource
from podlife.errors import ApiError
from podlife.wire import Request

_JSON = "application/json"
_YAML = "application/yaml"
# Of a body that is shown in a message.
_SUMMARY = 30
_LONGEST_BODY_SHOWN = 8 * 1024
_LONG_YAML_BYTES = 8 * 1024
# The same limit as for a request body.
_MOST_BYTES = 3 * 1024 * 1024


def bad_request(message: str) -> ApiError:
    return ApiError(message, code=400, reason="BadRequest")


def check_name(scope: RequestScope, name: str) -> None:
    """Raise 400 if the object has another name than the URL."""
    if name != scope.name:
        raise bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({scope.name})"
        )


def unsupported_media_type(accepted: tuple[str, ...]) -> ApiError:
    return ApiError(
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(accepted),
        code=415,
        reason="UnsupportedMediaType",
    )


def check_size(raw: bytes) -> None:
    """Raise 413 for JSON with more elements than an object may have."""
    check_bytes(raw)
    if has_too_many_values(raw):
        raise _too_large(f"an object may have at most {MOST_VALUES} fields and elements")


def check_bytes(raw: bytes) -> None:
    """Raise 413 for more bytes than an object may have. Defaults count too: they can multiply the size by ten."""
    if len(raw) > _MOST_BYTES:
        raise _too_large(f"limit is {_MOST_BYTES}")


def fit_managers(obj: Object, *, is_applied: bool) -> None:
    """Raise 413 for an object with more bytes than one may have. As upstream, one that has too many only with its
    managers is stored without them, unless it was applied: a client could not send it back."""
    raw = encode(obj)
    if len(raw) > _MOST_BYTES or has_too_many_values(raw):
        if is_applied:
            check_size(raw)
        obj["metadata"].pop("managedFields", None)
        check_bytes(encode(obj))


def _too_large(why: str) -> ApiError:
    return ApiError(f"Request entity too large: {why}", code=413, reason="RequestEntityTooLarge")


def media_type(request: Request) -> str:
    return request.headers.get("Content-Type", "").partition(";")[0].strip().lower()


def decode_body(request: Request) -> Object:
    """Decode the body; raises ValueError on broken input and ApiError (415) on an unknown media type."""
    kind = media_type(request)
    if kind == protobuf.MEDIA_TYPE:
        try:
            return protobuf.decode(request.body)
        except protobuf.TooManyValuesError as error:
            raise _too_large(str(error)) from None
    check_size(request.body)
    if kind not in (_JSON, _YAML, ""):
        raise unsupported_media_type((_JSON, _YAML, protobuf.MEDIA_TYPE))
    # YAML has been converted to JSON before (`with_json`).
    return decode_object(request.body)


async def with_json(request: Request) -> tuple[Request, list[str]]:
    """Return the request with a YAML body converted to JSON, and which of its keys occur twice; raises 400. Everything
    after it sees only JSON.

    YAML is slow to parse: long documents are parsed in a worker thread.
    """
    if not request.body or media_type(request) != _YAML:
        return request, []
    from podlife.api.yaml_documents import read_yaml

    try:
        if len(request.body) <= _LONG_YAML_BYTES:
            body, duplicates = read_yaml(request.body)
        else:
            body, duplicates = await run_in_thread(lambda: read_yaml(request.body))
    except ValueError as error:
        raise bad_request(f"error converting YAML to JSON: {error}") from None
    return replace(request, body=body), duplicates


def read_object(scope: RequestScope) -> Object:
    """Return the checked object of a create or an update, without `kind` and `apiVersion`."""
    obj = read_typed(scope, scope.resource.kind, scope.resource.api_version)
    del obj["kind"], obj["apiVersion"]
    obj.setdefault("metadata", {})
    return obj


def read_typed(scope: RequestScope, kind: str, api_version: str, *, also: tuple[str, ...] = ()) -> Object:
    """Return a whole, checked object of this kind. An object without a type is taken for the expected one; `also`
    lists older versions that look the same."""
    try:
        obj = decode_body(scope.request)
    except ValueError as error:
        raise bad_request(
            f"the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; "
            f"json parse error: {error} ({_summary(scope.request.body)})"
        ) from None
    if scope.resource.custom is not None and kind == scope.resource.kind:
        _check_custom_type(scope, obj)
    given_kind, given_version = obj.get("kind") or kind, obj.get("apiVersion") or api_version
    if (given_kind, given_version) != (kind, api_version) and given_version not in also:
        raise bad_request(_not_that(given_kind, given_version, kind, api_version))
    obj["kind"], obj["apiVersion"] = kind, api_version
    check_shape(scope, obj, kind, api_version, raw=scope.request.body)
    return obj


def _check_custom_type(scope: RequestScope, obj: Object) -> None:
    """A custom resource says what it is; nothing else tells the versions of its kind apart."""
    resource = scope.resource
    if not obj.get("kind"):
        text = scope.request.body.decode()
        cut = f"{text[:_SUMMARY]} ..." if len(text) > _SUMMARY else text
        raise bad_request(
            f"the object provided is unrecognized (must be of type {resource.kind}): "
            f"Object 'Kind' is missing in '{excerpt(text, _LONGEST_BODY_SHOWN)}' ({cut})"
        )
    if (given := obj.get("apiVersion") or "") != resource.api_version:
        raise bad_request(
            f"the API version in the data ({given}) does not match the expected API version "
            f"({resource.api_version})"
        )
    metadata = obj.get("metadata")
    check_custom_kind(resource, obj["kind"], metadata.get("name") if isinstance(metadata, dict) else "")


def check_custom_kind(resource: Resource, kind: Any, name: Any) -> None:
    """Raise 422 if a custom resource has another kind than its definition says."""
    if kind != resource.kind:
        errors = [bad_value("kind", kind, f"must be {resource.kind}")]
        raise invalid(str(kind), resource.group, str(name or ""), errors)


def _summary(data: bytes) -> str:
    """The first bytes of an unreadable body."""
    return data[:30].hex() + (" ..." if len(data) > 30 else "") if data else "empty data"


def _not_that(given_kind: Any, given_version: Any, kind: str, api_version: str) -> str:
    if not isinstance(given_kind, str) or not isinstance(given_version, str):
        return f"kind and apiVersion of a {kind} must be strings"
    if given_kind == kind and schema.type_of_kind(given_version, kind) is not None:
        return f"the API version in the data ({given_version}) does not match the expected API version ({api_version})"
    short = given_version.rpartition("/")[2]
    return f'{given_kind} in version "{short}" cannot be handled as a {kind}: ' + why_not_convertible(
        given_kind, given_version, kind, api_version
    )


def why_not_convertible(given_kind: str, given_version: str, kind: str, api_version: str) -> str:
    """Why one kind cannot be read as another, in upstream's words."""
    if schema.type_of_kind(given_version, given_kind) is None:
        return unregistered(given_kind, given_version)
    package = api_version.partition("/")[0].partition(".")[0] if "/" in api_version else "core"
    short = given_version.rpartition("/")[2]
    return f"converting ({short}.{given_kind}) to ({package}.{kind}): unknown conversion"


def unregistered(kind: str, api_version: str) -> str:
    return f'no kind "{kind}" is registered for version "{api_version}" in scheme "pkg/runtime/scheme.go:111"'


def check_type(resource: Resource, api_version: str, kind: str, obj: Object) -> list[str]:
    """`schema.check`, or that of the resource if the object is one of its own."""
    mark_reset(obj)
    if resource.check is not None and (kind, api_version) == (resource.kind, resource.api_version):
        return resource.check(obj)
    return schema.check(api_version, kind, obj)


def check_shape(scope: RequestScope, obj: Any, kind: str, api_version: str, *, raw: bytes = b"") -> None:
    """Bring the object into the shape of its type, or raise 400; `fieldValidation` decides about unknown fields."""
    directive = scope.request.query.get("fieldValidation") or "Warn"
    prefix = f'{kind} in version "{api_version.rpartition("/")[2]}" cannot be handled as a {kind}: '
    is_json = raw and directive != "Ignore" and media_type(scope.request) in (_JSON, "")
    try:
        # Duplicates are counted in the decoded body, before the check makes it canonical.
        duplicates = schema.duplicate_fields(raw, obj) if is_json else []
        unknown = check_type(scope.resource, api_version, kind, obj)
        # Custom resources are decoded first, and compared with their schema afterwards.
        is_custom = scope.resource.custom is not None
        complaints = duplicates + unknown if is_custom else schema.in_document_order(raw, duplicates, unknown)
    except schema.DecodeError as error:
        raise bad_request(f"{prefix}{error}") from None
    in_yaml = scope.yaml_duplicates if raw else []
    if not (complaints or in_yaml) or directive == "Ignore":
        return
    if directive == "Strict":
        if in_yaml:
            complaints.insert(0, "\n  ".join(["yaml: unmarshal errors:", *in_yaml]))
        raise bad_request(f"{prefix}strict decoding error: {', '.join(complaints)}")
    scope.warnings.extend(in_yaml + complaints)

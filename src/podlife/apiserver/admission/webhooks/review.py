"""AdmissionReviews: what a webhook is sent and what it answers, in versions v1 and v1beta1.

An answer is checked as upstream checks it: in v1 the type and the UID must be those of the request, and a patch must
come with its type. Errors are ValueError in upstream's words.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from podlife.api.codec import Object, encode
from podlife.apiserver.admission.webhooks.request import ReviewedRequest, View
from podlife.apiserver.resource import Resource

T = TypeVar("T")

_GROUP = "admission.k8s.io"
_VERSIONS = ("v1", "v1beta1")
JSON_PATCH = "JSONPatch"
_not_base64 = re.compile(r"[^A-Za-z0-9+/=]").search


@dataclass(frozen=True, slots=True)
class Verdict:
    """A webhook's answer. `patch` is JSON."""

    allowed: bool
    patch: bytes = b""
    patch_type: str = ""
    status: Object = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    annotations: dict[str, str] = field(default_factory=dict)


class _Response(msgspec.Struct):
    uid: str = ""
    allowed: bool = False
    status: dict[str, Any] | None = None
    patch: str | None = None
    patch_type: str | None = msgspec.field(name="patchType", default=None)
    audit_annotations: dict[str, str] | None = msgspec.field(name="auditAnnotations", default=None)
    warnings: list[str] | None = None


class _Review(msgspec.Struct):
    kind: str = ""
    api_version: str = msgspec.field(name="apiVersion", default="")
    response: _Response | None = None


# At import: msgspec crashes the process if two threads compile a type at once.
_decode = msgspec.json.Decoder(_Review).decode
_mistyped = re.compile(r"Expected `([^`]*)`, got `([^`]*)`(?: - at `\$\.?(.*)`)?").fullmatch
_GO_KINDS = {"str": "string", "int": "number", "float": "number", "list": "array", "dict": "object"}
_GO_TYPES = {"str": "string", "array": "[]string", "object": "map[string]string"}


def review_version(versions: tuple[str, ...]) -> str:
    """The first version that both sides know; raises ValueError."""
    for version in versions:
        if version in _VERSIONS:
            return version
    raise ValueError("webhook does not accept known AdmissionReview versions (v1, v1beta1)")


def request_object(request: ReviewedRequest, resource: Resource) -> Object:
    """The request of a review as `resource` shows it, without UID and objects: `request` in match conditions."""
    target = request.target
    shown, asked = request.views(resource), request.views(target.resource)
    found: Object = {
        "kind": _kind(shown),
        "resource": _resource(resource),
        "subResource": target.subresource,
        "requestKind": _kind(asked),
        "requestResource": _resource(target.resource),
        "requestSubResource": target.subresource,
        "name": request.name,
        "namespace": request.namespace,
        "operation": target.operation.value,
        "userInfo": request.user.to_object(),
    }
    return {key: value for key, value in found.items() if value} | {
        "dryRun": request.is_dry_run,
        "options": request.options,
    }


def review_of(request: Object, new: Object | None, old: Object | None, *, uid: str, version: str) -> bytes:
    whole = {"uid": uid, **request, "object": new, "oldObject": old}
    return encode({"kind": "AdmissionReview", "apiVersion": f"{_GROUP}/{version}", "request": whole})


def verdict_of(answer: bytes, *, uid: str, version: str, is_mutating: bool) -> Verdict:
    """Read and check an answer; raises ValueError."""
    review = _read(answer, version)
    response = review.response
    if response is None:
        raise InvalidAnswerError("webhook response was absent")
    patch = _patch(response)
    if version == "v1":
        _check_v1(review, response, uid, is_mutating=is_mutating)
    return Verdict(
        response.allowed,
        patch if is_mutating else b"",
        JSON_PATCH if version != "v1" else response.patch_type or "",
        response.status or {},
        tuple(response.warnings or ()),
        response.audit_annotations or {},
    )


class InvalidAnswerError(ValueError):
    """The answer is a review, but not one that may be used."""


def _read(answer: bytes, version: str) -> _Review:
    review = read_review(answer, _decode)
    check_type(review.kind, review.api_version, _GROUP, "AdmissionReview", version)
    return review


def read_review(answer: bytes, decode: Callable[[bytes], T]) -> T:
    """Decode an answer; raises ValueError in Go's words."""
    try:
        return decode(answer)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
    except msgspec.ValidationError as error:
        raise ValueError(_why_mistyped(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"couldn't get version/kind; json parse error: {error}") from None


def check_type(kind: str, given: str, group: str, name: str, version: str) -> None:
    """Raise ValueError unless an answer of this kind and API version can be read as a review of that name. What is
    missing is taken for the expected; v1 then asks for it."""
    if (kind, given) == ("Status", "v1"):
        raise ValueError(f"converting (v1.Status) to ({version}.{name}): unknown conversion")
    if kind not in ("", name) or given not in ("", *(f"{group}/{v}" for v in _VERSIONS)):
        raise ValueError(
            f'no kind "{kind}" is registered for version "{given}" in scheme "pkg/runtime/scheme.go:111"'
        )
    if given and given != f"{group}/{version}":
        short = given.rpartition("/")[2]
        raise ValueError(f"converting ({short}.{name}) to ({version}.{name}): unknown conversion")


def _why_mistyped(error: Exception) -> str:
    """In Go's words."""
    if (found := _mistyped(str(error))) is None:
        return f"couldn't get version/kind; json parse error: {error}"
    expected, got, path = found.groups()
    if not path:
        return not_an_object(_GO_KINDS.get(got, got))
    owner = "AdmissionResponse" if path.startswith("response.") else "AdmissionReview"
    kinds = f"{_GO_KINDS.get(got, got)} into Go struct field {owner}.{path}"
    return f"json: cannot unmarshal {kinds} of type {_GO_TYPES.get(expected.split(' ')[0], expected)}"


def not_an_object(kind: str) -> str:
    """Why a value of this kind, by Go's name, is not an object of the API."""
    fields = 'APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\""'
    why = f"json: cannot unmarshal {kind} into Go value of type struct {{ {fields} }}"
    return f"couldn't get version/kind; json parse error: {why}"


def _patch(response: _Response) -> bytes:
    text = response.patch or ""
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        wrong = _not_base64(text)
        where = wrong.start() if wrong else len(text)
        raise ValueError(f"illegal base64 data at input byte {where}") from None


def _check_v1(review: _Review, response: _Response, uid: str, *, is_mutating: bool) -> None:
    if response.uid != uid:
        raise InvalidAnswerError(f"expected response.uid={json.dumps(uid)}, got {json.dumps(response.uid)}")
    if not review.kind or not review.api_version:
        got = f"{review.api_version or '/'}, Kind={review.kind}"
        raise InvalidAnswerError(f"expected webhook response of {_GROUP}/v1, Kind=AdmissionReview, got {got}")
    has_patch, kind = bool(response.patch), response.patch_type
    if not is_mutating:
        if has_patch:
            raise InvalidAnswerError("validating webhook may not return response.patch")
        if kind is not None:
            raise InvalidAnswerError("validating webhook may not return response.patchType")
        return
    if has_patch and kind is None:
        raise InvalidAnswerError("webhook returned response.patch but not response.patchType")
    if not has_patch and kind is not None:
        raise InvalidAnswerError("webhook returned response.patchType but not response.patch")
    if kind == "":
        raise InvalidAnswerError('webhook returned invalid response.patchType of ""')


def _kind(view: View) -> Object:
    group, _, version = view.api_version.rpartition("/")
    return {"group": group, "version": version, "kind": view.kind}


def _resource(resource: Resource) -> Object:
    return {"group": resource.group, "version": resource.version, "resource": resource.plural}

"""ConversionReviews: what a conversion webhook is sent and what it answers, in versions v1 and v1beta1. Pure.

A webhook may change labels, annotations and everything outside of the metadata. Whatever else it does, or fails to do,
is an error in upstream's words: a lost object, another name or UID, an answer to another request.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from podlife.api.codec import MOST_VALUES, Object, encode, has_too_many_values
from podlife.api.excerpt import excerpt
from podlife.api.labels import validate_annotations, validate_labels
from podlife.api.schema import go_kind
from podlife.apiserver.admission.webhooks.review import check_type, read_review

_GROUP = "apiextensions.k8s.io"
_VERSIONS = ("v1", "v1beta1")
_KIND = "ConversionReview"
# Fields and elements of all objects of an answer.
_MOST_VALUES = 10 * MOST_VALUES
_LONGEST_SHOWN = 1024
_GO_TYPES = {
    "string": "string",
    "bool": "bool",
    "array": "[]interface {}",
    "object": "map[string]interface {}",
    "null": "<nil>",
}


class _Result(msgspec.Struct):
    status: str = ""
    message: str = ""


class _Response(msgspec.Struct):
    uid: str = ""
    converted: list[msgspec.Raw] | None = msgspec.field(name="convertedObjects", default=None)
    result: _Result = msgspec.field(default_factory=_Result)


class _Review(msgspec.Struct):
    kind: str = ""
    api_version: str = msgspec.field(name="apiVersion", default="")
    response: _Response | None = None


# At import: msgspec crashes the process if two threads compile a type at once.
_decode = msgspec.json.Decoder(_Review).decode


def review_version(versions: Sequence[str]) -> str:
    """The first version that both sides know; raises ValueError."""
    for version in versions:
        if version in _VERSIONS:
            return version
    raise ValueError("no supported conversion review versions")


def review_of(objects: Sequence[bytes], api_version: str, *, uid: str, version: str) -> bytes:
    """A review that asks for these objects, as JSON, in an API version."""
    head = encode({"kind": _KIND, "apiVersion": f"{_GROUP}/{version}"})
    request = encode({"uid": uid, "desiredAPIVersion": api_version})
    response = encode({"uid": "", "convertedObjects": None, "result": {"metadata": {}}})
    parts = (head[:-1], request[:-1], b",".join(objects), response)
    return b'%b,"request":%b,"objects":[%b]},"response":%b}' % parts


def kind_of(obj: Object) -> str:
    """As upstream prints it."""
    return f"{obj['apiVersion']}, Kind={obj['kind']}"


def converted_objects(
    answer: bytes, sent: Sequence[Object], api_version: str, *, uid: str, version: str
) -> list[Object]:
    """The objects of an answer, with the metadata that a webhook may not change; raises ValueError."""
    about = f"conversion webhook for {kind_of(sent[0])}"
    try:
        found = _objects(answer, uid=uid, version=version)
    except ValueError as error:
        raise ValueError(f"{about} failed: {error}") from None
    if len(found) != len(sent):
        raise ValueError(f"{about} returned {len(found)} objects, expected {len(sent)}")
    return [
        _checked(about, index, before, after, api_version)
        for index, (before, after) in enumerate(zip(sent, found, strict=True))
    ]


def _objects(answer: bytes, *, uid: str, version: str) -> list[msgspec.Raw]:
    if answer.count(b",") > _MOST_VALUES:
        raise ValueError(f"the answer has more than {_MOST_VALUES} values")
    review = read_review(answer, _decode)
    check_type(review.kind, review.api_version, _GROUP, _KIND, version)
    if version == "v1" and not (review.kind and review.api_version):
        wanted, got = f"{_GROUP}/v1, Kind={_KIND}", f"{review.api_version or '/'}, Kind={review.kind}"
        raise ValueError(f"expected webhook response of {wanted}, got {got}")
    response = review.response
    if response is None:
        raise ValueError("no response provided")
    if version == "v1" and response.uid != uid:
        raise ValueError(f"expected response.uid={json.dumps(uid)}, got {json.dumps(response.uid)}")
    if response.result.status != "Success":
        why = f"response.result.status was '{response.result.status}', not 'Success'"
        raise ValueError(response.result.message or why)
    return response.converted or []


def _checked(about: str, index: int, before: Object, raw: msgspec.Raw, api_version: str) -> Object:
    where = f"{about} returned invalid object at index {index}"
    data = bytes(raw)
    if has_too_many_values(data):
        raise ValueError(f"{where}: an object may have at most {MOST_VALUES} fields and elements")
    try:
        after = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"{where}: {error}") from None
    if after is None:
        raise ValueError("unexpected end of JSON input")
    if not isinstance(after, dict):
        raise ValueError(
            f"json: cannot unmarshal {go_kind(after)} into Go value of type map[string]interface {{}}"
        )
    given, kind = after.get("apiVersion", ""), after.get("kind", "")
    if not kind:
        raise ValueError(f"Object 'Kind' is missing in '{excerpt(data.decode(), _LONGEST_SHOWN)}'")
    if given != api_version:
        raise ValueError(f"{where}: invalid groupVersion (expected {api_version}, received {given})")
    if kind != before["kind"]:
        raise ValueError(f"{where}: invalid kind (expected {before['kind']}, received {kind})")
    meta = after.get("metadata")
    theirs = meta if isinstance(meta, dict) else {}
    for field, shown in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        was, now = before["metadata"].get(field, ""), theirs.get(field, "")
        if was != now:
            raise ValueError(f"{about} returned invalid object: must have the same {shown}: {was} != {now}")
    try:
        return {**after, "metadata": _metadata(before["metadata"], after)}
    except ValueError as error:
        raise ValueError(f"{about} returned invalid metadata: {error}") from None


def _metadata(before: Object, after: Object) -> Object:
    """The metadata from before, with the labels and annotations of the answer."""
    if "metadata" not in after:
        raise ValueError("missing metadata in converted object")
    given = after["metadata"]
    if not isinstance(given, dict):
        raise ValueError(f"invalid metadata of type {_go_type(given)} in converted object")
    merged = {key: value for key, value in before.items() if key not in ("labels", "annotations")}
    for field, path, validate in (
        ("labels", "metadata.labels", validate_labels),
        ("annotations", "metadata.annotation", validate_annotations),
    ):
        found = given.get(field)
        if found is None:
            continue
        if not isinstance(found, dict):
            raise ValueError(f"invalid metadata.{field} of type {_go_type(found)} in converted object")
        for key, value in found.items():
            if not isinstance(value, str):
                kind = _go_type(value)
                raise ValueError(
                    f"metadata.{field}[{key}] must be a string, but is {kind} in converted object"
                )
        if found != before.get(field) and (errors := validate(found, path)):
            texts = [str(error) for error in errors]
            raise ValueError(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")
        merged[field] = found
    return merged


def _go_type(value: Any) -> str:
    numbers = {int: "int64", float: "float64"}
    return numbers.get(type(value)) or _GO_TYPES[go_kind(value)]

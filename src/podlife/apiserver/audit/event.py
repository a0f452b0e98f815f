"""One stage of a request as an encoded `audit.k8s.io/v1` Event.

Encoding happens off the event loop and delays no request. Every request yields an event: text that is not UTF-8 is
escaped, bodies that are unreadable or too large are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote

import msgspec

from podlife.api import protobuf
from podlife.api.codec import Object, encode, format_micro_time
from podlife.api.yaml_documents import yaml_to_json
from podlife.apiserver.audit.policy import Level, RequestAuditConfig, name_of
from podlife.apiserver.authn import UserInfo
from podlife.apiserver.authz import Attributes
from podlife.wire import Request

RECEIVED, STARTED, COMPLETE, PANIC = "RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"
# Marks what was shortened, as upstream's truncating backend does.
_TRUNCATED = "audit.k8s.io/truncated"
MOST_OBJECT_BYTES = 1 << 20
# YAML is slow to parse, and a client may choose it.
_MOST_YAML_BYTES = 64 << 10
_MOST_AGENT = 1024
# A client without credentials may send anything: its entry stays small and cheap.
_MOST_URI = 8 << 10
_MOST_ADDRESSES = 32
_LONGEST_ADDRESS = 64
_STATUS_FIELDS = ("metadata", "status", "message", "reason", "details", "code")

_decoder = msgspec.json.Decoder()


@dataclass(slots=True)
class AuditedRequest:
    """What is known about a request; later stages know more than earlier ones."""

    audit_id: str
    request: Request
    received_at: datetime
    config: RequestAuditConfig
    user: UserInfo | None
    attributes: Attributes
    impersonated: UserInfo | None = None
    annotations: dict[str, str] | None = None
    # The body as JSON or protobuf, once the sender was authorized.
    body: Request | None = None


@dataclass(frozen=True, slots=True)
class AuditedResponse:
    """`body` is left out if none of it is recorded."""

    code: int
    content_type: str = ""
    body: bytes | Sequence[bytes] = b""
    status: Object | None = None


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One stage of a request, for the backend to encode. `size` is the number of bytes it keeps in memory."""

    subject: AuditedRequest
    stage: str
    at: datetime
    answer: AuditedResponse | None
    size: int


def encode_event(entry: AuditEntry) -> bytes:
    event = _event(entry)
    try:
        return encode(event)
    except UnicodeEncodeError:
        return encode(_escaped(event))


def _event(entry: AuditEntry) -> Object:
    subject, attributes = entry.subject, entry.subject.attributes
    event: Object = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": subject.config.level.title,
        "auditID": subject.audit_id,
        "stage": entry.stage,
        "requestURI": _request_uri(subject.request),
        "verb": attributes.verb,
        "user": {} if subject.user is None else subject.user.to_object(),
    }
    annotations = {}
    if entry.stage != RECEIVED:
        annotations = dict(subject.annotations or {})
        if subject.impersonated is not None:
            event["impersonatedUser"] = subject.impersonated.to_object()
    if source_ips := _source_ips(subject.request):
        event["sourceIPs"] = source_ips
    if agent := subject.request.headers.get("User-Agent", ""):
        event["userAgent"] = agent if len(agent) <= _MOST_AGENT else f"{agent[:_MOST_AGENT]}...TRUNCATED"
    if attributes.resource:
        event["objectRef"] = _object_ref(attributes)
    if entry.answer is not None:
        _add_answer(event, entry, entry.answer, annotations)
    event["requestReceivedTimestamp"] = format_micro_time(subject.received_at)
    event["stageTimestamp"] = format_micro_time(entry.at)
    if annotations:
        event["annotations"] = annotations
    return event


def _add_answer(
    event: Object, entry: AuditEntry, answer: AuditedResponse, annotations: dict[str, str]
) -> None:
    subject, level = entry.subject, entry.subject.config.level
    answered = _read(answer.content_type, answer.body, annotations)
    is_status = isinstance(answered, dict) and answered.get("kind") == "Status"
    status = answer.status or (answered if is_status else {})
    event["responseStatus"] = {
        "metadata": {},
        **{key: status[key] for key in _STATUS_FIELDS if key in status},
        "code": answer.code,
    }
    if subject.body is not None:
        sent = _read(subject.body.headers.get("Content-Type", ""), subject.body.body, annotations)
        is_patch = subject.attributes.verb == "patch"
        if not is_patch:
            _complete(event["objectRef"], sent)
        # A list may be a JSON patch; in any other request it is not a valid object.
        if (isinstance(sent, dict) or (is_patch and sent is not None)) and level >= Level.REQUEST:
            event["requestObject"] = _without_managers(sent, subject.config)
    if answered is not None and level >= Level.REQUEST_RESPONSE:
        event["responseObject"] = _without_managers(answered, subject.config)


def _request_uri(request: Request) -> str:
    path = quote(request.path, safe="/:@!$&'()*+,;=-._~", errors="surrogateescape")
    uri = f"{path}?{request.query.raw}" if request.query.raw else path
    return uri if len(uri) <= _MOST_URI else f"{uri[:_MOST_URI]}...TRUNCATED"


def _source_ips(request: Request) -> list[str]:
    """From the first client to the last proxy, as far as the proxies report."""
    if not request.source_ip:
        return []
    forwarded = request.headers.get("X-Forwarded-For", "")
    if not forwarded and "X-Real-Ip" not in request.headers:
        return [request.source_ip]
    named = forwarded.split(",", _MOST_ADDRESSES)[:_MOST_ADDRESSES]
    ips = [each.strip() for each in named if _is_address(each.strip())]
    real = request.headers.get("X-Real-Ip", "").strip()
    if real not in ips and _is_address(real):
        ips.append(real)
    return ips if ips[-1:] == [request.source_ip] else [*ips, request.source_ip]


def _is_address(text: str) -> bool:
    from ipaddress import ip_address

    if len(text) > _LONGEST_ADDRESS:
        return False
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _object_ref(attributes: Attributes) -> Object:
    version = attributes.path.split("/")[3 if attributes.group else 2]
    found = {
        "resource": attributes.resource,
        "namespace": attributes.namespace,
        "name": name_of(attributes),
        "apiGroup": attributes.group,
        "apiVersion": version,
        "subresource": attributes.subresource,
    }
    return {key: value for key, value in found.items() if value}


def _complete(reference: Object, sent: Any) -> None:
    """Complete the object reference from the object's own metadata."""
    metadata = sent.get("metadata") if isinstance(sent, dict) else None
    if not isinstance(metadata, dict):
        return
    for key in ("namespace", "name", "uid", "resourceVersion"):
        if isinstance(metadata.get(key), str) and metadata[key]:
            reference.setdefault(key, metadata[key])


def _read(content_type: str, body: bytes | Sequence[bytes], annotations: dict[str, str]) -> Any:
    """The object in a body; None if there is none, or it cannot be recorded."""
    data = body if isinstance(body, bytes) else b"".join(body)
    kind = content_type.partition(";")[0].strip().lower()
    # Most clients apply JSON, which is YAML too.
    is_yaml = kind == "application/yaml" or (kind == "application/apply-patch+yaml" and data[:1] != b"{")
    if len(data) > (_MOST_YAML_BYTES if is_yaml else MOST_OBJECT_BYTES):
        annotations[_TRUNCATED] = "true"
        return None
    try:
        if kind == protobuf.MEDIA_TYPE:
            return protobuf.decode(data)
        if is_yaml:
            data = yaml_to_json(data)
        return _decoder.decode(data) if data else None
    except (ValueError, RecursionError):
        return None


def _without_managers(obj: Any, config: RequestAuditConfig) -> Any:
    if not config.omit_managed_fields or not isinstance(obj, dict):
        return obj
    items = obj.get("items")
    for each in (obj, *(items if isinstance(items, list) else ())):
        if isinstance(each, dict) and isinstance(each.get("metadata"), dict):
            each["metadata"].pop("managedFields", None)
    return obj


def _escaped(value: Any) -> Any:
    """The same value, with bytes that are not UTF-8 escaped."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_escaped(key): _escaped(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_escaped(each) for each in value]
    return value

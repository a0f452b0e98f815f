"""JSON in and out, and RFC 3339 times as Kubernetes writes them.

Objects that may be written back are decoded into plain dictionaries (`decode_object`), so that fields of newer
Kubernetes versions are kept. Read-only users decode into their own `msgspec.Struct` with just the fields they need.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

Object = dict[str, Any]
"""An API object, whole and writable."""

MOST_VALUES = 50_000
"""Maximum number of fields and elements of one object. Kubernetes' own objects have some hundreds, and three
megabytes have room for a million; checking each takes microseconds."""

_decoder = msgspec.json.Decoder()
_encoder = msgspec.json.Encoder()

encode = _encoder.encode

_GO_ESCAPES = [(letter.encode(), b"\\u%04x" % ord(letter)) for letter in "<>&\u2028\u2029"]


def escape_as_go(data: bytes) -> bytes:
    """The same JSON with Go's additional escapes, for comparison by bytes."""
    for plain, escaped in _GO_ESCAPES:
        data = data.replace(plain, escaped)
    return data


def decode_object(data: bytes) -> Object:
    """Decode a JSON object; raises ValueError with a reason on anything else, however deep or malformed."""
    try:
        value = _decoder.decode(data)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(why_unreadable(error)) from None
    if not isinstance(value, dict):
        raise ValueError(f"expected a JSON object, not {type(value).__name__}")
    return value


def why_unreadable(error: Exception) -> str:
    """The error of invalid JSON, with Kubernetes' wording where it has one."""
    text = str(error)
    return "unexpected end of JSON input" if text == "Input data was truncated" else text


def plain(value: Any) -> Any:
    """Dictionaries, lists and scalars. Fields of classes that are None are absent: for a server null is a value."""
    if isinstance(value, msgspec.Struct):
        fields = zip(value.__struct_encode_fields__, msgspec.structs.astuple(value), strict=True)
        return {name: plain(each) for name, each in fields if each is not None and each is not msgspec.UNSET}
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, set | frozenset):
        # In one order, so that equal sets are equal lists.
        return sorted(map(plain, value), key=repr)
    return msgspec.to_builtins(value)


def count_keys(raw: bytes) -> int:
    """The number of keys in a valid JSON document, without decoding it: its colons outside of strings."""
    return _outside_strings(raw).count(b":")


def has_too_many_values(raw: bytes) -> bool:
    """Whether it has more than `MOST_VALUES` fields and elements, estimated by its commas."""
    return raw.count(b",") >= MOST_VALUES and _outside_strings(raw).count(b",") >= MOST_VALUES


def _outside_strings(raw: bytes) -> bytes:
    if b"\\" in raw:
        # Escaped backslashes first: any backslash left before a quote escapes it.
        raw = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b"".join(raw.split(b'"')[::2])


def format_time(time: datetime) -> str:
    """metav1.Time: seconds, in UTC."""
    return f"{time.astimezone(UTC).isoformat(timespec='seconds')[:19]}Z"


def format_micro_time(time: datetime) -> str:
    """metav1.MicroTime: microseconds, in UTC."""
    return f"{time.astimezone(UTC).isoformat(timespec='microseconds')[:26]}Z"


def parse_time(text: str) -> datetime:
    """Parse an RFC 3339 time, converted to UTC; raises ValueError on anything else."""
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    try:
        return time.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"time out of range: {text!r}") from None


def is_same(one: Any, other: Any) -> bool:
    """Whether both are the same JSON: for Python, true equals 1. 2 and 2.0 are the same number."""
    if one != other:
        return False
    pending = [(one, other)]
    while pending:
        left, right = pending.pop()
        if left is right:
            continue
        if isinstance(left, dict):
            pending.extend((value, right[name]) for name, value in left.items())
        elif isinstance(left, list):
            pending.extend(zip(left, right, strict=True))
        elif isinstance(left, bool) is not isinstance(right, bool):
            return False
    return True

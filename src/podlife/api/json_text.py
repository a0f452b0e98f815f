"""Counts over the text of a JSON document, for what must be known before it is decoded.

All of them are a few passes in C over valid JSON; what is counted stands outside of strings.
"""

from __future__ import annotations

MOST_VALUES = 50_000
"""The most fields and elements that one object may have. Kubernetes' own objects have some hundreds; checking each
takes microseconds, and three megabytes have room for a million."""


def count_keys(raw: bytes) -> int:
    """How many keys there are in the document: its colons."""
    return _outside_strings(raw).count(b":")


def has_too_many_values(raw: bytes) -> bool:
    """Whether it has more fields and elements than `MOST_VALUES`: that many are separated by commas."""
    return raw.count(b",") >= MOST_VALUES and _outside_strings(raw).count(b",") >= MOST_VALUES


def _outside_strings(raw: bytes) -> bytes:
    if b"\\" in raw:
        # Escaped backslashes first: then a backslash before a quote does escape it.
        raw = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b"".join(raw.split(b'"')[::2])

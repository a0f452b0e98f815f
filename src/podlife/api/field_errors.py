"""Errors of validation, each at its path, in the words of the real API server.

A validator returns a list of `FieldError`; `invalid` turns the list into the 422 that a client sees.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Any

from podlife.errors import InvalidError

__all__ = [
    "FieldError",
    "bad_value",
    "duplicate",
    "forbidden",
    "invalid",
    "not_supported",
    "required",
    "too_long",
    "too_many",
    "type_invalid",
]


# A megabyte of mistakes would be answered with a hundred.
_MOST_TOLD = 1_000


@dataclass(frozen=True, slots=True)
class FieldError:
    """`reason` is the machine's word (FieldValueRequired …), `text` what stands behind the path."""

    path: str
    reason: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}"


def _shown(value: Any) -> str:
    """A bad value as upstream prints it: strings quoted, objects as JSON, numbers and booleans bare."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def required(path: str, detail: str = "") -> FieldError:
    return FieldError(path, "FieldValueRequired", f"Required value: {detail}" if detail else "Required value")


def bad_value(path: str, value: Any, detail: str) -> FieldError:
    return FieldError(path, "FieldValueInvalid", f"Invalid value: {_shown(value)}: {detail}")


def type_invalid(path: str, value: Any, detail: str) -> FieldError:
    return FieldError(path, "FieldValueTypeInvalid", f"Invalid value: {_shown(value)}: {detail}")


def not_supported(path: str, value: Any, supported: Iterable[str]) -> FieldError:
    """The supported values in their order, or sorted where they are a set, as upstream has it."""
    ordered = sorted(supported) if isinstance(supported, Set) else supported
    known = ", ".join(json.dumps(item) for item in ordered)
    return FieldError(
        path, "FieldValueNotSupported", f"Unsupported value: {_shown(value)}: supported values: {known}"
    )


def forbidden(path: str, detail: str) -> FieldError:
    return FieldError(path, "FieldValueForbidden", f"Forbidden: {detail}")


def duplicate(path: str, value: Any) -> FieldError:
    return FieldError(path, "FieldValueDuplicate", f"Duplicate value: {_shown(value)}")


def too_long(path: str, limit: int) -> FieldError:
    return FieldError(path, "FieldValueTooLong", f"Too long: may not be more than {limit} bytes")


def too_many(path: str, actual: int, limit: int) -> FieldError:
    return FieldError(
        path, "FieldValueTooMany", f"Too many: {actual}: must have at most {limit} item{'s' * (limit != 1)}"
    )


def invalid(kind: str, group: str, name: str, errors: Sequence[FieldError]) -> InvalidError:
    """The 422 of an object that failed validation: one cause per error, all of them in the message."""
    errors = errors[:_MOST_TOLD]
    texts = list(dict.fromkeys(str(error) for error in errors))
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    shown_kind = f"{kind}.{group}" if group else kind
    details: dict[str, Any] = {"name": name, "group": group, "kind": kind}
    details["causes"] = [
        {"reason": error.reason, "message": error.text, "field": error.path} for error in errors
    ]
    return InvalidError(
        f'{shown_kind} "{name}" is invalid: {listed}', details={k: v for k, v in details.items() if v}
    )

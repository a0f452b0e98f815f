"""Validation errors with their field paths, in kube-apiserver's words.

A validator returns a list of `FieldError`; `invalid` turns the list into the 422 response.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Any

from podlife.api.codec import escape_as_go
from podlife.api.excerpt import excerpt, excerpt_json
from podlife.errors import InvalidError

# An object of three megabytes can have a million errors, each quoting all of it: bounds on the number of errors, on
# each quoted value and on the whole message.
_MOST_REPORTED = 1_000
_MOST_OF_A_VALUE = 8 * 1024
_MOST_TEXT = 256 * 1024


class FieldError:
    """`reason` is machine-readable (FieldValueRequired …), `text` follows the path.

    The text is built on demand: of many errors only the first are reported."""

    __slots__ = ("_after", "_before", "_value", "path", "reason")

    def __init__(
        self, path: str, reason: str, text: str, *, value: Any = None, after: str | None = None
    ) -> None:
        """With `after`, the text is `text`, the value as upstream prints it, and `after`."""
        self.path = path
        self.reason = reason
        self._before = text
        self._value = value
        self._after = after

    @property
    def text(self) -> str:
        if self._after is None:
            return excerpt(self._before, _MOST_OF_A_VALUE)
        after = excerpt(self._after, _MOST_OF_A_VALUE)
        shown = excerpt_json(self._value, _MOST_OF_A_VALUE)
        if isinstance(self._value, dict | list):
            shown = escape_as_go(shown.encode(errors="surrogatepass")).decode(errors="surrogatepass")
        return f"{self._before}{shown}{after}"

    def below(self, path: str) -> FieldError:
        """The same error in a part of a larger object."""
        return FieldError(
            f"{path}.{self.path}", self.reason, self._before, value=self._value, after=self._after
        )

    def __str__(self) -> str:
        return f"{self.path}: {self.text}"

    def __repr__(self) -> str:
        return f"FieldError({self.path!r}, {self.reason!r}, {self.text!r})"


class RatchetedError(FieldError):
    """An error in what an update leaves as it was: the client gets it as a warning."""

    __slots__ = ()

    def __init__(self, error: FieldError) -> None:
        super().__init__(error.path, error.reason, error._before, value=error._value, after=error._after)


FieldErrors = Iterator[FieldError]
"""What a validator yields, in upstream's order."""


def required(path: str, detail: str = "") -> FieldError:
    return FieldError(path, "FieldValueRequired", f"Required value: {detail}" if detail else "Required value")


def bad_value(path: str, value: Any, detail: str) -> FieldError:
    return FieldError(path, "FieldValueInvalid", "Invalid value: ", value=value, after=f": {detail}")


def not_supported(path: str, value: Any, supported: Iterable[str]) -> FieldError:
    """Lists the supported values in their order, or sorted if they are a set, as upstream does."""
    ordered = sorted(supported) if isinstance(supported, Set) else supported
    known = ", ".join(json.dumps(item) for item in ordered)
    return FieldError(
        path,
        "FieldValueNotSupported",
        "Unsupported value: ",
        value=value,
        after=f": supported values: {known}",
    )


def forbidden(path: str, detail: str) -> FieldError:
    return FieldError(path, "FieldValueForbidden", f"Forbidden: {detail}")


def internal_error(path: str, detail: str) -> FieldError:
    return FieldError(path, "InternalError", f"Internal error: {detail}")


def duplicate(path: str, value: Any, detail: str = "") -> FieldError:
    after = f": {detail}" if detail else ""
    return FieldError(path, "FieldValueDuplicate", "Duplicate value: ", value=value, after=after)


def not_found(path: str, value: str, detail: str = "") -> FieldError:
    after = f": {detail}" if detail else ""
    return FieldError(path, "FieldValueNotFound", "Not found: ", value=value, after=after)


def too_long(path: str, limit: int) -> FieldError:
    return FieldError(path, "FieldValueTooLong", f"Too long: may not be more than {limit} bytes")


def too_many(path: str, actual: int, limit: int) -> FieldError:
    return FieldError(
        path, "FieldValueTooMany", f"Too many: {actual}: must have at most {limit} item{'s' * (limit != 1)}"
    )


def invalid(kind: str, group: str, name: str, errors: Sequence[FieldError]) -> InvalidError:
    """The 422 of an object that failed validation, with one cause per error, up to a bound."""
    reported = _reported(errors)
    texts = list(dict.fromkeys(f"{path}: {text}" for path, _, text in reported))
    if len(reported) < len(errors):
        texts.append(f"and {len(errors) - len(reported)} more errors")
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    name = excerpt(name, _MOST_OF_A_VALUE)
    shown_kind = f"{kind}.{group}" if group else kind
    details: dict[str, Any] = {"name": name, "group": group, "kind": kind}
    details["causes"] = [
        {"reason": reason, "message": text, "field": path} for path, reason, text in reported
    ]
    return InvalidError(
        f'{shown_kind} "{name}" is invalid: {listed}', details={k: v for k, v in details.items() if v}
    )


def _reported(errors: Sequence[FieldError]) -> list[tuple[str, str, str]]:
    """Path, reason and text of the first errors, as many as fit; at least one."""
    reported: list[tuple[str, str, str]] = []
    size = 0
    for error in errors[:_MOST_REPORTED]:
        path, text = excerpt(error.path, _MOST_OF_A_VALUE), error.text
        size += len(path) + len(text)
        if size > _MOST_TEXT and reported:
            break
        reported.append((path, error.reason, text))
    return reported

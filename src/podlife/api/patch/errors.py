"""Errors of patches, with kube-apiserver's codes and messages."""

from __future__ import annotations

from typing import Any

from podlife.api.field_errors import bad_value, invalid
from podlife.errors import ApiError, InvalidError


class PatchError(ApiError):
    """The patch cannot be applied. `cause` has more detail than upstream's message.

    Upstream answers some malformed patches with 500; here they are 400, with the same message."""

    code, reason = 400, "BadRequest"
    cause: str = ""


def too_much(why: str) -> PatchError:
    """The patch requires more work than a request may cost."""
    return PatchError(f"Request entity too large: {why}", code=413, reason="RequestEntityTooLarge")


def does_not_apply(cause: str) -> PatchError:
    """A well-formed JSON patch that does not apply to the object. Upstream's message omits the cause."""
    error = PatchError(
        "the server rejected our request due to an error in our request",
        code=422,
        reason="Invalid",
        details={},
    )
    error.cause = cause
    return error


def invalid_patch(shown: str, cause: str) -> InvalidError:
    """The patched object is invalid: `shown` is the patched object as JSON or, for a strategic patch, the patch itself
    (see `go_format`)."""
    return invalid("", "", "", [bad_value("patch", shown, cause)])


def go_format(value: Any) -> str:
    """A value as Go's `%v` prints it: `{"b": [1, "x"], "a": null}` is `map[a:<nil> b:[1 x]]`."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_format(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_format, value))}]"
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return str(value)


def go_type_of(value: object, other: str) -> str:
    """Go's name for the type of a JSON value; `other` if it has none."""
    names = {str: "string", bool: "bool", int: "int64", float: "float64", dict: "map[string]interface {}"}
    return names.get(type(value), other)

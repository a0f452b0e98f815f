"""What is wrong with a patch, as the real API server answers it."""

from __future__ import annotations

from podlife.api.field_errors import bad_value, invalid
from podlife.errors import ApiError, InvalidError


class PatchError(ApiError):
    """The patch cannot be applied; 400 unless it says otherwise. `cause` tells more than upstream's message."""

    code, reason = 400, "BadRequest"
    cause: str = ""


def malformed(message: str) -> PatchError:
    """The patch itself is not what it should be.

    Upstream answers some of these with 500; a mistake of the client is 400 here, with the same message."""
    return PatchError(message)


def too_much(why: str) -> PatchError:
    """The patch asks for more work than a request may cost."""
    return PatchError(f"Request entity too large: {why}", code=413, reason="RequestEntityTooLarge")


def does_not_apply(cause: str) -> PatchError:
    """A well-formed JSON patch that does not fit the object. Upstream keeps the cause to itself."""
    error = PatchError(
        "the server rejected our request due to an error in our request",
        code=422,
        reason="Invalid",
        details={},
    )
    error.cause = cause
    return error


def invalid_patch(shown: str, cause: str) -> InvalidError:
    """The patched object cannot be read: `shown` is the patched object as JSON, or for a strategic patch the
    patch itself (see `go_format`)."""
    return invalid("", "", "", [bad_value("patch", shown, cause)])


def go_kind(value: object) -> str:
    """What Go's decoder calls the kind of a JSON value."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if value is None:
        return "null"
    if isinstance(value, str):
        return "string"
    return "object" if isinstance(value, dict) else "array"

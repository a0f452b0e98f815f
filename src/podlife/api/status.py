"""`Status` objects: responses without an object, and all errors."""

from __future__ import annotations

from typing import Any, TypeVar

from podlife.api.codec import Object
from podlife.api.excerpt import excerpt
from podlife.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    ExpiredError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    TooManyRequestsError,
    UnauthorizedError,
)

T = TypeVar("T")

# A message may quote client input. Both limits exceed those of validation (`field_errors`).
_MOST_MESSAGE = 512 * 1024
_MOST_DETAIL = 16 * 1024

_BY_REASON: dict[str, type[ApiError]] = {
    kind.reason: kind
    for kind in (
        AlreadyExistsError,
        ConflictError,
        ExpiredError,
        ForbiddenError,
        InvalidError,
        NotFoundError,
        TooManyRequestsError,
        UnauthorizedError,
    )
}
# A Status without a reason, or a response that is not a Status, is classified by its code.
_BY_CODE: dict[int, type[ApiError]] = {
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: ExpiredError,
    422: InvalidError,
    429: TooManyRequestsError,
}


def failure(error: ApiError) -> Object:
    """The Status of this error."""
    status: Object = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": excerpt(error.message, _MOST_MESSAGE),
        "reason": error.reason,
        "details": _bounded(error.details),
        "code": error.code,
    }
    if isinstance(error, ExpiredError) and error.continue_:
        status["metadata"] = {"continue": error.continue_}
    if not error.has_details:
        del status["details"]
    if not error.reason:
        del status["reason"]
    return status


def _bounded(details: Object) -> Object:
    """`field_errors` bounds causes; other client input (a name, a UID) is cut here."""
    return {
        key: excerpt(value, _MOST_DETAIL) if isinstance(value, str) else value
        for key, value in details.items()
    }


def success(details: Object | None = None) -> Object:
    status: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details:
        status["details"] = details
    return status


def from_status(status: Any, code: int) -> ApiError:
    """The typed error of a response; `status` may be anything that a server or a proxy has sent."""
    if not isinstance(status, dict) or status.get("kind") != "Status":
        kind = _BY_CODE.get(code, ApiError)
        return kind(f"the server answered {code}", code=code, reason="" if kind is ApiError else None)
    code = _of_type(status.get("code"), int) or code
    reason = _of_type(status.get("reason"), str) or ""
    kind = _BY_REASON.get(reason) or _BY_CODE.get(code, ApiError)
    return kind(
        _of_type(status.get("message"), str) or f"the server answered {code}",
        code=code,
        reason=reason,
        details=_of_type(status.get("details"), dict) or {},
    )


def _of_type(value: Any, type_: type[T]) -> T | None:
    return value if isinstance(value, type_) else None

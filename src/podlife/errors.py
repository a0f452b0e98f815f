"""The one exception tree.

`PodlifeError` is everything podlife raises on purpose; the command line shows its text as one line.
`ApiError` is an answer of a Kubernetes API server, in both directions: the client raises what a server
answered, the embedded server raises what it will answer. It has a subclass only where callers branch on it.
"""

from __future__ import annotations

from typing import Any

# A wrong header must not delay retries for hours.
_MOST_RETRY_SECONDS = 300


class PodlifeError(Exception):
    """Everything podlife raises on purpose. The text is one line that a user can act on."""


class ConfigError(PodlifeError):
    """What the user gave (a file, a flag, an environment) cannot be used."""


class NoServerError(ConfigError):
    """Neither flags nor environment nor files name a server."""


class UnreachableError(PodlifeError):
    """No answer came from the server: refused, reset, timed out, or a certificate that is not trusted."""


class TerminalError(PodlifeError):
    """Trying again will not help: a reconcile that raises it is not retried."""


class ApiError(PodlifeError):
    """A Kubernetes `Status` of failure. `details` is the Status's own `details` object."""

    code: int = 500
    reason: str = "InternalError"

    def __init__(
        self,
        message: str,
        *,
        code: int | None = None,
        reason: str | None = None,
        details: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = type(self).code if code is None else code
        self.reason = type(self).reason if reason is None else reason
        self.details: dict[str, Any] = details or {}
        # An answer that has details, though there is nothing in them, is not the same as one that has none.
        self.has_details = details is not None

    @property
    def retry_after_seconds(self) -> int | None:
        """How long the server asked to wait, if it did; no longer than is reasonable, whatever it asked."""
        seconds = self.details.get("retryAfterSeconds")
        return max(0, min(seconds, _MOST_RETRY_SECONDS)) if isinstance(seconds, int) else None


class UnauthorizedError(ApiError):
    code, reason = 401, "Unauthorized"


class ForbiddenError(ApiError):
    code, reason = 403, "Forbidden"


class NotFoundError(ApiError):
    code, reason = 404, "NotFound"

    def is_about(self, name: str) -> bool:
        """Whether the server says of the object of this name that it is not there. A proxy on the way that knows no
        such page, or a server that does not serve the whole kind, answers 404 too, and says nothing of the object."""
        return bool(self.details.get("name") == name)


class ConflictError(ApiError):
    """The object has changed, or is not the expected one."""

    code, reason = 409, "Conflict"


class AlreadyExistsError(ApiError):
    code, reason = 409, "AlreadyExists"


class ExpiredError(ApiError):
    """The requested revision has been compacted: list again. With `continue_`, a token of a paged list, the rest of the
    pages can be listed as they are now."""

    code, reason = 410, "Expired"

    def __init__(self, message: str, *, continue_: str = "", **others: Any) -> None:
        super().__init__(message, **others)
        self.continue_ = continue_


class InvalidError(ApiError):
    code, reason = 422, "Invalid"


class TooManyRequestsError(ApiError):
    code, reason = 429, "TooManyRequests"

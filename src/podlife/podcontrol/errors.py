"""Errors of pod control that callers branch on.

Invalid input is a `TerminalError`: the reconcile is not repeated until something changes. A pod that is gone is a
`NotFoundError`, even if another pod has its name by now.
"""

from __future__ import annotations

from podlife.errors import ApiError, ForbiddenError, NotFoundError, PodlifeError, TerminalError

# Maximum number of errors in a message.
_MOST_SHOWN = 10


class InvalidInputError(TerminalError):
    """Invalid input; nothing was sent."""


class InvalidControllerRefError(InvalidInputError):
    """The owner reference is not one of a controller."""


class InvalidOwnerError(InvalidInputError):
    """The owner lacks metadata that identifies it."""


class InvalidTemplateError(InvalidInputError):
    """The template is invalid."""


class SelectorMismatchError(InvalidTemplateError):
    """The selector does not match the template's labels."""


class PodReplacedError(NotFoundError):
    """The pod is gone, and another one has its name, which was not changed."""


class NamespaceTerminatingError(ForbiddenError):
    """The namespace is terminating: nothing can be created in it, and a retry does not help."""


class PodDeleteError(PodlifeError):
    """The pod could not be deleted; `cause` is the original error."""

    def __init__(self, cause: PodlifeError) -> None:
        super().__init__(f"unable to delete pods: {cause}")
        self.cause = cause


class AdoptionRefusedError(PodlifeError):
    """The owner may not adopt: it is being deleted, was replaced, or could not be read."""


class ClaimError(PodlifeError):
    """Several objects could not be adopted or released; `errors` has the reasons."""

    def __init__(self, errors: tuple[PodlifeError, ...]) -> None:
        more = [f"and {len(errors) - _MOST_SHOWN} more"] if len(errors) > _MOST_SHOWN else []
        super().__init__(f"[{', '.join([*map(str, errors[:_MOST_SHOWN]), *more])}]")
        self.errors = errors


def as_namespace_terminating(error: PodlifeError) -> NamespaceTerminatingError | None:
    """The same error as NamespaceTerminatingError, if that is its cause."""
    causes = error.details.get("causes") if isinstance(error, ApiError) else None
    if not isinstance(error, ApiError) or not isinstance(causes, list):
        return None
    if not any(isinstance(cause, dict) and cause.get("reason") == "NamespaceTerminating" for cause in causes):
        return None
    return NamespaceTerminatingError(
        error.message, code=error.code, reason=error.reason, details=error.details
    )


def replaced(namespace: str, name: str, uid: str, error: ApiError) -> PodReplacedError:
    """The error for a replaced pod, with the server's message."""
    message = f"pod {namespace}/{name} with UID {uid} is gone, another one has its name: {error}"
    return PodReplacedError(message, code=error.code, reason=error.reason, details=error.details)

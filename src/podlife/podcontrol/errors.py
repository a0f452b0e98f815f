"""Errors of pod control that callers branch on.

Invalid input is a `TerminalError`: the reconcile is not repeated until something changes. A pod that is gone is a
`NotFoundError`, even if another pod has its name by now.
"""

from __future__ import annotations

from podlife.errors import ApiError, ForbiddenError, NotFoundError, PodlifeError, TerminalError

# How many errors are shown in full.
_MOST_TOLD = 10


class InvalidInputError(TerminalError):
    """Invalid input; nothing was sent."""


class InvalidControllerRefError(InvalidInputError):
    """The owner reference is not one of a controller."""


class InvalidOwnerError(InvalidInputError):
    """The object that acts does not say who it is."""


class InvalidTemplateError(InvalidInputError):
    """The template is invalid."""


class SelectorMismatchError(InvalidTemplateError):
    """The pods of the template would not be those that the selector selects."""


class PodReplacedError(NotFoundError):
    """The pod that was meant is gone, and another one has its name: nothing was done to that."""


class NamespaceTerminatingError(ForbiddenError):
    """The namespace is going: nothing new comes into it, and trying again does not help."""


class PodDeleteError(PodlifeError):
    """The pod could not be deleted; `cause` is why, in its own type."""

    def __init__(self, cause: PodlifeError) -> None:
        super().__init__(f"unable to delete pods: {cause}")
        self.cause = cause


class AdoptionRefusedError(PodlifeError):
    """The owner may not take the object: it is going itself, has been replaced, or could not be asked."""


class ClaimError(PodlifeError):
    """More than one object could not be adopted or released; `errors` says why, one by one."""

    def __init__(self, errors: tuple[PodlifeError, ...]) -> None:
        more = [f"and {len(errors) - _MOST_TOLD} more"] if len(errors) > _MOST_TOLD else []
        super().__init__(f"[{', '.join([*map(str, errors[:_MOST_TOLD]), *more])}]")
        self.errors = errors


def as_namespace_terminating(error: PodlifeError) -> NamespaceTerminatingError | None:
    """The same refusal in the type callers branch on, if it is because the namespace is going."""
    causes = error.details.get("causes") if isinstance(error, ApiError) else None
    if not isinstance(error, ApiError) or not isinstance(causes, list):
        return None
    if not any(isinstance(cause, dict) and cause.get("reason") == "NamespaceTerminating" for cause in causes):
        return None
    return NamespaceTerminatingError(
        error.message, code=error.code, reason=error.reason, details=error.details
    )


def replaced(namespace: str, name: str, uid: str, error: ApiError) -> PodReplacedError:
    """Says that the pod which was meant is not there any more, with what the server answered."""
    message = f"pod {namespace}/{name} with UID {uid} is gone, another one has its name: {error}"
    return PodReplacedError(message, code=error.code, reason=error.reason, details=error.details)

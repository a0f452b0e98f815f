"""Errors of webhooks, in upstream's words."""

from __future__ import annotations

from podlife.api.codec import Object
from podlife.errors import ApiError


class CallError(Exception):
    """The webhook could not be called, or did not answer as it should. The failure policy decides what that means."""


def internal_error(text: str) -> ApiError:
    return ApiError(f"Internal error occurred: {text}", details={"causes": [{"message": text}]})


def out_of_time() -> ApiError:
    text = "Timeout: request did not complete within requested timeout"
    return ApiError(text, code=504, reason="Timeout", details={})


def denial(webhook_name: str, status: Object) -> ApiError:
    """The rejection that a webhook gave; what it says of itself is checked, since it comes from outside."""
    code, message, reason = status.get("code"), status.get("message"), status.get("reason")
    details = status.get("details")
    denied = f'admission webhook "{webhook_name}" denied the request'
    if why := message or reason:
        denied += f": {why}"
    else:
        denied += " without explanation"
    return ApiError(
        denied,
        code=code if isinstance(code, int) and 400 <= code <= 599 else 400,
        reason=reason if isinstance(reason, str) else "",
        details=details if isinstance(details, dict) else None,
    )

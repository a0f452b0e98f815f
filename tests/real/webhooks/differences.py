"""Where podlife differs on purpose, by case and by place; docs/parity.md gives the reasons."""

from __future__ import annotations

_TEXT = {
    "[0].body.message": "Go's parser has its own words",
    "[0].body.details.causes[0].message": "Go's parser has its own words",
}
_ONCE = "the removal of a pod without grace is one change, which is reviewed once"

_REDIRECT = "redirects are not followed: a webhook must not choose where the server connects to"

DIFFERENCES: dict[str, dict[str, str]] = {
    "redirect": dict.fromkeys(_TEXT, _REDIRECT),
    "redirect-307": dict.fromkeys((*_TEXT, "[0].reviews"), _REDIRECT),
    "nonsense": _TEXT,
    "undecodable-patch": _TEXT,
    "pods": {
        "[4].reviews": _ONCE,
        "[4].body.metadata.resourceVersion": _ONCE,
    },
}

_ONE_REVIEW = "a list is converted in one review, by kube-apiserver each object by itself"
_PARSER = "Go's parser has its own words"


def _messages(why: str, *requests: int) -> dict[str, str]:
    return {f"[{request}].body.message": why for request in requests}


CONVERSION_DIFFERENCES: dict[str, dict[str, str]] = {
    "loses-objects": _messages(_ONE_REVIEW, 1, 2, 10),
    "adds-objects": _messages(_ONE_REVIEW, 1, 2, 10),
    "no-objects": _messages(_ONE_REVIEW, 1),
    "no-kind": _messages(
        "the object is quoted as the webhook sent it, which is in the order of its fields", 0
    ),
    "nonsense": _messages(_PARSER, 0, 1, 2, 3),
    "redirect": _messages(_REDIRECT, 0),
    "redirect-307": _messages(_REDIRECT, 0),
}

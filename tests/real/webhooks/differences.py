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

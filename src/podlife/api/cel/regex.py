"""Regular expressions in linear time: RE2, with the error texts of Go's regexp."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import re2

from podlife.api.cel.errors import EvaluationError

_LONGEST_CACHED = 1000
# Together with the bound of each, at most 128 MiB of automata, whatever tenants write.
_CACHED = 128
_TEXTS = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "unexpected )",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid character class range": "invalid character class range",
    "invalid escape sequence": "invalid escape sequence",
    "trailing \\": "trailing backslash at end of expression",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "invalid repeat count",
    "invalid named capture group": "invalid named capture",
}


def compile_pattern(pattern: str) -> Any:
    """Raises EvaluationError with Go's text."""
    return _cached(pattern) if len(pattern) <= _LONGEST_CACHED else _compile(pattern)


def _compile(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    # Patterns whose automaton takes more memory are refused.
    options.max_mem = 1 << 20
    try:
        return re2.compile(pattern, options)
    except (re2.error, UnicodeError) as error:
        raise EvaluationError(_go_text(str(error).strip("b'\""), pattern)) from None


@lru_cache(maxsize=_CACHED)
def _cached(pattern: str) -> Any:
    return _compile(pattern)


def _go_text(error: str, pattern: str) -> str:
    kind, _, detail = error.partition(": ")
    text = _TEXTS.get(kind, kind)
    # Go quotes the whole pattern where a bracket is missing.
    shown = pattern if kind in ("missing )", "unexpected )") else re.sub(r"\\\\", r"\\", detail)
    return f"error parsing regexp: {text}: `{shown}`" if shown else f"error parsing regexp: {text}: ``"

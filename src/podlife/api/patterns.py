"""Patterns of schemas and of CEL: regular expressions of Go, matched in linear time by the RE2 library (ADR 18).

Python's own engine backtracks, and a tenant chooses both the pattern and the text. The time is still the product of the
text's length and the pattern's size (`programsize`): callers count it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Protocol

from podlife.memory import emptied_with_memory

# Of memory for one pattern; some 10,000 instructions.
_MOST_BYTES = 256 << 10
# RE2's words for an error, and Go's.
_GO_WORDS = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "invalid character class": "invalid character class range",
}
_ERROR = re.compile(r"(?P<words>[^:]+)(?:: (?P<part>.*))?", re.DOTALL)


class Pattern(Protocol):
    @property
    def pattern(self) -> str: ...

    @property
    def programsize(self) -> int: ...

    def search(self, text: str) -> object | None: ...


@emptied_with_memory
@lru_cache(maxsize=1024)
def compile_pattern(text: str) -> Pattern:
    """Compile a pattern; raises ValueError in the words of Go's regexp package."""
    # Imported with the first pattern: most servers have none.
    import re2

    options = re2.Options()
    options.max_mem = _MOST_BYTES
    options.log_errors = False
    try:
        pattern: Pattern = re2.compile(text, options)
    except re2.error as error:
        raise ValueError(_in_go_words(error, text)) from None
    return pattern


def _in_go_words(error: Exception, text: str) -> str:
    said = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error.args[0])
    match = _ERROR.fullmatch(said)
    if match is None:
        return f"error parsing regexp: {said}"
    words = _GO_WORDS.get(match["words"], match["words"])
    part = text if match["part"] is None or words == "missing closing )" else match["part"]
    if words == "trailing backslash at end of expression":
        part = ""
    return f"error parsing regexp: {words}: `{part}`"

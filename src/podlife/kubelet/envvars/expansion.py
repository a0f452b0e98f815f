"""References like $(NAME) in commands, arguments and values of the environment."""

from __future__ import annotations

import re
from collections.abc import Mapping

_REFERENCE = re.compile(r"\$(?:(\$)|\(([^)]*)\))")


def expand(text: str, *known: Mapping[str, str]) -> str:
    """With each reference replaced by the value from the first mapping that has it. `$$` is a dollar sign, so that
    `$$(NAME)` stays unexpanded; what is not known, or is no reference, stays as written."""

    def value(match: re.Match[str]) -> str:
        if match[1]:
            return "$"
        return next((each[match[2]] for each in known if match[2] in each), match[0])

    return _REFERENCE.sub(value, text)

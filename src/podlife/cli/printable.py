"""Text from the cluster made safe for a terminal.

Messages, names and reasons come from anybody who may write them into the cluster. A terminal would execute control
sequences in them, and a line break in them would look like a line of ours.
"""

from __future__ import annotations

from typing import Any


def printable(text: str) -> str:
    """One line: printable characters as they are, the others as Python escapes them."""
    if text.isprintable():
        return text
    return "".join(_shown(letter) for letter in text)


def printable_lines(text: str) -> str:
    """As `printable`, line by line; tabs stay."""
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in text.split("\n"))


def as_yaml(value: Any) -> str:
    """YAML that is safe on a terminal. Printable Unicode is written as it is; if any character is not printable (bidi
    controls, for example), all non-ASCII is escaped."""
    import yaml

    text = str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True))
    return text if printable_lines(text) == text else str(yaml.safe_dump(value, sort_keys=False))


def _shown(letter: str) -> str:
    if letter.isprintable():
        return letter
    return " " if letter.isspace() else letter.encode("unicode_escape").decode()

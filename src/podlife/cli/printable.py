"""What others have written, shown to people: messages, names and reasons come from whoever may write them into the
cluster, and a terminal would do what is in them; a line that they begin anew would look like one of ours."""

from __future__ import annotations

from typing import Any

__all__ = ["as_yaml", "printable", "printable_lines"]


def printable(text: str) -> str:
    """One line, with all letters that can be seen as they are, and the others as Python writes them."""
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

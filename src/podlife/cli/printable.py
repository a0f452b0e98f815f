"""What others have written, shown to people: messages, names and reasons come from whoever may write them into the
cluster, and a terminal would do what is in them; a line that they begin anew would look like one of ours."""

from __future__ import annotations

__all__ = ["printable"]


def printable(text: str) -> str:
    """One line, with all letters that can be seen as they are, and the others as Python writes them."""
    if text.isprintable():
        return text
    return "".join(_shown(letter) for letter in text)


def _shown(letter: str) -> str:
    if letter.isprintable():
        return letter
    return " " if letter.isspace() else letter.encode("unicode_escape").decode()

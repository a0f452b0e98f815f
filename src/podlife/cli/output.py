"""Output formats that all commands share, for people and programs.

Messages, names and reasons come from any user of the cluster. A terminal would execute control sequences in them, and a
line break would look like a line of podlife's output: `printable` makes them safe.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

STRUCTURED = ("json", "yaml")


def structured(facts: Any, output: str) -> str:
    """Format as JSON or YAML, in whole lines."""
    if output == "json":
        return as_json(facts)
    import json

    import yaml

    # Plain types first: JSON accepts subclasses of str and list that YAML refuses.
    plain = json.loads(json.dumps(facts))
    return str(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True))


def as_json(value: Any) -> str:
    # `-h` loads this module, but needs no JSON.
    import json

    return json.dumps(value, indent=2) + "\n"


def as_yaml(value: Any) -> str:
    """YAML that is safe on a terminal. Printable Unicode is written as it is; if any character is not printable (bidi
    controls, for example), all non-ASCII is escaped."""
    import yaml

    text = str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True))
    return text if printable_lines(text) == text else str(yaml.safe_dump(value, sort_keys=False))


def counted(number: int, noun: str = "pod", plural: str = "") -> str:
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def table(rows: Sequence[Sequence[str]]) -> str:
    """Whole lines, aligned as by kubectl: a column is as wide as its longest cell, the last one is not padded."""
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) + 3 for column in zip(*rows, strict=True)]
    lines = ("".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "".join(f"{line.rstrip()}\n" for line in lines)


def printable(text: str) -> str:
    """One line: printable characters as they are, the others as Python escapes them."""
    if text.isprintable():
        return text
    return "".join(_escaped(character) for character in text)


def printable_lines(text: str) -> str:
    """As `printable`, line by line; tabs stay."""
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in text.split("\n"))


def _escaped(character: str) -> str:
    if character.isprintable():
        return character
    return " " if character.isspace() else character.encode("unicode_escape").decode()

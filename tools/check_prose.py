"""Count phrases that CONTRIBUTING.md asks to avoid, and fail when one becomes more frequent.

Scanned are comments and string literals under src (docstrings included), README.md, and docs. `prose_limits.json` holds
the permitted number of each phrase. `--tighten` lowers every limit to the current count and never raises one.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIMITS = Path(__file__).with_name("prose_limits.json")
SHOWN = 5

# Each phrase: the pattern, then what to write instead. A space in a pattern matches a line break too.
PHRASES: dict[str, tuple[str, str]] = {
    "is no X": (r"(?<!there\s)\b(?:is|are) no (?!longer\b|more\b)", "invalid X, is not an X"),
    "whoever": (r"\b(?:whoever|whomever|whosoever)\b", "the name of the component or caller"),
    "nobody": (r"\b(?:nobody|no one)\b", "the name of the component, or nothing"),
    "somebody": (r"\b(?:somebody|anybody|everybody)\b", "the name of the component or user"),
    "is told": (r"\b(?:is|are|was|were|be|been|being) told\b", "is notified, receives, reports"),
    "anew": (r"\banew\b", "again"),
    "also when": (r"\balso (?:when|if)\b", "even if"),
    "if not said": (r"\bif not said\b", "default: …"),
    "knows no": (r"\bknows? no\b", "unknown …"),
    "in the past": (r"\blies? in the past\b", "must not be negative"),
    "to its end": (r"\b(?:to|at) (?:its|their) end\b", "until it exits, when it finishes"),
    "waited for": (r"\b(?:is|are|was|were|be) waited for\b", "waiting for …"),
    "looked at": (r"\b(?:is|are|was|were|be|been) looked at\b", "is checked, is read"),
    "come to an end": (r"\b(?:comes?|came|come) to (?:an|its|their) end\b", "ends, exits"),
    "costs its life": (r"\bcosts? .{1,40} (?:its|their) li(?:fe|ves)\b", "causes … to be deleted"),
    "is there again": (r"\b(?:is|are) (?:all )?there again\b", "is restored, persists"),
    "with commas": (r"\bwith commas\b", "comma-separated"),
}


@dataclass(frozen=True)
class Place:
    """One occurrence of a phrase."""

    path: Path
    line: int


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """The texts of a file, each with the number of its first line."""
    source = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield 1, source
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        # Python 3.12 splits f-strings into parts of their own type.
        if tokenize.tok_name[token.type] in ("COMMENT", "STRING", "FSTRING_MIDDLE"):
            yield token.start[0], token.string


def find(root: Path) -> dict[str, list[Place]]:
    """Every occurrence of every phrase, those in the files that changed last in front."""
    patterns = {name: re.compile(regex.replace(" ", r"\s+"), re.I) for name, (regex, _) in PHRASES.items()}
    found: dict[str, list[Place]] = {name: [] for name in PHRASES}
    paths = [*(root / "src").rglob("*.py"), *(root / "docs").rglob("*.md"), root / "README.md"]
    for path in sorted(paths, key=lambda path: (-path.stat().st_mtime, path)):
        for first, text in prose(path):
            for name, pattern in patterns.items():
                for match in pattern.finditer(text):
                    line = first + text.count("\n", 0, match.start())
                    found[name].append(Place(path.relative_to(root), line))
    return found


def excesses(found: dict[str, list[Place]], limits: dict[str, int]) -> Iterator[str]:
    """One line for each phrase that exceeds its limit."""
    for name, places in found.items():
        limit = limits.get(name, 0)
        if len(places) > limit:
            shown = ", ".join(f"{place.path}:{place.line}" for place in places[:SHOWN])
            more = f" and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
            instead = PHRASES[name][1]
            yield f"'{name}' occurs {len(places)} times, limit {limit}; write instead: {instead}: {shown}{more}"


def tightened(found: dict[str, list[Place]], limits: dict[str, int]) -> dict[str, int]:
    """The lower of limit and count; a phrase without a limit gets its count."""
    return {name: min(len(places), limits.get(name, len(places))) for name, places in found.items()}


def main(arguments: list[str], root: Path = ROOT, limits_file: Path = LIMITS) -> int:
    parser = argparse.ArgumentParser(
        description="Check that discouraged phrases do not become more frequent."
    )
    parser.add_argument("--tighten", action="store_true", help="lower the limits to the current counts")
    options = parser.parse_args(arguments)
    limits = json.loads(limits_file.read_text(encoding="utf-8")) if limits_file.exists() else {}
    found = find(root)
    if options.tighten:
        limits = tightened(found, limits)
        limits_file.write_text(json.dumps(limits, indent=2) + "\n", encoding="utf-8")
    lines = list(excesses(found, limits))
    print(*lines, sep="\n", end="\n" if lines else "")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

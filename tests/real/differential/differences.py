"""What still differs from kube-apiserver on purpose: the step, the places in its answer, and the reason.

The list is exact. A difference that is not listed fails, and so does a listed one that is gone. `docs/parity.md`
shows the same list; `python -m tests.real.differential --write-parity` writes it there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.real.differential.compare import Difference

__all__ = ["DIFFERENCES", "Known", "parity_table", "write_parity"]

PARITY = Path(__file__).resolve().parents[3] / "docs" / "parity.md"
BEGIN, END = "<!-- differential: begin -->", "<!-- differential: end -->"


@dataclass(frozen=True)
class Known:
    """`at` are the places that differ; everything below them may, everything else may not."""

    reason: str
    at: tuple[str, ...] = ("",)

    def complaint(self, found: Sequence[Difference]) -> str:
        """What is no longer as listed, or nothing."""
        stray = [one.path for one in found if not any(one.path.startswith(place) for place in self.at)]
        if stray:
            return f"differs in more than is listed: {', '.join(stray)}"
        healed = [place for place in self.at if not any(one.path.startswith(place) for one in found)]
        if healed:
            shown = ", ".join(place or "anything" for place in healed)
            return f"no longer differs in {shown}: take it off the list"
        return ""


_APPLY = "server-side apply is not offered: 415 with a message that says what to do instead"
_PARSER = "what is wrong with unreadable JSON is said in the words of another parser"

DIFFERENCES: dict[str, Known] = {
    "patches/apply-creates": Known(_APPLY),
    "patches/apply-without-manager": Known(_APPLY),
    **{
        step: Known(_PARSER, ("body.message",))
        for step in (
            "errors/malformed",
            "errors/not-an-object",
            "errors/a-string",
            "errors/empty",
            "errors/trailing-text",
            "errors/very-deep",
            "errors/deep-in-an-object",
            "patches/json-unreadable",
            "patches/merge-unreadable",
            "patches/strategic-unreadable",
            "patches/empty-body",
            "deletion/options-unreadable",
            "lists/continue-nonsense",
        )
    },
}


def parity_table() -> str:
    """The list as Markdown: one row for each reason, with the steps that show it."""
    by_reason: dict[str, list[str]] = {}
    for step, known in DIFFERENCES.items():
        by_reason.setdefault(known.reason, []).append(step)
    rows = [
        f"| {reason} | {', '.join(f'`{step}`' for step in steps)} |" for reason, steps in by_reason.items()
    ]
    return "\n".join(["| what differs, and why | seen in |", "|---|---|", *rows])


def write_parity() -> None:
    before, rest = PARITY.read_text().split(BEGIN)
    after = rest.split(END)[1]
    PARITY.write_text(f"{before}{BEGIN}\n{parity_table()}\n{END}{after}")

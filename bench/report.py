"""Figures side by side, with the ratio that was aimed for and whether it was reached."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Goal:
    """A bound on the ratio of ours to theirs, or on ours alone."""

    low: float | None = None
    high: float | None = None
    value: float | None = None

    @classmethod
    def at_least(cls, ratio: float) -> Goal:
        return cls(low=ratio)

    @classmethod
    def at_most(cls, ratio: float) -> Goal:
        return cls(high=ratio)

    @classmethod
    def at_most_value(cls, value: float) -> Goal:
        return cls(value=value)

    def is_reached(self, ratio: float | None, ours: float) -> bool:
        if self.low is not None:
            return ratio is not None and ratio >= self.low
        if self.high is not None:
            return ratio is not None and ratio <= self.high
        return self.value is None or ours <= self.value

    def __str__(self) -> str:
        if self.low is not None:
            return f">= {self.low:g}x"
        if self.high is not None:
            return f"<= {self.high:.2g}x"
        return f"<= {self.value:g}"


@dataclass
class Table:
    title: str
    names: tuple[str, str]
    rows: list[tuple[str, float | None, float, Goal | None]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, what: str, theirs: float | None, ours: float, goal: Goal | None) -> None:
        """Without `theirs` a figure stands alone, and its goal is a bound on it."""
        self.rows.append((what, theirs, ours, goal))

    def note(self, text: str) -> None:
        self.notes.append(text)

    @property
    def missed(self) -> list[str]:
        return [
            what
            for what, theirs, ours, goal in self.rows
            if goal is not None and not goal.is_reached(_ratio(theirs, ours), ours)
        ]

    def __str__(self) -> str:
        lines = [self.title, f"{'':34}{self.names[0]:>16}{self.names[1]:>12}{'ratio':>9}   goal"]
        for what, theirs, ours, goal in self.rows:
            ratio = _ratio(theirs, ours)
            reached = "" if goal is None else ("reached" if goal.is_reached(ratio, ours) else "MISSED")
            beside = f"{'':>16}" if theirs is None else f"{theirs:>16.3g}"
            compared = f"{'':>9}" if ratio is None else f"{ratio:>8.2f}x"
            lines.append(f"{what:34}{beside}{ours:>12.3g}{compared}   {goal or ''!s:<9} {reached}")
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])


def _ratio(theirs: float | None, ours: float) -> float | None:
    return None if theirs is None else ours / theirs

"""Prints the steps of a demo: the time, what happened, which component did it, by which rule, and how to see it.

It waits for Enter between steps if requested. The scenario checks that what it prints is true.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import textwrap
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import typer

from podlife.errors import ConfigError

S = TypeVar("S")

_INDENT, _LABEL = 4, 6
_NARROWEST, _WIDEST = 60, 120
# After each step.
_READING_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class DemoStep(Generic[S]):
    """`do` triggers or awaits the event, and raises NotObservedError if it does not occur. The texts are formatted with
    the facts that the scenario has gathered by then; `see` are commands to type."""

    title: str
    do: Callable[[S], Awaitable[None]]
    what: str
    who: str
    rule: str
    see: tuple[str, ...] = ()


class Narrator:
    def __init__(self, *, is_paused: bool) -> None:
        """Raises ConfigError if it should pause without a terminal."""
        if is_paused and not sys.stdin.isatty():
            raise ConfigError("--pause requires a terminal to wait for Enter")
        self._is_paused = is_paused
        self._began = time.monotonic()
        self._width = max(_NARROWEST, min(_WIDEST, shutil.get_terminal_size((100, 24)).columns))

    def say(self, text: str = "") -> None:
        typer.echo(text)
        sys.stdout.flush()

    def title(self, number: int, text: str) -> None:
        self.say()
        seconds = f"{time.monotonic() - self._began:5.1f} s"
        self.say(f"{seconds}  {typer.style(f'{number}. {text}', bold=True)}")

    def describe(self, step: DemoStep[Any], facts: Mapping[str, object]) -> None:
        self._paragraph("", step.what.format_map(facts))
        self._paragraph("who", step.who.format_map(facts))
        self._paragraph("rule", step.rule.format_map(facts))
        for number, text in enumerate(step.see):
            label, line = "" if number else "see", text.format_map(facts)
            self.say(
                f"{' ' * _INDENT}{typer.style(label.ljust(_LABEL), dim=True)}{typer.style(line, fg='cyan')}"
            )

    def _paragraph(self, label: str, text: str) -> None:
        lead = " " * (_INDENT + _LABEL if label else _INDENT)
        lines = textwrap.wrap(
            text, self._width, initial_indent=lead, subsequent_indent=lead, break_on_hyphens=False
        )
        if label:
            first = f"{' ' * _INDENT}{typer.style(label.ljust(_LABEL), dim=True)}{lines[0].lstrip()}"
            lines = [first, *lines[1:]]
        for line in lines:
            self.say(line)

    async def pause(self) -> None:
        """Wait for Enter if requested; otherwise give the reader time."""
        if not self._is_paused:
            await asyncio.sleep(_READING_SECONDS if sys.stdout.isatty() else 0)
            return
        typer.echo(f"{' ' * _INDENT}(press Enter to continue)", nl=False)
        sys.stdout.flush()
        pressed = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(sys.stdin.fileno(), pressed.set)
        try:
            await pressed.wait()
        finally:
            loop.remove_reader(sys.stdin.fileno())
        # The terminal delivers a whole line; after end of file pausing is pointless.
        if not os.read(sys.stdin.fileno(), 4096):
            self._is_paused = False

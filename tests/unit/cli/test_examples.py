"""Every command shows in its help how it is called, and what it shows can be called."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from click.testing import CliRunner

from podlife.cli.app import app
from podlife.cli.examples import EXAMPLES

ROOT: Any = typer.main.get_command(app)


def commands_of(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    children = getattr(command, "commands", {})
    if not children or getattr(command, "invoke_without_command", False):
        yield path
    for name, each in children.items():
        yield from commands_of(each, (*path, name))


@pytest.mark.parametrize("path", [path for path in commands_of(ROOT) if path], ids=" ".join)
def test_the_help_of_a_command_has_an_example(path: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(ROOT, [*path, "--help"]).stdout
    examples = EXAMPLES[" ".join(path)]
    assert examples
    assert f"Examples:\n    {examples[0]}\n" in shown


@pytest.mark.parametrize("example", [each for examples in EXAMPLES.values() for each in examples])
def test_an_example_names_a_command_and_options_that_there_are(example: str) -> None:
    program, *words = shlex.split(example.partition(" > ")[0])
    assert program == "podlife"
    command: Any = ROOT
    context = command.make_context("podlife", [], resilient_parsing=True)
    while hasattr(command, "commands"):
        if not words or words[0].startswith("-"):
            assert command.invoke_without_command
            break
        name, command, words = command.resolve_command(context, words)
        assert command is not None, example
        context = command.make_context(name, [], parent=context, resilient_parsing=True)
    # Raises for an option that there is not.
    command.make_parser(context).parse_args(args=list(words))

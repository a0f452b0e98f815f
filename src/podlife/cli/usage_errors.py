"""Formats a usage error as one line: what was wrong, with which input, and what to do.

The messages of the command line library have several lines and vary by version. It exports few of its exceptions, so
they are distinguished by class name, which is stable.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Any

import typer

# The base class of these errors; their exit code is 2.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]

_EXTRA = re.compile(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)")


def describe_usage_error(error: Any) -> str:
    """The error as one line; the help, when no command was given."""
    kind = type(error).__name__
    if kind == "NoArgsIsHelpError":
        return str(error.format_message())
    text, is_ours = _text(kind, error)
    where = error.ctx.command_path if error.ctx is not None else "podlife"
    line = text if is_ours else f"{text}{'' if text.endswith('?') else ';'} `{where} -h` lists what there is"
    return f"podlife: {' '.join(line.split())}"


def _text(kind: str, error: Any) -> tuple[str, bool]:
    """The error text, and whether it already says what to do, as our own messages do."""
    message = str(error.message or "").rstrip(".")
    if kind == "NoSuchOption":
        close = " or ".join(_close_options(error))
        return f"unknown flag {error.option_name}{f': did you mean {close}?' if close else ''}", False
    if kind == "MissingParameter":
        return f"{_name(error.param)} is missing", False
    if kind == "BadParameter":
        return (f"{_name(error.param)}: {message}" if error.param is not None else message), True
    if kind == "BadOptionUsage" and "requires" in message:
        return f"flag needs an argument: {error.option_name}", True
    if match := _EXTRA.fullmatch(message):
        return f"{match[1]!r} is not expected here", False
    if message.startswith("No such command"):
        # "… 'x'. Did you mean 'y'?" becomes one sentence.
        return message.replace("No such", "unknown", 1).replace(". Did you", ": did you", 1), False
    # Raised by podlife itself, or of an unknown class.
    return message, kind == "UsageError"


def _close_options(error: Any) -> list[str]:
    """Up to two similar options: similar as a whole, or with a similar word."""
    known = [
        name
        for option in (error.ctx.command.get_params(error.ctx) if error.ctx is not None else ())
        for name in (*option.opts, *option.secondary_opts)
        if name.startswith("--")
    ]
    if close := get_close_matches(error.option_name, known, n=2, cutoff=0.75):
        return close
    wanted = error.option_name.lstrip("-").split("-")[-1]
    return [name for name in known if get_close_matches(wanted, name[2:].split("-"), n=1, cutoff=0.8)][:2]


def _name(parameter: Any) -> str:
    """As it is typed: the long form of an option, the metavar of an argument."""
    if parameter is None:
        return "something"
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name)
    # A one-letter option has no long form.
    return str(min((name for name in parameter.opts if len(name) > 3), default=parameter.opts[0]))

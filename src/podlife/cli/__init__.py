"""The command line: parses arguments, runs daemons, local clusters and demos, and prints.

A user's mistake is one line on standard error and exit code 1 (2 for wrong usage of a command); an unexpected error is
one line too, with a hint how to see the traceback. After JSON log records it is the last record. The same `main` serves
`podlife` and, as a plug-in, `kubectl podlife`. Nothing heavy is imported before a command needs it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

__all__ = ["guard", "main"]


def main() -> None:
    """Run the command and exit with its code."""
    guard(_run_command)


def guard(function: Callable[[], None]) -> None:
    """Call the function; an exception becomes an exit code and at most one line."""
    try:
        function()
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        _leave_quietly()
    except Exception as error:
        sys.exit(_explain(error))


def _run_command() -> None:
    import typer

    from podlife.cli.app import app

    try:
        code = app(prog_name=_program_name(sys.argv[0]), standalone_mode=False)
    except typer.Abort:
        # Some versions of the library turn an interruption into this.
        sys.exit(130)
    except Exception as error:
        from podlife.cli.usage_errors import UsageError, describe_usage_error

        if not isinstance(error, UsageError):
            raise
        print(describe_usage_error(error), file=sys.stderr)
        sys.exit(2)
    sys.exit(code if isinstance(code, int) else 0)


def _program_name(path: str) -> str:
    """As the user typed it: kubectl finds its plug-ins by their file's name."""
    return "kubectl podlife" if Path(path).name.startswith("kubectl-") else "podlife"


def _explain(error: Exception) -> int:
    from podlife.errors import PodlifeError

    if os.environ.get("PODLIFE_DEBUG"):
        import traceback

        traceback.print_exc()
    elif isinstance(error, PodlifeError):
        _say(_one_line(error))
    else:
        _say(f"unexpected {type(error).__name__}: {_one_line(error)} (set PODLIFE_DEBUG=1 to see where)")
    return 1


def _say(line: str) -> None:
    # A process that has not imported it has no log.
    logs = sys.modules.get("podlife.daemons.logs")
    if logs is None or not logs.log_the_end(line):
        print(f"podlife: {line}", file=sys.stderr)


def _one_line(error: Exception) -> str:
    from podlife.cli.printable import printable

    return printable(" ".join(str(error).split())) or type(error).__name__


def _leave_quietly() -> None:
    """The reader of standard output is gone; exit without a complaint about that."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(141)

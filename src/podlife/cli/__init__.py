"""The command line: the only place where parts are wired together, that prints, and that exits.

A mistake of the user's is one line on standard error and exit code 1 (2 for a wrong use of the command);
an error of ours is one line too, and how to see the rest. After a log for programs it is that log's last line.
The same `main` serves `podlife` and, as a plug-in, `kubectl podlife`. Nothing heavy is imported before a command
needs it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

__all__ = ["guard", "main"]


def main() -> None:
    """Run the command that was asked for and exit with its code."""
    guard(_run_command)


def guard(function: Callable[[], None]) -> None:
    """Call the function; whatever it raises becomes an exit code and at most one line."""
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
    from podlife.cli.usage_errors import UsageError, describe_mistake

    try:
        code = app(prog_name=_program_name(sys.argv[0]), standalone_mode=False)
    except UsageError as error:
        print(describe_mistake(error), file=sys.stderr)
        sys.exit(2)
    except typer.Abort:
        # What an interruption becomes on its way through some versions of the library.
        sys.exit(130)
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
    # Who has not loaded it has no log.
    logs = sys.modules.get("podlife.daemons.logs")
    if logs is None or not logs.log_the_end(line):
        print(f"podlife: {line}", file=sys.stderr)


def _one_line(error: Exception) -> str:
    from podlife.cli.printable import printable

    return printable(" ".join(str(error).split())) or type(error).__name__


def _leave_quietly() -> None:
    """Whoever read our output has gone; nothing may complain about that on the way out."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(141)

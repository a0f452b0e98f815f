"""Turns exceptions of a command into exit codes and at most one line on standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable


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


def _explain(error: Exception) -> int:
    from podlife.errors import PodlifeError

    if os.environ.get("PODLIFE_DEBUG"):
        import traceback

        traceback.print_exc()
    elif isinstance(error, PodlifeError):
        _report(_one_line(error))
    else:
        _report(f"unexpected {type(error).__name__}: {_one_line(error)} (set PODLIFE_DEBUG=1 to see where)")
    return 1


def _report(line: str) -> None:
    # If the module is not loaded, the process has no log.
    logs = sys.modules.get("podlife.daemons.logs")
    if logs is None or not logs.log_the_end(line):
        print(f"podlife: {line}", file=sys.stderr)


def _one_line(error: Exception) -> str:
    from podlife.cli.output import printable

    return printable(" ".join(str(error).split())) or type(error).__name__


def _leave_quietly() -> None:
    """Standard output is closed; exit without an error message."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(141)

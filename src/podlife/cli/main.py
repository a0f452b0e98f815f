"""Entry point of `podlife`, `kubectl podlife` and `python -m podlife`."""

from __future__ import annotations

import sys
from pathlib import Path

from podlife.cli.guard import guard


def main() -> None:
    """Run the command and exit with its code."""
    guard(_run_command)


def _run_command() -> None:
    import typer

    from podlife.cli.app import app

    try:
        code = app(prog_name=_program_name(sys.argv[0]), standalone_mode=False)
    except typer.Abort:
        # Some versions of typer raise this on Ctrl-C.
        sys.exit(130)
    except Exception as error:
        from podlife.cli.usage_errors import UsageError, describe_usage_error

        if not isinstance(error, UsageError):
            raise
        print(describe_usage_error(error), file=sys.stderr)
        sys.exit(2)
    sys.exit(code if isinstance(code, int) else 0)


def _program_name(path: str) -> str:
    """As the user typed it: kubectl finds plug-ins by their file name."""
    return "kubectl podlife" if Path(path).name.startswith("kubectl-") else "podlife"

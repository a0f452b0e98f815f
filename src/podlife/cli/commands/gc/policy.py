"""`podlife gc policy`: checks a policy, shows it in full, and tests it without deleting anything."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from podlife.cli.commands.gc.options import PolicyOptions
from podlife.cli.connection import ConnectionOptions
from podlife.cli.options import command_group, format_option, option, with_groups

if TYPE_CHECKING:
    from datetime import datetime

app = command_group("Check, show and try out a policy of the collector.")


def _file_name(text: str) -> str:
    # An unset variable in a script must not select the default policy, or skip the comparison.
    if not text:
        raise typer.BadParameter("the name of the file is empty: name a file, or leave it out")
    return text


FileArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[FILE]",
        parser=_file_name,
        help="A policy file, overriding --policy; - is standard input.",
        show_default=False,
    ),
]
_PLAN_FORMATS = ("table", "wide", "json", "yaml", "name", "list")


@app.command()
def check(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="Policies; - is standard input.", show_default=False),
    ],
) -> None:
    """Validate policies. Each error is a line FILE:LINE:COLUMN on standard error; the exit code is 1."""
    from podlife.cli.commands.gc.policy_show import check_policies

    sys.exit(check_policies(files))


@app.command()
@with_groups
def show(
    policy: PolicyOptions,
    file: FileArgument = None,
    output: Annotated[str, format_option("text", "yaml", "json")] = "text",
) -> None:
    """Show the effective policy, including defaults and flags."""
    from podlife.cli.commands.gc.policy_show import show_policy

    sys.exit(show_policy(policy, file or "", output))


@app.command("test")
@with_groups
def try_out(
    policy: PolicyOptions,
    connection: ConnectionOptions,
    file: FileArgument = None,
    pods: Annotated[
        list[str] | None,
        option(
            "FILE",
            "Output of `kubectl get pods,nodes,namespaces -A -o json`; - is standard input (repeatable).",
            show_default="those of the cluster",
        ),
    ] = None,
    now: Annotated[
        str, option("TIME", "Time to evaluate at, such as 2030-01-01T00:00:00Z.", show_default="now")
    ] = "",
    expect: Annotated[
        str | None,
        option(
            "FILE",
            "Expected lines NAMESPACE/NAME RULE, as printed by -o list: show only differences, and exit "
            "with 1 if there are any.",
            parser=_file_name,
        ),
    ] = None,
    output: Annotated[
        str, format_option(*_PLAN_FORMATS, help_="Output format; list is for --expect.")
    ] = "table",
) -> None:
    """Show what the policy would delete, and by which rule. Changes nothing."""
    from podlife.cli.commands.gc.policy_trial import Trial, run_trial

    trial = Trial(file or "", pods or (), _parse_now(now), expect or "", output)
    sys.exit(run_trial(trial, policy, connection))


def _parse_now(text: str) -> datetime | None:
    from podlife.api.codec import parse_time

    if not text:
        return None
    try:
        return parse_time(text)
    except ValueError:
        raise typer.BadParameter(
            f"invalid --now time {text!r}: expected RFC 3339, such as 2030-01-01T00:00:00Z"
        ) from None


@app.command()
def schema() -> None:
    """Show the JSON Schema of a policy, for editors."""
    from podlife.cli.commands.gc.policy_show import show_schema

    show_schema()

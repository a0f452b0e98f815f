"""`podlife gc policy`: look for mistakes in a policy, show it in full, try it out before anything is deleted."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from podlife.cli.gc_options import PolicyOptions
from podlife.cli.options import with_groups

__all__ = ["app"]

app = typer.Typer(
    help="Check, show and try out a policy of the collector.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_FORMS = ("text", "yaml", "json")


def _parse_form(text: str) -> str:
    if text not in _FORMS:
        raise typer.BadParameter(f"{text!r} is no way to show it: there are {', '.join(_FORMS)}")
    return text


FormOption = Annotated[
    str,
    typer.Option("-o", "--output", metavar="|".join(_FORMS), parser=_parse_form, help="How to show it."),
]


@app.command()
def check(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="Policies; - is standard input.", show_default=False),
    ],
) -> None:
    """Look for mistakes. Each is a line FILE:LINE:COLUMN on standard error, and the exit code is 1."""
    from podlife.cli.gc_policy_show import check_policies

    sys.exit(check_policies(files))


@app.command()
@with_groups
def show(
    policy: PolicyOptions,
    file: Annotated[
        str, typer.Argument(metavar="[FILE]", help="A policy, in place of --policy; - is standard input.")
    ] = "",
    output: FormOption = "text",
) -> None:
    """Show the policy in force with all that it does not say: what is left out of the file, and the flags."""
    from podlife.cli.gc_policy_show import show_policy

    sys.exit(show_policy(policy, file, output))


@app.command()
def schema() -> None:
    """Show the JSON Schema of a policy, for editors."""
    from podlife.cli.gc_policy_show import show_schema

    show_schema()

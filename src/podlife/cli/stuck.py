"""`podlife stuck`: all pods that are stuck, with cause and age."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from podlife.cli.connecting import ConnectionOptions
from podlife.cli.explain import FormatOption, checked_namespace
from podlife.cli.options import GoCommand, with_groups

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    app.command(cls=GoCommand)(stuck)


@with_groups
def stuck(
    connection: ConnectionOptions,
    namespace: Annotated[
        str, typer.Option("-n", "--namespace", metavar="NAME", help="The namespace to look at.")
    ] = "default",
    all_namespaces: Annotated[
        bool, typer.Option("-A", "--all-namespaces", help="Pods of every namespace.")
    ] = False,
    output: FormatOption = "text",
) -> None:
    """List the pods that are stuck, the longest first, with cause and age. Only reads."""
    from podlife.cli.explain_show import show_stuck

    sys.exit(show_stuck(connection, "" if all_namespaces else checked_namespace(namespace), output))

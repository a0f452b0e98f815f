"""`podlife stuck`: all pods that are stuck, with cause and age."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from podlife.cli.commands.explain.app import (
    FormatOption,
    NamespaceOption,
    PolicyOption,
    settings_of,
)
from podlife.cli.connection import ConnectionOptions
from podlife.cli.options import GoCommand, checked_namespace, with_groups


def register(app: typer.Typer) -> None:
    app.command(cls=GoCommand)(stuck)


@with_groups
def stuck(
    connection: ConnectionOptions,
    namespace: NamespaceOption = "",
    all_namespaces: Annotated[
        bool, typer.Option("-A", "--all-namespaces", help="Pods of every namespace.")
    ] = False,
    policy: PolicyOption = None,
    output: FormatOption = "text",
) -> None:
    """List the pods that are stuck, the longest first, with cause and age. Only reads."""
    from podlife.cli.commands.explain.show import show_stuck

    if namespace and all_namespaces:
        raise typer.BadParameter("one namespace (-n) and every namespace (-A) exclude each other")
    wanted = checked_namespace(namespace)
    settings = settings_of(policy)
    sys.exit(show_stuck(connection, wanted, output, is_everywhere=all_namespaces, settings=settings))

"""`podlife status`: the components, nodes and pods of a running `podlife up`."""

from __future__ import annotations

from typing import Annotated

import typer

from podlife.cli.commands.apiserver import DataOption
from podlife.cli.options import format_option


def register(app: typer.Typer) -> None:
    app.command()(status)


def status(
    data: DataOption = None,
    output: Annotated[str, format_option("table", "json", "yaml")] = "table",
) -> None:
    """Show what a running `podlife up` consists of: components, nodes, pods. The exit code is 1 where none runs."""
    from podlife.cli.commands.status_output import show_status
    from podlife.localcluster.state_dir import choose_state_dir

    show_status(choose_state_dir(data), output)

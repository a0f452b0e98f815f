"""`podlife status`: the parts, nodes and pods of a running `podlife up`."""

from __future__ import annotations

from typing import Annotated

import typer

from podlife.cli.up import DataOption

__all__ = ["register"]

_FORMATS = ("table", "json")


def _parse_format(text: str) -> str:
    if text not in _FORMATS:
        raise typer.BadParameter(f"{text!r} is no format: there are {', '.join(_FORMATS)}")
    return text


def register(app: typer.Typer) -> None:
    app.command()(status)


def status(
    data: DataOption = None,
    output: Annotated[
        str,
        typer.Option(
            "-o", "--output", metavar="|".join(_FORMATS), parser=_parse_format, help="How to show it."
        ),
    ] = "table",
) -> None:
    """Show what a running `podlife up` consists of: components, nodes, pods. The exit code is 1 where none runs."""
    from podlife.cli.status_show import show_status
    from podlife.cli.up_folder import UpFolder, default_folder

    show_status(UpFolder(data or default_folder()), is_json=output == "json")

"""`podlife envtest`: the programs that controller-runtime's envtest starts."""

from __future__ import annotations

import shlex
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from podlife.cli.commands.apiserver import parse_folder
from podlife.cli.options import option


class Form(StrEnum):
    """What to print, as setup-envtest's option of this name."""

    PATH = "path"
    ENV = "env"


def envtest(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DIR]", parser=parse_folder, help="Folder to write to; default: one in ~/.cache/podlife."
        ),
    ] = None,
    form: Annotated[Form, option("path|env", "What to print.", "-p", "--print")] = Form.PATH,
) -> None:
    """Run the tests of Go operators on podlife: write etcd and kube-apiserver for controller-runtime's envtest, and
    print their folder for KUBEBUILDER_ASSETS."""
    from podlife.envtest import default_folder, write_assets

    folder = folder or default_folder()
    write_assets(folder)
    print(f"export KUBEBUILDER_ASSETS={shlex.quote(str(folder))}" if form is Form.ENV else folder)

"""The tree of commands. A command imports its implementation only when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from podlife import __version__
from podlife.cli.commands import apiserver, archive, controllers, crd, demo, envtest, node, sim, ui
from podlife.cli.commands.explain import app as explain
from podlife.cli.commands.gc import app as gc
from podlife.cli.commands.up import app as up
from podlife.cli.examples import add_examples
from podlife.cli.options import GoCommand, RootGroup

app = typer.Typer(
    name="podlife",
    cls=RootGroup,
    help="The whole life of a Kubernetes pod.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Plain text: rich panels truncate long option names on a narrow terminal, and take 0.1 s.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
# In the order of a user's first steps; `-h` lists commands first, then groups.
app.command(cls=GoCommand)(up.up)
app.command()(up.down)
app.command()(up.status)
app.command(cls=GoCommand)(ui.ui)
app.command(cls=GoCommand)(explain.stuck)
app.command(cls=GoCommand)(node.node)
app.command()(crd.crd)
app.command()(envtest.envtest)
app.add_typer(demo.app, name="demo")
app.add_typer(explain.app, name="explain")
app.add_typer(gc.app, name="gc")
app.add_typer(archive.app, name="archive")
app.add_typer(sim.app, name="sim")
app.add_typer(apiserver.app, name="apiserver")
app.add_typer(controllers.app, name="controllers")


@app.command("version")
def show_version() -> None:
    """Show the version, as --version does."""
    print(f"podlife {__version__}")


def _show_version(wanted: bool) -> None:
    if wanted:
        show_version()
        raise typer.Exit


@app.callback()
def podlife(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """The whole life of a Kubernetes pod: create it, run it, end it, collect it."""


add_examples(app)

"""`podlife gc finalizers`: shows pods held by finalizers, and removes chosen finalizers."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Annotated

import typer

from podlife.cli.archive_options import ArchiveOptions
from podlife.cli.commands.gc.options import PolicyFileOption, given_policy, quarantine_option
from podlife.cli.connection import ConnectionOptions
from podlife.cli.namespaces import (
    EveryNamespaceOption,
    OneNamespaceOption,
    checked_namespace,
    namespace_option,
)
from podlife.cli.options import GoCommand, format_option, option, with_groups, words

app = typer.Typer(
    help="Show deleted pods that finalizers hold, longest first; remove chosen finalizers.",
    invoke_without_command=True,
    rich_markup_mode=None,
)


@dataclass(frozen=True, slots=True)
class FinalizerOptions:
    remove_finalizer: Annotated[
        list[str] | None,
        option(
            "NAME",
            "Remove this finalizer from deleted pods whose node is gone (comma-separated or repeated).",
            show_default="none",
        ),
    ] = None

    def names(self) -> frozenset[str]:
        """Raises BadParameter."""
        return checked_finalizers(self.remove_finalizer, "--remove-finalizer")


def checked_finalizers(given: list[str] | None, option: str) -> frozenset[str]:
    """The full names. Raises BadParameter for invalid ones."""
    from podlife.api.names import check_label_key

    names = words(given)
    for name in names:
        if "*" in name or "?" in name:
            raise typer.BadParameter(
                f"{option} {name!r}: patterns are not supported; use the full name of each finalizer"
            )
        if problems := check_label_key(name):
            raise typer.BadParameter(f"invalid finalizer name {name!r} in {option}: {problems[0]}")
    return frozenset(names)


@app.callback()
@with_groups
def finalizers(
    ctx: typer.Context,
    connection: ConnectionOptions,
    namespace: OneNamespaceOption = None,
    all_namespaces: EveryNamespaceOption = False,
    output: Annotated[str, format_option("table", "json")] = "table",
) -> None:
    """Show deleted pods past their grace period that only finalizers hold: which ones, since when, set by whom, and
    whether the node exists. Read-only."""
    wanted = checked_namespace(namespace, is_everywhere=all_namespaces)
    if ctx.invoked_subcommand is not None:
        if wanted or all_namespaces or connection != ConnectionOptions():
            raise typer.BadParameter(f"flags of {ctx.invoked_subcommand} must follow it")
        return
    from podlife.cli.commands.gc.held_pods import show_held

    show_held(connection, wanted, output)


@dataclass(frozen=True, slots=True)
class RemovalOptions:
    allow: Annotated[
        list[str] | None,
        option(
            "FINALIZER",
            "Full name of a finalizer that may be removed (comma-separated or repeated).",
        ),
    ] = None
    namespace: Annotated[
        str | None, namespace_option("The namespace of the pods.", show_default="that of the context")
    ] = None
    quarantine: Annotated[float, quarantine_option("How long their node must be gone.")] = 40.0
    policy: PolicyFileOption = None
    yes: Annotated[bool, typer.Option("-y", "--yes", help="Remove them without asking.")] = False
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be removed.")] = False


@app.command(cls=GoCommand)
@with_groups
def remove(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="The pods.", show_default=False)],
    removal: RemovalOptions,
    archive: ArchiveOptions,
    connection: ConnectionOptions,
) -> None:
    """Remove chosen finalizers from deleted pods whose node is gone. Exit code 0 only if everything succeeded.

    The clean-up that a finalizer was set for is skipped."""
    from podlife.api.names import check_dns_subdomain
    from podlife.cli.commands.gc.held_pods import Wanted, run_removal
    from podlife.podgc import Settings

    allowed = checked_finalizers(removal.allow, "--allow")
    if not allowed:
        raise typer.BadParameter("--allow is required: `podlife gc finalizers` shows the finalizers")
    pods = tuple(dict.fromkeys(name.removeprefix("pod/") for name in names))
    for name in pods:
        if problems := check_dns_subdomain(name):
            raise typer.BadParameter(f"invalid pod name {name!r}: {problems[0]}")
    namespace = checked_namespace(removal.namespace)
    settings = replace(Settings(), policy=given_policy(removal.policy))
    wanted = Wanted(pods, namespace, allowed, removal.quarantine, removal.dry_run, settings)
    sys.exit(run_removal(connection, wanted, archive.archiving(), is_confirmed=removal.yes))

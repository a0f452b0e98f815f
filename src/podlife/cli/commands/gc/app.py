"""`podlife gc`: finds, explains and removes leftover pods."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Annotated

import typer

from podlife.cli.archive_options import ArchiveOptions
from podlife.cli.commands.gc import finalizers as gc_finalizers
from podlife.cli.commands.gc import policy as gc_policy
from podlife.cli.commands.gc.finalizers import FinalizerOptions
from podlife.cli.commands.gc.options import GuardOptions, PolicyOptions, SelectionOptions, check_period
from podlife.cli.connection import ConnectionOptions, load_connection
from podlife.cli.options import (
    ElectionOptions,
    GoCommand,
    ListenOption,
    VerbosityOption,
    command_group,
    duration_option,
    format_option,
    option,
    parse_address,
    with_groups,
)

app = command_group("Find, explain and remove terminated, orphaned, stuck and never-scheduled pods.")
app.add_typer(gc_policy.app, name="policy")
app.add_typer(gc_finalizers.app, name="finalizers")

FormatOption = Annotated[str, format_option("table", "wide", "json", "yaml", "name")]


@app.command(cls=GoCommand)
@with_groups
def plan(
    selection: SelectionOptions,
    policy: PolicyOptions,
    connection: ConnectionOptions,
    output: FormatOption = "table",
) -> None:
    """Show what would be deleted now, why, and what will become collectable when. Changes nothing."""
    from podlife.cli.commands.gc.plan import show_plan

    show_plan(connection, policy.settings(), selection.selection(), output)


@dataclass(frozen=True, slots=True)
class SweepOptions:
    yes: Annotated[bool, typer.Option("-y", "--yes", help="Delete without asking.")] = False
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be deleted.")] = False


@app.command(cls=GoCommand)
@with_groups
def sweep(
    selection: SelectionOptions,
    policy: PolicyOptions,
    guards: GuardOptions,
    archive: ArchiveOptions,
    finalizers: FinalizerOptions,
    connection: ConnectionOptions,
    how: SweepOptions,
) -> None:
    """Delete once what `podlife gc plan` shows. Exit code 0 only if everything succeeded."""
    chosen, archiving, removed = selection.selection(), archive.archiving(), finalizers.names()
    settings = replace(guards.on(policy.flags()), policy=policy.policy_file())
    if how.dry_run or (settings.guards is not None and settings.guards.is_observing):
        from podlife.cli.commands.gc.plan import show_plan

        shown = show_plan(connection, settings, chosen, "table")
        # Scripts must notice that pods stay; a dry run is not expected to delete.
        sys.exit(1 if (shown.held_back or shown.later) and not how.dry_run else 0)
    from podlife.cli.commands.gc.sweep import run_sweep

    sys.exit(
        run_sweep(
            connection, settings, chosen, is_confirmed=how.yes, archiving=archiving, remove_finalizers=removed
        )
    )


@dataclass(frozen=True, slots=True)
class RunOptions:
    period: Annotated[
        float,
        duration_option("Time between full passes; changes are handled at once.", "20s"),
    ] = 20.0
    listen: ListenOption = ""
    ui_url: Annotated[
        str, option("URL", "Page of `podlife ui` to link to from the index of --listen, without its token.")
    ] = ""
    v: VerbosityOption = 0


def _check_page(url: str) -> None:
    if url and not url.startswith(("http://", "https://")):
        raise typer.BadParameter(f"invalid --ui-url {url!r}: expected http://… or https://…")
    if "token=" in url:
        raise typer.BadParameter(
            "--ui-url must not have a token: the index of --listen is open to every client"
        )


@app.command(cls=GoCommand)
@with_groups
def run(
    policy: PolicyOptions,
    guards: GuardOptions,
    archive: ArchiveOptions,
    finalizers: FinalizerOptions,
    election: ElectionOptions,
    connection: ConnectionOptions,
    how: RunOptions,
) -> None:
    """Collect continuously. Ctrl-C or SIGTERM stops it after requests in flight."""
    from podlife.clock import SystemClock
    from podlife.daemons import event_loop, gc
    from podlife.daemons.logs import set_up_logs
    from podlife.daemons.service import ServiceSettings

    address = parse_address(how.listen) if how.listen else None
    _check_page(how.ui_url)
    flags = guards.on(policy.flags(period=check_period(how.period)))
    collector = replace(flags, policy=policy.policy_file())
    elected, archiving, removed = election.settings(), archive.archiving(), finalizers.names()
    # Open the archive before connecting.
    archived = None if archiving is None else gc.PodArchive(archiving.open(SystemClock()), archiving.logs)
    service = ServiceSettings(
        load_connection(connection), elected, address, connection.timeout_seconds, how.ui_url
    )
    set_up_logs(how.v)
    reloaded = None if policy.policy is None else gc.ReloadedPolicy(policy.policy, flags)
    settings = gc.GcDaemonSettings(service, collector, archived, removed, reloaded)
    event_loop.run(gc.run(settings, shutdown=event_loop.stopped_by_signals))

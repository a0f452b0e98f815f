"""`podlife archive`: shows what was kept of pods before they were deleted."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated

import typer

from podlife.cli import completions
from podlife.cli.archive_target import (
    ARCHIVE_ENV,
    ArchiveTarget,
    parse_target,
)
from podlife.cli.commands.gc.archive_options import parse_age
from podlife.cli.options import GoCommand, checked_namespace, format_option, with_groups

app = typer.Typer(
    help="What was kept of pods before they were deleted: manifest, events, the end of the logs.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@dataclass(frozen=True, slots=True)
class WhereOptions:
    archive: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER|s3://BUCKET/PREFIX",
            envvar=ARCHIVE_ENV,
            show_default="~/.local/state/podlife/archive",
            help="Where the archive is.",
        ),
    ] = None

    def target(self) -> ArchiveTarget:
        from podlife.daemons.xdg import default_archive_dir

        return parse_target(str(default_archive_dir()) if self.archive is None else self.archive)


NamespaceOption = Annotated[
    str,
    typer.Option(
        "-n",
        "--namespace",
        metavar="NAME",
        help="Only pods of this namespace.",
        autocompletion=completions.namespaces,
    ),
]
EverywhereOption = Annotated[
    bool, typer.Option("-A", "--all-namespaces", help="Pods of every namespace, as without -n.")
]


@app.command("list", cls=GoCommand)
@with_groups
def list_(
    where: WhereOptions,
    namespace: NamespaceOption = "",
    all_namespaces: EverywhereOption = False,
    since: Annotated[
        float | None,
        typer.Option(metavar="DURATION", parser=parse_age, help="Only what was archived within this time."),
    ] = None,
    output: Annotated[str, format_option("table", "json", "name")] = "table",
) -> None:
    """List what there is, the newest first."""
    from podlife.cli.commands.archive.show import show_list

    if namespace and all_namespaces:
        raise typer.BadParameter("one namespace (-n) and every namespace (-A) exclude each other")
    sys.exit(show_list(where.target(), checked_namespace(namespace), since, output))


@dataclass(frozen=True, slots=True)
class PartOptions:
    """Which part of an entry; the manifest by default."""

    logs: Annotated[bool, typer.Option("--logs", help="Show the end of its logs.")] = False
    container: Annotated[
        str, typer.Option("-c", "--container", metavar="NAME", help="With --logs, only of this container.")
    ] = ""
    events: Annotated[bool, typer.Option("--events", help="Show its events.")] = False

    def part(self) -> str:
        """Raises BadParameter."""
        if self.logs and self.events:
            raise typer.BadParameter("--logs and --events exclude each other: ask for one after the other")
        if self.container and not self.logs:
            raise typer.BadParameter("-c chooses among logs: say --logs too")
        return "logs" if self.logs else "events" if self.events else "pod"


@app.command(cls=GoCommand)
@with_groups
def show(
    pod: Annotated[str, typer.Argument(metavar="NAME|UID", help="The pod's name, or its UID.")],
    parts: PartOptions,
    where: WhereOptions,
    namespace: NamespaceOption = "",
    show_managed_fields: Annotated[
        bool, typer.Option("--show-managed-fields", help="Show in the manifest who managed which field.")
    ] = False,
    output: Annotated[str | None, format_option("yaml", "json")] = None,
) -> None:
    """Show the manifest of a pod as it was, its events or its logs; of several pods of one name, the newest."""
    from podlife.cli.commands.archive.show import EntryView, show_entry

    view = EntryView(parts.part(), parts.container, output or "", has_managed_fields=show_managed_fields)
    sys.exit(show_entry(where.target(), *_checked_pod(pod, checked_namespace(namespace)), view))


@app.command(cls=GoCommand)
@with_groups
def prune(
    where: WhereOptions,
    older_than: Annotated[
        float,
        typer.Option(
            metavar="DURATION", parser=parse_age, show_default="720h", help="Remove entries older than this."
        ),
    ] = 720 * 3600.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how many there are.")] = False,
) -> None:
    """Remove what is too old from the folder, at once and without asking."""
    from podlife.cli.commands.archive.show import prune_folder

    sys.exit(prune_folder(where.target(), older_than, is_dry_run=dry_run))


def _checked_pod(text: str, namespace: str) -> tuple[str, str]:
    """Name and namespace. As `list -o name` shows it, default/pod/web, or as kubectl does, pod/web."""
    from podlife.api.names import check_dns_subdomain

    *where, name = text.split("/")
    if where[1:] == ["pod"]:
        if namespace not in ("", where[0]):
            raise typer.BadParameter(f"{text!r} is not in namespace {namespace}: leave out -n")
        namespace = checked_namespace(where[0])
    elif where not in ([], ["pod"]) or check_dns_subdomain(name.lower()):
        raise typer.BadParameter(
            f"{text!r} is neither a name nor a UID of a pod: `podlife archive list` shows both"
        )
    return name, namespace

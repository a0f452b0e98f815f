"""`podlife archive`: shows pods that were archived before their deletion."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated

import typer

from podlife.cli.archive_options import ARCHIVE_ENV, ARCHIVE_METAVAR, ArchiveTarget, parse_age, parse_target
from podlife.cli.namespaces import EveryNamespaceOption, OneNamespaceOption, checked_namespace
from podlife.cli.options import GoCommand, command_group, duration_option, format_option, option, with_groups

app = command_group("Show pods archived before deletion: manifest, events, the end of the logs.")


@dataclass(frozen=True, slots=True)
class WhereOptions:
    archive: Annotated[
        str | None,
        option(
            ARCHIVE_METAVAR,
            "Location of the archive.",
            envvar=ARCHIVE_ENV,
            show_default="~/.local/state/podlife/archive",
        ),
    ] = None

    def target(self) -> ArchiveTarget:
        from podlife.daemons.xdg import default_archive_dir

        return parse_target(str(default_archive_dir()) if self.archive is None else self.archive)


@app.command("list", cls=GoCommand)
@with_groups
def list_(
    where: WhereOptions,
    namespace: OneNamespaceOption = None,
    all_namespaces: EveryNamespaceOption = False,
    since: Annotated[
        float | None, option("DURATION", "Only entries archived within this time.", parser=parse_age)
    ] = None,
    output: Annotated[str, format_option("table", "json", "name")] = "table",
) -> None:
    """List entries, the newest first."""
    from podlife.cli.commands.archive_output import show_list

    wanted = checked_namespace(namespace, is_everywhere=all_namespaces)
    sys.exit(show_list(where.target(), wanted, since, output))


@dataclass(frozen=True, slots=True)
class PartOptions:
    """Which part of an entry; the manifest by default."""

    logs: Annotated[bool, typer.Option("--logs", help="Show the end of its logs.")] = False
    container: Annotated[str, option("NAME", "With --logs, only this container.", "-c", "--container")] = ""
    events: Annotated[bool, typer.Option("--events", help="Show its events.")] = False

    def part(self) -> str:
        """Raises BadParameter."""
        if self.logs and self.events:
            raise typer.BadParameter("--logs and --events exclude each other")
        if self.container and not self.logs:
            raise typer.BadParameter("-c requires --logs")
        return "logs" if self.logs else "events" if self.events else "pod"


@app.command(cls=GoCommand)
@with_groups
def show(
    pod: Annotated[str, typer.Argument(metavar="NAME|UID", help="The pod's name, or its UID.")],
    parts: PartOptions,
    where: WhereOptions,
    namespace: OneNamespaceOption = None,
    show_managed_fields: Annotated[
        bool, typer.Option("--show-managed-fields", help="Keep managedFields in the manifest.")
    ] = False,
    output: Annotated[str | None, format_option("yaml", "json")] = None,
) -> None:
    """Show the archived manifest, events or logs of a pod; the newest if several pods had the name."""
    from podlife.cli.commands.archive_output import EntryView, show_entry

    view = EntryView(parts.part(), parts.container, output or "", has_managed_fields=show_managed_fields)
    sys.exit(show_entry(where.target(), *_checked_pod(pod, checked_namespace(namespace)), view))


@app.command(cls=GoCommand)
@with_groups
def prune(
    where: WhereOptions,
    older_than: Annotated[
        float, duration_option("Remove entries older than this.", "720h", parser=parse_age)
    ] = 720 * 3600.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print how many would be removed.")] = False,
) -> None:
    """Remove old entries from the folder, without confirmation."""
    from podlife.cli.commands.archive_output import prune_folder

    sys.exit(prune_folder(where.target(), older_than, is_dry_run=dry_run))


def _checked_pod(text: str, namespace: str) -> tuple[str, str]:
    """Name and namespace, from default/pod/web, as in `list -o name`, or pod/web, as in kubectl."""
    from podlife.api.names import check_dns_subdomain

    *where, name = text.split("/")
    if where[1:] == ["pod"]:
        if namespace not in ("", where[0]):
            raise typer.BadParameter(f"{text!r} is not in namespace {namespace}: leave out -n")
        namespace = checked_namespace(where[0] or None)
    elif where not in ([], ["pod"]) or check_dns_subdomain(name.lower()):
        raise typer.BadParameter(f"invalid pod name or UID {text!r}: see `podlife archive list`")
    return name, namespace

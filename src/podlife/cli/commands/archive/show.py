"""`podlife archive list`, `show` and `prune`. A damaged entry is reported, and the others are shown."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from podlife.cli.archive_target import ArchiveTarget
from podlife.cli.commands.archive.output import (
    format_events,
    format_items,
    format_logs,
    format_pod,
)
from podlife.clock import SystemClock
from podlife.daemons import event_loop
from podlife.errors import ConfigError
from podlife.podgc.archive import ArchiveFolder, ArchiveLimits, Entry
from podlife.podgc.archive.folder import format_size
from podlife.podgc.archive.reader import ArchivedEntry, DamagedEntry, find


@dataclass(frozen=True, slots=True)
class EntryView:
    """`part` is pod, events or logs; with an empty `output` it is shown as text."""

    part: str
    container: str = ""
    output: str = ""
    has_managed_fields: bool = False


def show_list(target: ArchiveTarget, namespace: str, since_seconds: float | None, output: str) -> int:
    """The exit code: 1 when an entry is damaged."""
    now = SystemClock().now()
    since = None if since_seconds is None else now - timedelta(seconds=since_seconds)

    async def read() -> list[ArchivedEntry | DamagedEntry]:
        shelf = target.shelf(SystemClock())
        try:
            return [each async for each in shelf.items(namespace, since=since)]
        finally:
            await shelf.close()

    found = event_loop.run(read())
    items = [each for each in found if isinstance(each, ArchivedEntry)]
    items.sort(key=lambda each: each.header.archived_at, reverse=True)
    sys.stdout.write(format_items(items, output, now))
    return _tell_damaged(target, found)


def show_entry(target: ArchiveTarget, wanted: str, namespace: str, view: EntryView) -> int:
    async def read() -> tuple[Entry, Sequence[ArchivedEntry | DamagedEntry]]:
        shelf = target.shelf(SystemClock())
        try:
            found = await find(shelf, wanted, namespace)
            return await shelf.read(_chosen(target, wanted, found).place), found
        finally:
            await shelf.close()

    entry, found = event_loop.run(read())
    others = [each for each in found if isinstance(each, ArchivedEntry)][1:]
    if others:
        uids = ", ".join(each.header.uid for each in others[:3]) + (", …" if len(others) > 3 else "")
        print(f"podlife: this is the newest of {len(others) + 1}; by their UIDs: {uids}", file=sys.stderr)
    sys.stdout.write(_formatted(entry, view))
    return _tell_damaged(target, found)


def _chosen(
    target: ArchiveTarget, wanted: str, found: Sequence[ArchivedEntry | DamagedEntry]
) -> ArchivedEntry:
    items = [each for each in found if isinstance(each, ArchivedEntry)]
    namespaces = sorted({each.header.namespace for each in items})
    if len(namespaces) > 1:
        raise ConfigError(f"{wanted} is in several namespaces, {', '.join(namespaces)}: say which with -n")
    if items:
        return items[0]
    if found and isinstance(found[0], DamagedEntry):
        raise ConfigError(f"the entry {target}/{found[0].place} cannot be shown: {found[0].why}")
    raise ConfigError(f"{wanted} is not in the archive {target}: `podlife archive list` shows what is")


def _formatted(entry: Entry, view: EntryView) -> str:
    if view.part == "events":
        return format_events(entry, view.output)
    if view.part == "pod":
        return format_pod(entry, view.output or "yaml", has_managed_fields=view.has_managed_fields)
    logs = [log for log in entry.logs if view.container in ("", log.container)]
    if not logs and view.container:
        names = ", ".join(sorted({log.container for log in entry.logs})) or "none at all"
        raise ConfigError(f"there is no log of container {view.container}: there are logs of {names}")
    return format_logs(logs, view.output, is_terminal=sys.stdout.isatty())


def _tell_damaged(target: ArchiveTarget, found: Sequence[ArchivedEntry | DamagedEntry]) -> int:
    damaged = [each for each in found if isinstance(each, DamagedEntry)]
    for each in damaged:
        print(f"podlife: the entry {target}/{each.place} cannot be read: {each.why}", file=sys.stderr)
    return 1 if damaged else 0


def prune_folder(target: ArchiveTarget, older_than_seconds: float, *, is_dry_run: bool) -> int:
    if target.bucket:
        raise ConfigError(
            f"what stays in {target}, and how long, is said by the lifecycle rule of its bucket"
        )
    now = SystemClock().now()
    since = now - timedelta(seconds=older_than_seconds)
    if not target.folder.is_dir():
        raise ConfigError(
            f"there is no archive in {target}: name its folder with --archive or PODLIFE_ARCHIVE"
        )
    folder = ArchiveFolder(target.folder, ArchiveLimits())
    if is_dry_run:
        number, size = folder.count(since)
        print(f"{_entries(number)} ({format_size(size)}) would be removed.")
        return 0
    pruned = folder.prune(now, since)
    said = f"{_entries(pruned.removed)} removed ({format_size(pruned.removed_bytes)})"
    print(f"{said}, {pruned.entries} left ({format_size(pruned.bytes)}).")
    return 0


def _entries(number: int) -> str:
    return f"{number} {'entry' if number == 1 else 'entries'}"

"""Output of `podlife archive list`, `show` and `prune`. Damaged entries are reported, the others shown."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from podlife.api.codec import Object, format_time
from podlife.api.durations import format_duration
from podlife.cli.archive_options import ArchiveTarget
from podlife.cli.output import as_json, as_yaml, counted, printable, printable_lines, table
from podlife.clock import SystemClock
from podlife.daemons import event_loop
from podlife.errors import ConfigError
from podlife.podgc.archive import ArchiveFolder, ArchiveLimits, Entry, Log
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
    """Returns the exit code: 1 if an entry is damaged."""
    now = SystemClock().now()
    since = None if since_seconds is None else now - timedelta(seconds=since_seconds)

    async def read() -> list[ArchivedEntry | DamagedEntry]:
        async with target.reader() as reader:
            return [each async for each in reader.items(namespace, since=since)]

    found = event_loop.run(read())
    items = [each for each in found if isinstance(each, ArchivedEntry)]
    items.sort(key=lambda each: each.header.archived_at, reverse=True)
    sys.stdout.write(format_items(items, output, now))
    return _report_damaged(target, found)


def show_entry(target: ArchiveTarget, wanted: str, namespace: str, view: EntryView) -> int:
    async def read() -> tuple[Entry, Sequence[ArchivedEntry | DamagedEntry]]:
        async with target.reader() as reader:
            found = await find(reader, wanted, namespace)
            return await reader.read(_chosen(target, wanted, found).place), found

    entry, found = event_loop.run(read())
    others = [each for each in found if isinstance(each, ArchivedEntry)][1:]
    if others:
        uids = ", ".join(each.header.uid for each in others[:3]) + (", …" if len(others) > 3 else "")
        print(f"podlife: this is the newest of {len(others) + 1}; by their UIDs: {uids}", file=sys.stderr)
    sys.stdout.write(_formatted(entry, view))
    return _report_damaged(target, found)


def _chosen(
    target: ArchiveTarget, wanted: str, found: Sequence[ArchivedEntry | DamagedEntry]
) -> ArchivedEntry:
    items = [each for each in found if isinstance(each, ArchivedEntry)]
    namespaces = sorted({each.header.namespace for each in items})
    if len(namespaces) > 1:
        raise ConfigError(f"{wanted} is in several namespaces, {', '.join(namespaces)}: choose one with -n")
    if items:
        return items[0]
    if found and isinstance(found[0], DamagedEntry):
        raise ConfigError(f"cannot show entry {target}/{found[0].place}: {found[0].why}")
    raise ConfigError(f"{wanted} not found in archive {target}: see `podlife archive list`")


def _formatted(entry: Entry, view: EntryView) -> str:
    if view.part == "events":
        return format_events(entry, view.output)
    if view.part == "pod":
        return format_pod(entry, view.output or "yaml", has_managed_fields=view.has_managed_fields)
    logs = [log for log in entry.logs if view.container in ("", log.container)]
    if not logs and view.container:
        names = ", ".join(sorted({log.container for log in entry.logs})) or "none"
        raise ConfigError(f"container {view.container} has no log; choose from {names}")
    return format_logs(logs, view.output, is_terminal=sys.stdout.isatty())


def _report_damaged(target: ArchiveTarget, found: Sequence[ArchivedEntry | DamagedEntry]) -> int:
    damaged = [each for each in found if isinstance(each, DamagedEntry)]
    for each in damaged:
        print(f"podlife: cannot read entry {target}/{each.place}: {each.why}", file=sys.stderr)
    return 1 if damaged else 0


def prune_folder(target: ArchiveTarget, older_than_seconds: float, *, is_dry_run: bool) -> int:
    if target.bucket:
        raise ConfigError(f"cannot prune {target}: use a lifecycle rule of the bucket")
    now = SystemClock().now()
    since = now - timedelta(seconds=older_than_seconds)
    if not target.folder.is_dir():
        raise ConfigError(f"no archive in {target}: set its directory with --archive or PODLIFE_ARCHIVE")
    folder = ArchiveFolder(target.folder, ArchiveLimits())
    if is_dry_run:
        number, size = folder.count(since)
        print(f"{counted(number, 'entry', 'entries')} ({format_size(size)}) would be removed.")
        return 0
    pruned = folder.prune(now, since)
    removed = f"{counted(pruned.removed, 'entry', 'entries')} removed ({format_size(pruned.removed_bytes)})"
    print(f"{removed}, {pruned.entries} left ({format_size(pruned.bytes)}).")
    return 0


def format_items(items: Sequence[ArchivedEntry], output: str, now: datetime) -> str:
    if output == "name":
        return "".join(f"{each.header.namespace}/pod/{each.header.name}\n" for each in items)
    if output == "json":
        return as_json([{**msgspec.to_builtins(each.header), "bytes": each.bytes} for each in items])
    if not items:
        return "No entries found.\n"
    titles = ("NAMESPACE", "NAME", "ARCHIVED", "REASON", "PHASE", "NODE", "SIZE", "UID")
    return table([titles, *(_row(each, now) for each in items)])


def _row(item: ArchivedEntry, now: datetime) -> tuple[str, ...]:
    header = item.header
    ago = f"{format_duration((now - header.archived_at).total_seconds())} ago"
    shown = (header.reason, header.phase, header.node)
    return (
        header.namespace,
        header.name,
        ago,
        *(each or "-" for each in shown),
        format_size(item.bytes),
        header.uid,
    )


def format_pod(entry: Entry, output: str, *, has_managed_fields: bool = False) -> str:
    """The manifest; YAML starts with comments on why and when the pod was archived."""
    pod = entry.pod if has_managed_fields else _without_managed_fields(entry.pod)
    if output == "json":
        return as_json(pod)
    return "".join(f"# {printable(line)}\n" for line in _comments(entry)) + as_yaml(pod)


def _comments(entry: Entry) -> Iterator[str]:
    header = entry.header
    rule = f" (rule {header.rule})" if header.rule else ""
    why = f", {header.reason}{rule}: {header.why}" if header.reason else ""
    yield " ".join(f"Archived at {format_time(header.archived_at)}{why}".split())
    events, logs = counted(len(entry.events), "event"), counted(len(entry.logs), "log")
    yield f"Also archived: {events} (--events) and {logs} (--logs)."
    for problem in header.problems:
        yield " ".join(f"Missing: {problem}".split())


def format_events(entry: Entry, output: str) -> str:
    """In kubectl's format, the oldest first."""
    events = sorted(entry.events, key=_when)
    if output == "json":
        return as_json(events)
    if output == "yaml":
        return as_yaml(events)
    if not events:
        return "No events found.\n"
    rows = [("TIME", "TYPE", "REASON", "FROM", "COUNT", "MESSAGE")]
    rows += [
        (
            _when(each),
            str(each.get("type") or "-"),
            str(each.get("reason") or "-"),
            str((each.get("source") or {}).get("component") or each.get("reportingComponent") or "-"),
            str(each.get("count") or (each.get("series") or {}).get("count") or 1),
            " ".join(str(each.get("message") or "").split()),
        )
        for each in events
    ]
    return table(rows)


def _when(event: Object) -> str:
    time = event.get("lastTimestamp") or event.get("eventTime") or event.get("firstTimestamp")
    return str(time or (event.get("metadata") or {}).get("creationTimestamp") or "-")


def format_logs(logs: Sequence[Log], output: str, *, is_terminal: bool = False) -> str:
    """Logs unchanged, except on a terminal, where control characters are escaped."""
    if output:
        plain = [msgspec.to_builtins(log) for log in logs]
        return as_json(plain) if output == "json" else as_yaml(plain)
    if not logs:
        return "No logs found.\n"
    if len(logs) == 1 and not logs[0].problem:
        return _terminated(logs[0].text, is_terminal)
    return "\n".join(f"==> {_title(log)} <==\n{_terminated(log.text, is_terminal)}" for log in logs)


def _title(log: Log) -> str:
    name = f"{log.container} ({log.kind})" if log.kind != "main" else log.container
    name += ", before its restart" if log.is_previous else ""
    name += ", truncated" if log.is_cut else ""
    return printable(f"{name}: {' '.join(log.problem.split())}" if log.problem else name)


def _terminated(text: str, is_terminal: bool) -> str:
    text = printable_lines(text) if is_terminal else text
    return text if not text or text.endswith("\n") else f"{text}\n"


def _without_managed_fields(pod: Object) -> Object:
    metadata = {name: value for name, value in (pod.get("metadata") or {}).items() if name != "managedFields"}
    return {**pod, "metadata": metadata}

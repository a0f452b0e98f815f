"""The content of an archive as text, for people and for programs. Pure: the time is an argument."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec

from podlife.api.codec import Object, format_time
from podlife.api.durations import format_duration
from podlife.cli.printable import as_yaml, printable, printable_lines
from podlife.podgc.archive import Entry, Log
from podlife.podgc.archive.folder import format_size
from podlife.podgc.archive.reader import ArchivedEntry


def format_items(items: Sequence[ArchivedEntry], output: str, now: datetime) -> str:
    if output == "name":
        return "".join(f"{each.header.namespace}/pod/{each.header.name}\n" for each in items)
    if output == "json":
        return _json([{**msgspec.to_builtins(each.header), "bytes": each.bytes} for each in items])
    if not items:
        return "Nothing is in the archive, or nothing of what was asked for.\n"
    rows: list[tuple[str, ...]] = [
        ("NAMESPACE", "NAME", "ARCHIVED", "REASON", "PHASE", "NODE", "SIZE", "UID")
    ]
    rows += [_row(each, now) for each in items]
    return "".join(f"{line}\n" for line in _table(rows))


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
    """The manifest; as YAML with what is known of its end before it, in comments."""
    pod = entry.pod if has_managed_fields else _without_managers(entry.pod)
    if output == "json":
        return _json(pod)
    return "".join(f"# {printable(line)}\n" for line in _remarks(entry)) + as_yaml(pod)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _remarks(entry: Entry) -> Iterator[str]:
    header = entry.header
    rule = f" (rule {header.rule})" if header.rule else ""
    why = f", {header.reason}{rule}: {header.why}" if header.reason else ""
    yield " ".join(f"Archived at {format_time(header.archived_at)}{why}".split())
    events, logs = _counted(len(entry.events), "event"), _counted(len(entry.logs), "log")
    yield f"{events} (--events) and {logs} (--logs) beside it."
    for problem in header.problems:
        yield " ".join(f"Could not be had: {problem}".split())


def format_events(entry: Entry, output: str) -> str:
    """As kubectl lists them, the oldest first."""
    events = sorted(entry.events, key=_when)
    if output == "json":
        return _json(events)
    if output == "yaml":
        return as_yaml(events)
    if not events:
        return "No event is known of it.\n"
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
    return "".join(f"{line}\n" for line in _table(rows))


def _when(event: Object) -> str:
    found = event.get("lastTimestamp") or event.get("eventTime") or event.get("firstTimestamp")
    return str(found or (event.get("metadata") or {}).get("creationTimestamp") or "-")


def format_logs(logs: Sequence[Log], output: str, *, is_terminal: bool = False) -> str:
    """Logs unchanged, except on a terminal, where control characters are escaped."""
    if output:
        plain = [msgspec.to_builtins(log) for log in logs]
        return _json(plain) if output == "json" else as_yaml(plain)
    if not logs:
        return "No log was kept of it.\n"
    if len(logs) == 1 and not logs[0].problem:
        return _ended(logs[0].text, is_terminal)
    return "\n".join(f"==> {_title(log)} <==\n{_ended(log.text, is_terminal)}" for log in logs)


def _title(log: Log) -> str:
    name = f"{log.container} ({log.kind})" if log.kind != "main" else log.container
    name += ", before its restart" if log.is_previous else ""
    name += ", its end only" if log.is_cut else ""
    return printable(f"{name}: {' '.join(log.problem.split())}" if log.problem else name)


def _ended(text: str, is_terminal: bool) -> str:
    text = printable_lines(text) if is_terminal else text
    return text if not text or text.endswith("\n") else f"{text}\n"


def _without_managers(pod: Object) -> Object:
    metadata = {name: value for name, value in (pod.get("metadata") or {}).items() if name != "managedFields"}
    return {**pod, "metadata": metadata}


def _json(value: Any) -> str:
    return json.dumps(value, indent=2) + "\n"


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    rows = [tuple(map(printable, row)) for row in rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    return [
        "   ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]])
        for row in rows
    ]

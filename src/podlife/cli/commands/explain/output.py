"""An explanation as text, for people and for programs. Pure: the time is an argument."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from podlife.api.durations import format_duration
from podlife.cli.output import STRUCTURED, printable, structured, table
from podlife.explain import Cause, Explanation, UpcomingAction, as_dict

# As many of what happened as fit on a screen; `-o json` has all.
_MOST_SHOWN = 30
# A node may have a hundred pods with the same trouble.
_MOST_CAUSES = 10


def format_explanation(found: Explanation, output: str, now: datetime) -> str:
    """In one of the formats of `-o`; each of them is whole lines."""
    if output in STRUCTURED:
        return structured(as_dict(found), output)
    return "\n".join(map(printable, _lines(found, now))) + "\n"


def _lines(found: Explanation, now: datetime) -> Iterator[str]:
    name = f"{found.namespace}/{found.name}" if found.namespace else found.name
    yield f"{found.kind} {name}: {found.stage}"
    if found.deletion:
        yield f"Deleted {found.deletion}"
    yield from _section("What happened", list(_happened(found, now)))
    for cause in found.causes[:_MOST_CAUSES]:
        yield ""
        yield from _cause(cause, now)
    if len(found.causes) > _MOST_CAUSES:
        yield ""
        yield f"… and {len(found.causes) - _MOST_CAUSES} more: -o json shows them"
    if not found.causes:
        yield ""
        yield "Nothing holds it up." if found.uid else "Nothing is known to hold it up."
    yield from _section("What will act", [_upcoming(each, now) for each in found.upcoming])
    yield from _section("Could not be read, and may matter", [f"  {each}" for each in found.unread])


def _section(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield ""
        yield f"{title}:"
        yield from lines


def _happened(found: Explanation, now: datetime) -> Iterator[str]:
    shown = found.timeline[-_MOST_SHOWN:]
    if len(found.timeline) > len(shown):
        yield f"  … {len(found.timeline) - len(shown)} earlier ones: -o json shows them"
    for each in shown:
        who = f"  [{each.who}]" if each.who else ""
        ago = format_duration((now - each.at).total_seconds())
        yield f"  {each.at:%Y-%m-%d %H:%M:%SZ}  {ago + ' ago':>10}  {each.what}{who}"


def _cause(cause: Cause, now: datetime) -> Iterator[str]:
    age = f" (for {format_duration((now - cause.since).total_seconds())})" if cause.since is not None else ""
    yield f"{'STUCK' if cause.is_stuck else 'Takes its time'}, {cause.name}{age}: {cause.text}"
    for each in cause.upcoming:
        yield f"  Then: {_upcoming(each, now).strip()}"
    for number, remedy in enumerate(cause.remedies):
        yield f"  {'To unblock it' if number == 0 else 'Or'}:"
        yield f"    {remedy.command}"
        yield f"    Risk: {remedy.risk}"


def _upcoming(each: UpcomingAction, now: datetime) -> str:
    if each.at is None:
        return f"  {each.who} {each.what}"
    seconds = (each.at - now).total_seconds()
    when = f"within {format_duration(seconds)}" if seconds > 0 else "now"
    return f"  {each.who} {each.what} ({when}, by {each.at:%H:%M:%SZ})"


def format_stuck(
    found: Sequence[Explanation], output: str, now: datetime, unread: Sequence[str], namespace: str = ""
) -> str:
    """Stuck pods of one namespace or of all, the longest stuck first."""
    if output in STRUCTURED:
        return structured({"stuck": [as_dict(each) for each in found], "unread": list(unread)}, output)
    rows = [("NAMESPACE", "POD", "STAGE", "CAUSE", "AGE", "WHY")]
    for each in found:
        first = next(cause for cause in each.causes if cause.is_stuck)
        age = "?" if first.since is None else format_duration((now - first.since).total_seconds())
        rows.append((each.namespace, each.name, each.stage, first.name, age, first.text))
    where = f"in namespace {namespace}; -A looks in every namespace" if namespace else "in any namespace"
    shown = table(rows) if found else f"No pod is stuck {where}.\n"
    shown += "".join(f"Could not be read, and may matter: {printable(each)}\n" for each in unread)
    more = "\n`podlife explain pod NAME -n NAMESPACE` shows what would unblock one.\n"
    return shown + (more if found else "")

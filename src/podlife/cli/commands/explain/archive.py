"""What an archive has of a pod that is gone: told as something that happened, with the command that shows it."""

from __future__ import annotations

import shlex
from dataclasses import replace

from podlife.cli.commands.archive.target import Target
from podlife.clock import Clock
from podlife.errors import PodlifeError
from podlife.explain import Explanation, Happening
from podlife.podgc.archive.reader import ArchivedEntry, DamagedEntry, find

__all__ = ["with_archived"]

# Of one name, as a StatefulSet makes them.
_MOST_ENTRIES = 5


async def with_archived(found: Explanation, target: Target, clock: Clock) -> Explanation:
    """An archive that cannot be read is told as what could not be read, since the rest was."""
    try:
        shelf = target.shelf(clock)
        try:
            entries = await find(shelf, found.name, found.namespace)
        finally:
            await shelf.close()
    except PodlifeError as error:
        return replace(found, unread=(*found.unread, str(error)))
    kept = [_happening(each, target) for each in entries if isinstance(each, ArchivedEntry)][:_MOST_ENTRIES]
    unread = [f"{target}/{each.place}: {each.why}" for each in entries if isinstance(each, DamagedEntry)]
    timeline = sorted((*found.timeline, *kept), key=lambda each: each.at)
    return replace(found, timeline=tuple(timeline), unread=(*found.unread, *unread))


def _happening(item: ArchivedEntry, target: Target) -> Happening:
    header = item.header
    why = f", {header.reason}: {header.why}" if header.reason else ""
    command = f"podlife archive show {header.uid} --archive {shlex.quote(str(target))}"
    return Happening(header.archived_at, f"archived before its deletion{why}; `{command}`", "podlife gc")

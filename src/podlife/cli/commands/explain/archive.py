"""Entries of an archive in the timeline of a pod that is gone, with the command that shows them."""

from __future__ import annotations

import shlex
from dataclasses import replace

from podlife.cli.archive_target import ArchiveTarget
from podlife.clock import Clock
from podlife.errors import PodlifeError
from podlife.explain import Explanation, Happening
from podlife.podgc.archive.reader import ArchivedEntry, DamagedEntry, find

# Pods of one name, as a StatefulSet creates them.
_MOST_ENTRIES = 5


async def with_archived(found: Explanation, target: ArchiveTarget, clock: Clock) -> Explanation:
    """An archive that cannot be read is listed under what could not be read."""
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


def _happening(item: ArchivedEntry, target: ArchiveTarget) -> Happening:
    header = item.header
    why = f", {header.reason}: {header.why}" if header.reason else ""
    command = f"podlife archive show {header.uid} --archive {shlex.quote(str(target))}"
    return Happening(header.archived_at, f"archived before its deletion{why}; `{command}`", "podlife gc")

"""What is kept of a pod that is archived again: what there is now, and what there was before and is not any more. Pure.

A pod may be archived more than once before it is gone: its deletion failed, or finalizers hold it. By then its node may
be gone and its logs with it, and its events have expired: what was kept of them the first time is all there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from podlife.api.codec import Object, encode
from podlife.podgc.archive.entry import Log
from podlife.podgc.archive.events import MOST_EVENT_BYTES, MOST_EVENTS

__all__ = ["joined_events", "joined_logs"]


def joined_logs(old: Sequence[Log], new: Sequence[Log]) -> tuple[Log, ...]:
    """Each log once: as it is now if there is text, else as it was."""
    known = {_whose(log): log for log in old if log.text}
    kept = [log if log.text else known.get(_whose(log), log) for log in new]
    seen = {_whose(log) for log in new}
    return (*kept, *(log for whose, log in known.items() if whose not in seen))


def _whose(log: Log) -> tuple[str, str, bool]:
    return log.kind, log.container, log.is_previous


def joined_events(old: Sequence[Object], new: Sequence[Object]) -> list[Object]:
    """Each event once, as it is now; the latest of them where they are too many."""
    seen = {_name(event) for event in new}
    found = [*(event for event in old if _name(event) not in seen), *new][-MOST_EVENTS:]
    sizes = accumulate(len(encode(event)) for event in reversed(found))
    number = sum(size <= MOST_EVENT_BYTES for size in sizes)
    return found[len(found) - number :]


def _name(event: Object) -> str:
    return str((event.get("metadata") or {}).get("uid") or encode(event).decode())

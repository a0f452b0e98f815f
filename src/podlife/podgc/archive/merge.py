"""Merges two entries of a pod: the current state, and what existed before and no longer does. Pure.

A pod may be archived more than once: its deletion failed, or finalizers hold it. By then its node and logs may be gone
and its events expired, so what was saved the first time is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from podlife.api.codec import Object, encode
from podlife.podgc.archive.entry import Log
from podlife.podgc.archive.events import MOST_EVENT_BYTES, MOST_EVENTS


def joined_logs(old: Sequence[Log], new: Sequence[Log]) -> tuple[Log, ...]:
    """Each log once: the current one if it has text, else the previous one."""
    known = {_whose(log): log for log in old if log.text}
    kept = [log if log.text else known.get(_whose(log), log) for log in new]
    seen = {_whose(log) for log in new}
    return (*kept, *(log for whose, log in known.items() if whose not in seen))


def _whose(log: Log) -> tuple[str, str, bool]:
    return log.kind, log.container, log.is_previous


def joined_events(old: Sequence[Object], new: Sequence[Object]) -> list[Object]:
    """Each event once, as it is now; the latest if there are too many."""
    seen = {_name(event) for event in new}
    found = [*(event for event in old if _name(event) not in seen), *new][-MOST_EVENTS:]
    sizes = accumulate(len(encode(event)) for event in reversed(found))
    number = sum(size <= MOST_EVENT_BYTES for size in sizes)
    return found[len(found) - number :]


def _name(event: Object) -> str:
    return str((event.get("metadata") or {}).get("uid") or encode(event).decode())

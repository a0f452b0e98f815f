"""The quarantine of missing nodes: when it ends.

A node that is not listed may only be late. Its pods become orphans once the server, asked after the quarantine,
confirms that the node does not exist (`PodIndex.confirm_missing`).
"""

from __future__ import annotations

from podlife.podgc.index import Absence, PodIndex
from podlife.podgc.reasons import Reason
from podlife.podgc.settings import Settings


def ends_at(absence: Absence, settings: Settings) -> float:
    """When the server is asked for a missing node: its quarantine runs from first sight and is not extended (GC-51).
    After a check, the next one comes a full quarantine later, but at least a period (GC-53)."""
    if absence.checked_at is None:
        return absence.seen_at + max(0.0, settings.quarantine_seconds)
    return absence.checked_at + max(settings.quarantine_seconds, settings.period_seconds)


def due_nodes(index: PodIndex, settings: Settings, now: float) -> list[str]:
    if not index.missing or not settings.does_collect(Reason.ORPHANED):
        return []
    return [name for name, absence in index.missing.items() if ends_at(absence, settings) <= now]

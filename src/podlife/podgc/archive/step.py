"""The pre-delete step that archives a pod; a pod that cannot be archived stays.

It reads the pod again immediately before the deletion, so an entry is never older than the decision. A pod that is gone
or was replaced has nothing to archive; the deletion, which carries the UID, handles that. A pod may be archived more
than once: its deletion failed, or finalizers hold it. By then its node and logs may be gone and its events expired, so
what was saved the first time is kept. Concurrency is bounded, because an entry may have a megabyte of logs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from podlife.api.codec import Object, encode
from podlife.client import Client
from podlife.clock import Clock
from podlife.errors import ForbiddenError, NotFoundError
from podlife.podgc.archive.archive import Archive, ArchiveError
from podlife.podgc.archive.entry import Entry, Header, Log
from podlife.podgc.archive.pod_reader import MAX_EVENT_BYTES, MAX_EVENTS, LogSettings, PodReader
from podlife.podgc.plan import Victim
from podlife.podgc.views import controller_title

_MAX_AT_ONCE = 16


@dataclass(slots=True)
class ArchiveCounts:
    entries: int = 0
    # Every attempt counts.
    refusals: int = 0
    missing_logs: int = 0


class ArchiveStep:
    """A `podlife.podgc.PreDeleteStep`. `close` also closes the archive."""

    def __init__(
        self, client: Client, archive: Archive, clock: Clock, settings: LogSettings | None = None
    ) -> None:
        self.counts = ArchiveCounts()
        self._reader = PodReader(client, settings or LogSettings())
        self._archive = archive
        self._clock = clock
        self._slots = asyncio.Semaphore(_MAX_AT_ONCE)

    async def __call__(self, victim: Victim) -> str:
        async with self._slots:
            try:
                await self._store(victim)
            except ArchiveError as error:
                why = str(error)
            except ForbiddenError as error:
                # Without the pod's name, so that the reason is the same for all pods.
                reason = str(error).rpartition(" is forbidden: ")[2]
                why = f"cannot be archived: {reason}; see deploy/gc/archive/rbac.yaml"
            else:
                return ""
        self.counts.refusals += 1
        return why

    def withdraw(self) -> None:
        """Send no more requests; later calls raise WithdrawnError."""
        self._reader.withdraw()

    async def close(self) -> None:
        await self._archive.close()

    async def _store(self, victim: Victim) -> None:
        await self._archive.check()
        entry = await self._entry(victim)
        if entry is not None:
            await self._archive.put(entry)
            self.counts.entries += 1
            self.counts.missing_logs += sum(1 for log in entry.logs if log.problem)

    async def _entry(self, victim: Victim) -> Entry | None:
        metadata = victim.pod.metadata
        try:
            pod = await self._reader.pod(metadata.namespace, metadata.name)
        except NotFoundError:
            return None
        if pod["metadata"].get("uid") != metadata.uid:
            return None
        logs = await self._reader.logs(pod)
        # After the logs, to include events reported meanwhile.
        events, has_more = await self._reader.events(metadata.namespace, metadata.uid)
        if (known := await self._archive.get(metadata.namespace, metadata.name, metadata.uid)) is not None:
            logs, events = joined_logs(known.logs, logs), joined_events(known.events, events)
        problems = [f"events: only {len(events)} of them were read"] if has_more else []
        header = self._header(victim, pod, logs, problems)
        return Entry(header, pod, tuple(events), logs)

    def _header(self, victim: Victim, pod: Object, logs: Sequence[Log], problems: Sequence[str]) -> Header:
        metadata = pod["metadata"]
        missing = (f"log of {_title(log)}: {log.problem}" for log in logs if log.problem)
        return Header(
            namespace=metadata["namespace"],
            name=metadata["name"],
            uid=metadata["uid"],
            archived_at=self._clock.now(),
            reason=str(victim.reason),
            why=victim.why,
            rule=victim.rule,
            phase=str((pod.get("status") or {}).get("phase") or ""),
            node=str((pod.get("spec") or {}).get("nodeName") or ""),
            owner=controller_title(metadata),
            problems=(*missing, *problems),
        )


def _title(log: Log) -> str:
    return f"{log.container} before its restart" if log.is_previous else log.container


def joined_logs(old: Sequence[Log], new: Sequence[Log]) -> tuple[Log, ...]:
    """Each log once: the current one if it has text, else the previous one."""
    known = {_key(log): log for log in old if log.text}
    kept = [log if log.text else known.get(_key(log), log) for log in new]
    seen = {_key(log) for log in new}
    return (*kept, *(log for key, log in known.items() if key not in seen))


def _key(log: Log) -> tuple[str, str, bool]:
    return log.kind, log.container, log.is_previous


def joined_events(old: Sequence[Object], new: Sequence[Object]) -> list[Object]:
    """Each event once, as it is now; the latest if there are too many."""
    seen = {_name(event) for event in new}
    events = [*(event for event in old if _name(event) not in seen), *new][-MAX_EVENTS:]
    sizes = accumulate(len(encode(event)) for event in reversed(events))
    number = sum(size <= MAX_EVENT_BYTES for size in sizes)
    return events[len(events) - number :]


def _name(event: Object) -> str:
    return str((event.get("metadata") or {}).get("uid") or encode(event).decode())

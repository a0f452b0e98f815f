"""Writes audit events in its own thread, so that no request waits for the encoder or the disk.

The queue is bounded in events and in bytes. An event that does not fit, cannot be encoded or cannot be written is
dropped, counted and, at most once in ten seconds, logged. `close` writes what is queued, within a deadline.
`start_audit` starts the audit log that a server's settings ask for.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from podlife.apiserver.audit.context import Auditor
from podlife.apiserver.audit.event import AuditEntry, encode_event
from podlife.apiserver.audit.log_file import AuditLogFile
from podlife.apiserver.audit.policy import DEFAULT_POLICY, AuditPolicy, load_policy, read_policy
from podlife.apiserver.authn import ANONYMOUS
from podlife.apiserver.settings import ApiServerSettings
from podlife.clock import Clock

log = logging.getLogger(__name__)

_MOST_ENTRIES = 10_000
_MOST_BYTES = 64 << 20
# Events that arrive meanwhile are written together: few writes, and few thread switches.
_LINGER_SECONDS = 0.1
_CHUNK_BYTES = 256 << 10
_COMPLAINT_SECONDS = 10.0
_CLOSE_SECONDS = 5.0


class LogBackend:
    """`write` appends whole lines; raises OSError."""

    def __init__(
        self,
        write: Callable[[bytes], None],
        *,
        most_entries: int = _MOST_ENTRIES,
        most_bytes: int = _MOST_BYTES,
    ) -> None:
        self._write = write
        self._most_entries = most_entries
        self._most_bytes = most_bytes
        self._queue: queue.SimpleQueue[AuditEntry | None] = queue.SimpleQueue()
        # The event loop adds to the first, the thread to the second: neither needs a lock.
        self._queued_bytes = self._taken_bytes = 0
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="audit log", daemon=True)
        self._events: Counter[str] = Counter()
        self._overflows = self._failures = 0
        self._complained_at = float("-inf")

    def start(self) -> None:
        self._thread.start()

    def __call__(self, entry: AuditEntry) -> None:
        """Queue the entry, or drop it. Called from the event loop only."""
        self._events[entry.subject.config.level.title] += 1
        waiting = self._queued_bytes - self._taken_bytes
        if self._queue.qsize() >= self._most_entries or waiting + entry.size > self._most_bytes:
            self._overflows += 1
            self._complain("the queue of the audit log is full")
            return
        self._queued_bytes += entry.size
        self._queue.put(entry)

    async def close(self, *, seconds: float = _CLOSE_SECONDS) -> None:
        """Write queued events. Those that a hanging disk has not taken by the deadline are lost."""
        self._queue.put(None)
        self._closing.set()
        if self._thread.is_alive():
            await asyncio.to_thread(self._thread.join, seconds)
        if left := self._queue.qsize():
            log.error("audit log: %d events not written at shutdown", left)

    def metrics(self) -> Iterator[str]:
        """Metrics in Prometheus' text format, under kube-apiserver's names."""
        yield "# HELP apiserver_audit_event_total Audit events generated and sent to the audit backend."
        yield "# TYPE apiserver_audit_event_total counter"
        yield f"apiserver_audit_event_total {self._events.total()}"
        yield "# HELP apiserver_audit_level_total Audit events, by the level of their policy rule."
        yield "# TYPE apiserver_audit_level_total counter"
        for level, count in sorted(self._events.items()):
            yield f'apiserver_audit_level_total{{level="{level}"}} {count}'
        yield "# HELP apiserver_audit_error_total Audit events that were dropped, by where."
        yield "# TYPE apiserver_audit_error_total counter"
        yield f'apiserver_audit_error_total{{plugin="buffered"}} {self._overflows}'
        yield f'apiserver_audit_error_total{{plugin="log"}} {self._failures}'

    def _run(self) -> None:
        entry: AuditEntry | None
        while (entry := self._queue.get()) is not None:
            self._closing.wait(_LINGER_SECONDS)
            is_last = self._write_batch(entry)
            if is_last:
                return

    def _write_batch(self, entry: AuditEntry | None) -> bool:
        """Write this entry and all queued ones; return whether the queue has ended."""
        lines: list[bytes] = []
        size = 0
        while entry is not None:
            if line := self._encoded(entry):
                lines.append(line)
                size += len(line)
            if size >= _CHUNK_BYTES:
                self._write_lines(lines)
                lines, size = [], 0
            try:
                entry = self._queue.get_nowait()
            except queue.Empty:
                break
        self._write_lines(lines)
        return entry is None

    def _encoded(self, entry: AuditEntry) -> bytes:
        self._taken_bytes += entry.size
        try:
            return encode_event(entry) + b"\n"
        except Exception:
            # An unusual request must not stop the log.
            log.exception("audit event for %s cannot be encoded", entry.subject.request.path)
            self._failures += 1
            return b""

    def _write_lines(self, lines: list[bytes]) -> None:
        if not lines:
            return
        try:
            self._write(b"".join(lines))
        except OSError as error:
            self._failures += len(lines)
            self._complain(f"the audit log cannot be written: {error.strerror or error}")

    def _complain(self, why: str) -> None:
        now = time.monotonic()
        if now - self._complained_at >= _COMPLAINT_SECONDS:
            self._complained_at = now
            log.error("%s; %d events dropped so far", why, self._overflows + self._failures)


@dataclass(frozen=True, slots=True)
class RunningAudit:
    auditor: Auditor
    backend: LogBackend
    file: AuditLogFile | None

    async def close(self) -> None:
        await self.backend.close()
        if self.file is not None:
            self.file.close()


def policy_of(settings: ApiServerSettings) -> AuditPolicy:
    """The configured policy; raises ConfigError."""
    if settings.audit_policy_file:
        return load_policy(Path(settings.audit_policy_file))
    return replace(read_policy(DEFAULT_POLICY.encode(), "of podlife"), stranger=ANONYMOUS)


def start_audit(settings: ApiServerSettings, clock: Clock) -> RunningAudit | None:
    """Start the audit log, or return None if it is disabled. Raises ConfigError for an unusable policy or file."""
    if not settings.audit_log_path:
        return None
    policy = policy_of(settings)
    file = None
    write = _write_stdout
    if settings.audit_log_path != "-":
        file = AuditLogFile(
            Path(settings.audit_log_path),
            clock,
            size_bytes=settings.audit_log_max_mb << 20,
            age_days=settings.audit_log_max_days,
            backups=settings.audit_log_max_backups,
        )
        file.open()
        write = file.write
    backend = LogBackend(write)
    backend.start()
    return RunningAudit(Auditor(policy, backend, clock), backend, file)


def _write_stdout(lines: bytes) -> None:
    descriptor = sys.stdout.fileno()
    while lines:
        lines = lines[os.write(descriptor, lines) :]

"""Writer of an audit log: in its own thread, bounded, never blocking a request."""

from __future__ import annotations

import errno
import logging
import threading
from collections.abc import Callable

import pytest

from podlife.apiserver.audit import Level, LogBackend
from podlife.apiserver.audit.event import AuditedRequest, AuditedResponse, AuditEntry
from podlife.apiserver.audit.policy import RequestAuditConfig
from podlife.apiserver.authn import UserInfo
from podlife.apiserver.authz import Attributes
from podlife.clock import ManualClock
from podlife.wire import Request

NOW = ManualClock().now()
WAIT_SECONDS = 60.0


def entry(name: str = "web", size: int = 100) -> AuditEntry:
    path = f"/api/v1/namespaces/default/pods/{name}"
    asked = Attributes("delete", "", "pods", "", "default", name, path)
    config = RequestAuditConfig(Level.METADATA)
    subject = AuditedRequest("id", Request("DELETE", path), NOW, config, UserInfo("jane"), asked)
    return AuditEntry(subject, "ResponseComplete", NOW, AuditedResponse(200), size)


def started(write: Callable[[bytes], None], **bounds: int) -> LogBackend:
    backend = LogBackend(write, **bounds)
    backend.start()
    return backend


class HangingDisk:
    """Takes the first write, and goes on when it is told to."""

    def __init__(self) -> None:
        self.is_stuck, self.goes_on = threading.Event(), threading.Event()
        self.written: list[bytes] = []

    def write(self, lines: bytes) -> None:
        self.is_stuck.set()
        self.goes_on.wait(WAIT_SECONDS)
        self.written.append(lines)


def metric(backend: LogBackend, name: str) -> int:
    [line] = [each for each in backend.metrics() if each.startswith(f"{name} ")]
    return int(line.rpartition(" ")[2])


async def test_what_is_queued_is_written_before_it_is_closed() -> None:
    written: list[bytes] = []
    backend = started(written.append)
    for number in range(1000):
        backend(entry(f"pod-{number}"))
    await backend.close(seconds=WAIT_SECONDS)
    lines = b"".join(written).splitlines()
    assert len(lines) == 1000
    assert b"pod-999" in lines[-1]
    assert len(written) < 100
    assert metric(backend, "apiserver_audit_event_total") == 1000


@pytest.mark.parametrize(("bounds", "size"), [({"most_entries": 10}, 1), ({"most_bytes": 1000}, 100)])
async def test_a_disk_that_hangs_costs_events_and_neither_requests_nor_memory(
    bounds: dict[str, int], size: int, caplog: pytest.LogCaptureFixture
) -> None:
    disk = HangingDisk()
    backend = started(disk.write, **bounds)
    backend(entry())
    assert disk.is_stuck.wait(WAIT_SECONDS)
    for _ in range(100):
        backend(entry(size=size))
    disk.goes_on.set()
    await backend.close(seconds=WAIT_SECONDS)
    assert len(b"".join(disk.written).splitlines()) == 11
    assert metric(backend, 'apiserver_audit_error_total{plugin="buffered"}') == 90
    complaints = [each for each in caplog.records if "queue of the audit log is full" in each.message]
    assert len(complaints) == 1


async def test_a_disk_that_fails_is_counted_told_once_and_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    failed = threading.Event()
    written: list[bytes] = []

    def write(lines: bytes) -> None:
        if not failed.is_set():
            failed.set()
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(lines)

    backend = started(write)
    backend(entry("lost"))
    assert failed.wait(WAIT_SECONDS)
    backend(entry("kept"))
    await backend.close(seconds=WAIT_SECONDS)
    assert b"kept" in b"".join(written)
    assert metric(backend, 'apiserver_audit_error_total{plugin="log"}') == 1
    assert "No space left on device; 1 events dropped so far" in caplog.text


async def test_an_event_that_cannot_be_encoded_does_not_end_the_log(caplog: pytest.LogCaptureFixture) -> None:
    written: list[bytes] = []
    backend = started(written.append)
    broken = entry()
    broken.subject.attributes = None  # type: ignore[assignment] # that breaks it
    with caplog.at_level(logging.ERROR):
        backend(broken)
        backend(entry("kept"))
        await backend.close(seconds=WAIT_SECONDS)
    assert b"kept" in b"".join(written)
    assert metric(backend, 'apiserver_audit_error_total{plugin="log"}') == 1


async def test_closing_does_not_wait_for_a_disk_that_never_answers(caplog: pytest.LogCaptureFixture) -> None:
    disk = HangingDisk()
    backend = started(disk.write)
    backend(entry())
    assert disk.is_stuck.wait(WAIT_SECONDS)
    backend(entry())
    await backend.close(seconds=0.01)
    assert "events not written at shutdown" in caplog.text
    disk.goes_on.set()


def test_a_backend_that_is_made_starts_nothing() -> None:
    before = threading.active_count()
    LogBackend(lambda lines: None)
    assert threading.active_count() == before

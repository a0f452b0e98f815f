"""Reads audit logs for `podlife explain`: a file with its rotated siblings, compressed or not, or standard input.

A log is read line by line, whatever its size; only what concerns the pod is kept. Lines that are no audit events are
counted, and the count is told.
"""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from podlife.cli.output import counted
from podlife.client import Connection
from podlife.daemons.xdg import default_data_dir
from podlife.errors import ConfigError
from podlife.explain import AuditCollection, AuditedRequest
from podlife.localcluster.state_dir import StateDir

STDIN = "-"
# An event has at most a few megabytes: what is longer is no line of an audit log.
_MOST_LINE_BYTES = 16 << 20


def read_audit(
    source: str | None, connection: Connection, namespace: str, pod: str = "", *, node: str = ""
) -> tuple[list[AuditedRequest], list[str]]:
    """What the log tells of a pod or a node, the oldest first, and what of it could not be read.

    None is the log of a server on this machine, if there is one: it was not named, so it is only reported when it
    cannot be read. Otherwise ConfigError is raised for a file that is not there or may not be read."""
    named = find_own_log(connection) if source is None else source
    found = AuditCollection(namespace, pod, node=node)
    try:
        unread = _read(found, named) if named else []
    except ConfigError as error:
        if source is not None:
            raise
        return [], [str(error)]
    if found.unreadable:
        unread.append(
            f"{counted(found.unreadable, 'line')} of the audit log {named} not readable as audit events"
        )
    return list(found.requests), unread


def _read(found: AuditCollection, source: str) -> list[str]:
    """Feed the log, with its rotated files; what could not be read."""
    if source == STDIN:
        _feed(found, sys.stdin.buffer.readline)
        return []
    unread = []
    path = Path(source)
    for each in (*siblings_of(path), path):
        try:
            with _opened(each) as file:
                _feed(found, file.readline)
        except (OSError, EOFError, zlib.error) as error:
            why = getattr(error, "strerror", None) or str(error)
            if each == path:
                raise ConfigError(f"cannot read the audit log {path}: {why}") from None
            # A sibling may have been removed by a rotation.
            unread += [] if isinstance(error, FileNotFoundError) else [f"{each}: {why}"]
    return unread


def siblings_of(path: Path) -> list[Path]:
    """Rotated files, the oldest first: as kube-apiserver names them (audit-TIME.log), and as logrotate does
    (audit.log.1)."""
    try:
        beside = [each for each in path.parent.iterdir() if _is_rotated(each.name, path) and each.is_file()]
        return sorted(beside, key=lambda each: (each.stat().st_mtime, each.name))
    except OSError:
        return []


def _is_rotated(name: str, path: Path) -> bool:
    is_stamped = name.startswith(f"{path.stem}-") and name.removesuffix(".gz").endswith(path.suffix)
    return name.startswith(f"{path.name}.") or is_stamped


def find_own_log(connection: Connection) -> str:
    """The audit log of a `podlife up` or `podlife apiserver` on this machine, if that is the server; "" if not."""
    for folder in _folders(connection):
        log = StateDir(folder).audit_log
        try:
            is_its = connection.server in (folder / "admin.kubeconfig").read_text(encoding="utf-8")
            if is_its and log.is_file():
                return str(log)
        except OSError:
            continue
    return ""


def _folders(connection: Connection) -> Iterator[Path]:
    """Where its data may be: beside the kubeconfig, as `up` writes it, or in the default directory."""
    if connection.origin:
        # "context NAME in FILE"
        yield Path(connection.origin.rpartition(" in ")[2]).parent
    yield default_data_dir()


@contextmanager
def _opened(path: Path) -> Iterator[io.BufferedIOBase]:
    """Opened once: what was read of a pipe cannot be read again."""
    with path.open("rb") as file:
        # No line of a log begins with the first byte of gzip's mark.
        yield gzip.GzipFile(fileobj=file) if file.peek(1)[:1] == b"\x1f" else file


def _feed(found: AuditCollection, read_line: Callable[[int], bytes]) -> None:
    while line := read_line(_MOST_LINE_BYTES):
        if line.endswith(b"\n") or len(line) < _MOST_LINE_BYTES:
            found.add(line)
            continue
        found.unreadable += 1
        while (rest := read_line(_MOST_LINE_BYTES)) and not rest.endswith(b"\n"):
            pass

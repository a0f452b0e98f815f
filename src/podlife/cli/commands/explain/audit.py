"""The audit log of a cluster, for `podlife explain` and `podlife ui`: one that is named, or that of `podlife up`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from podlife.client import Connection
from podlife.daemons.xdg import default_data_dir
from podlife.diagnosis import read_audit_file
from podlife.errors import ConfigError
from podlife.explain import AuditCollection, AuditedRequest
from podlife.localcluster.state_dir import StateDir


def read_audit(
    source: str | None, connection: Connection, namespace: str, pod: str = "", *, node: str = ""
) -> tuple[list[AuditedRequest], list[str]]:
    """What the log tells of a pod or a node, the oldest first, and what of it could not be read.

    None is the log of a server on this machine, if there is one: it was not named, so it is only reported when it
    cannot be read. Otherwise ConfigError is raised for a file that is not there or may not be read."""
    named = find_own_log(connection) if source is None else source
    found = AuditCollection(namespace, pod, node=node)
    try:
        unread = read_audit_file(found, named) if named else []
    except ConfigError as error:
        if source is not None:
            raise
        return [], [str(error)]
    return list(found.requests), unread


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

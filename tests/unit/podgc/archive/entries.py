"""Entries for the tests of the archive, and what lies in a folder."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path

from podlife.podgc.archive import Entry, Header, Log

NOW = datetime(2030, 1, 1, tzinfo=UTC)
UID = "0c2f0dd4-0f0b-4a9b-9a54-5f4a4a6a0001"


def make_entry(
    name: str = "web", namespace: str = "default", uid: str = UID, *, at: datetime = NOW, log_bytes: int = 0
) -> Entry:
    """With a log that compresses badly, so that its size tells."""
    header = Header(
        namespace=namespace,
        name=name,
        uid=uid,
        archived_at=at,
        reason="terminated",
        why="too many",
        phase="Failed",
    )
    pod = {"metadata": {"name": name, "namespace": namespace, "uid": uid}, "status": {"phase": "Failed"}}
    logs = (
        (Log(container="main", text=random.Random(uid).randbytes(log_bytes // 2).hex()),) if log_bytes else ()
    )
    return Entry(header, pod, ({"reason": "Killing", "message": "é\n<>"},), logs)


def files_in(folder: Path) -> dict[str, int]:
    """Every file of the folder but its lock, with its size."""
    return {
        str(path.relative_to(folder)): path.stat().st_size
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }

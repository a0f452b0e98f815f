"""Converts CRI statuses to the kubelet's, and manages the termination message files.

Such a file is mounted into its container, which can write to it but not replace it: the file read here is always the
one created here. On the node only the kubelet can open it.
"""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from podlife.kubelet.runtime import (
    ContainerState,
    ContainerStatus,
    SandboxConfig,
    SandboxState,
    SandboxStatus,
)

from .requests import POD_UID, RECORD_ANNOTATION, SANDBOX_ID, ContainerRecord
from .state_diff import ObservedContainer, ObservedSandbox

log = logging.getLogger(__name__)

_CONTAINER_STATES = [
    ContainerState.CREATED,
    ContainerState.RUNNING,
    ContainerState.EXITED,
    ContainerState.UNKNOWN,
]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# containerd's reason if a process is gone and its exit code is lost.
_UNKNOWN = "Unknown"
# Upstream's limit of a termination message.
_MAX_BYTES = 4096


def container_state(number: int) -> ContainerState:
    return _CONTAINER_STATES[number] if number < len(_CONTAINER_STATES) else ContainerState.UNKNOWN


def sandbox_status(raw: Any) -> SandboxStatus | None:
    """Of a `PodSandboxStatus` or a `PodSandbox`; None without a valid record."""
    config = _record(raw, SandboxConfig)
    if config is None:
        return None
    network = getattr(raw, "network", None)
    ips = (network.ip, *(more.ip for more in network.additional_ips)) if network else ()
    return SandboxStatus(
        raw.id, config, _sandbox_state(raw.state), _time(raw.created_at), tuple(ip for ip in ips if ip)
    )


def container_status(raw: Any) -> ContainerStatus | None:
    """Of a `ContainerStatus` or a `Container`; reads the termination message of one that has exited."""
    record = _record(raw, ContainerRecord)
    if record is None:
        return None
    state = container_state(raw.state)
    # A list does not have it.
    started = getattr(raw, "started_at", 0) if state is not ContainerState.CREATED else 0
    return ContainerStatus(
        id=raw.id,
        sandbox_id=record.sandbox_id,
        pod_uid=record.pod_uid,
        config=record.config,
        state=state,
        created_at=_time(raw.created_at),
        image_ref=raw.image_ref,
        log_path=Path(record.log_path) if record.log_path else None,
        started_at=_time(started) if started else None,
        **(_end(raw, record) if state is ContainerState.EXITED else {}),
    )


def observed_sandbox(raw: Any) -> ObservedSandbox:
    return ObservedSandbox(raw.id, raw.labels.get(POD_UID, ""), _sandbox_state(raw.state))


def observed_container(raw: Any) -> ObservedContainer:
    labels = raw.labels
    return ObservedContainer(
        raw.id, labels.get(SANDBOX_ID, ""), labels.get(POD_UID, ""), container_state(raw.state)
    )


def _end(raw: Any, record: ContainerRecord) -> dict[str, Any]:
    return {
        # The daemon records the start time after the start call; a short-lived container may have ended before.
        "finished_at": _time(max(raw.finished_at, raw.started_at)),
        "exit_code": raw.exit_code,
        "reason": "ContainerStatusUnknown" if raw.reason == _UNKNOWN else raw.reason,
        "message": raw.message,
        "termination_message": read_message(record.termination_file),
    }


def _sandbox_state(number: int) -> SandboxState:
    return SandboxState.READY if number == 0 else SandboxState.NOT_READY


def _time(nanoseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=nanoseconds // 1000)


def _record(raw: Any, kind: Any) -> Any:
    try:
        return msgspec.json.decode(raw.annotations.get(RECORD_ANNOTATION, ""), type=kind)
    except msgspec.DecodeError as error:
        log.warning("ignoring %s in containerd: it has our label, but no valid record: %s", raw.id, error)
        return None


def termination_file(raw: Any) -> str:
    record = _record(raw, ContainerRecord)
    return record.termination_file if record else ""


def make_file(folder: Path) -> Path:
    """Create an empty file that any user in a container can write to."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / secrets.token_hex(16)
    path.touch(mode=0o600)
    # The folder's mode protects it from other users of the node.
    path.chmod(0o666)
    return path


def read_message(path: str) -> str:
    """The tail of the file; empty if it cannot be read."""
    if not path:
        return ""
    try:
        with Path(path).open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _MAX_BYTES))
            return file.read(_MAX_BYTES).decode(errors="replace")
    except OSError:
        return ""


def remove_others(folder: Path, keep: Iterable[str]) -> None:
    """Delete the files of removed containers."""
    kept = set(keep)
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        if str(path) not in kept:
            path.unlink(missing_ok=True)

"""What the daemon says of sandboxes and containers, in the seam's words; and the files of termination messages.

Such a file is mounted into its container, which therefore cannot replace it: what is read here is always the file that
was created here. Processes in the container may write to it; on the node no one else can.
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

from .requests import NOTE, POD_UID, SANDBOX_ID, ContainerNote
from .state_diff import SeenContainer, SeenSandbox

log = logging.getLogger(__name__)

_CONTAINER_STATES = [
    ContainerState.CREATED,
    ContainerState.RUNNING,
    ContainerState.EXITED,
    ContainerState.UNKNOWN,
]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# What containerd says where it found a container's process gone and nobody to ask how it went.
_UNKNOWN = "Unknown"
# The most that a kubelet takes of one termination message.
_MOST_BYTES = 4096


def container_state(number: int) -> ContainerState:
    return _CONTAINER_STATES[number] if number < len(_CONTAINER_STATES) else ContainerState.UNKNOWN


def sandbox_status(told: Any) -> SandboxStatus | None:
    """Of a `PodSandboxStatus` or a `PodSandbox`; None where the note is not one of ours."""
    config = _note(told, SandboxConfig)
    if config is None:
        return None
    network = getattr(told, "network", None)
    ips = (network.ip, *(more.ip for more in network.additional_ips)) if network else ()
    return SandboxStatus(
        told.id, config, _sandbox_state(told.state), _time(told.created_at), tuple(ip for ip in ips if ip)
    )


def container_status(told: Any) -> ContainerStatus | None:
    """Of a `ContainerStatus` or a `Container`; reads the termination message of one that has exited."""
    note = _note(told, ContainerNote)
    if note is None:
        return None
    state = container_state(told.state)
    # Not in a list.
    started = getattr(told, "started_at", 0) if state is not ContainerState.CREATED else 0
    return ContainerStatus(
        id=told.id,
        sandbox_id=note.sandbox_id,
        pod_uid=note.pod_uid,
        config=note.config,
        state=state,
        created_at=_time(told.created_at),
        image_ref=told.image_ref,
        log_path=Path(note.log_path) if note.log_path else None,
        started_at=_time(started) if started else None,
        **(_end(told, note) if state is ContainerState.EXITED else {}),
    )


def seen_sandbox(told: Any) -> SeenSandbox:
    return SeenSandbox(told.id, told.labels.get(POD_UID, ""), _sandbox_state(told.state))


def seen_container(told: Any) -> SeenContainer:
    labels = told.labels
    return SeenContainer(
        told.id, labels.get(SANDBOX_ID, ""), labels.get(POD_UID, ""), container_state(told.state)
    )


def _end(told: Any, note: ContainerNote) -> dict[str, Any]:
    return {
        # The daemon notes the start when it is over; a short life may have ended by then.
        "finished_at": _time(max(told.finished_at, told.started_at)),
        "exit_code": told.exit_code,
        "reason": "ContainerStatusUnknown" if told.reason == _UNKNOWN else told.reason,
        "message": told.message,
        "termination_message": read_message(note.termination_file),
    }


def _sandbox_state(number: int) -> SandboxState:
    return SandboxState.READY if number == 0 else SandboxState.NOT_READY


def _time(nanoseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=nanoseconds // 1000)


def _note(told: Any, kind: Any) -> Any:
    try:
        return msgspec.json.decode(told.annotations.get(NOTE, ""), type=kind)
    except msgspec.DecodeError as error:
        log.warning("containerd has %s with our label and without a note of ours: %s", told.id, error)
        return None


def termination_file(told: Any) -> str:
    note = _note(told, ContainerNote)
    return note.termination_file if note else ""


def make_file(folder: Path) -> Path:
    """A new empty file in the folder, for any user in a container."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / secrets.token_hex(16)
    path.touch(mode=0o600)
    # The folder keeps everybody else on the node away.
    path.chmod(0o666)
    return path


def read_message(path: str) -> str:
    """The end of what was written, empty where nothing was."""
    if not path:
        return ""
    try:
        with Path(path).open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _MOST_BYTES))
            return file.read(_MOST_BYTES).decode(errors="replace")
    except OSError:
        return ""


def remove_others(folder: Path, keep: Iterable[str]) -> None:
    """Forget the files of containers that are gone."""
    kept = set(keep)
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        if str(path) not in kept:
            path.unlink(missing_ok=True)

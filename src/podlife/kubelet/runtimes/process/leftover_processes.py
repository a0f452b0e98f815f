"""Kills what is left of a container whose supervisor was killed, found by a marker in its environment or by its
cgroups.

The main process dies with its supervisor; its children do not.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from .launch import CONTAINER_ID_VARIABLE

_PATIENCE_SECONDS = 10.0


def kill_survivors(lost: Mapping[str, Sequence[Path]]) -> bool:
    """Kill until nobody is left of these containers, and take away their control groups, which are given with each.

    False if somebody would not go. Blocking: call it in a thread.
    """
    give_up = time.monotonic() + _PATIENCE_SECONDS
    groups = [group for of_one in lost.values() for group in of_one]
    while found := _marked(set(lost)) + _members(groups):
        if time.monotonic() > give_up:
            for pidfd in found:
                os.close(pidfd)
            return False
        for pidfd in found:
            _send(pidfd, signal.SIGKILL)
        time.sleep(0.01)
    for group in groups:
        with contextlib.suppress(OSError):
            group.rmdir()
    return True


def signal_survivors(container_id: str, groups: Sequence[Path], number: int) -> None:
    """Blocking."""
    for pidfd in _marked({container_id}) + _members(groups):
        _send(pidfd, number)


def _send(pidfd: int, number: int) -> None:
    try:
        signal.pidfd_send_signal(pidfd, number)
    except ProcessLookupError:
        pass
    finally:
        os.close(pidfd)


def _members(groups: Sequence[Path]) -> list[int]:
    found: list[int] = []
    for group in groups:
        with contextlib.suppress(OSError):
            for pid in (group / "cgroup.procs").read_text().split():
                with contextlib.suppress(OSError):
                    found.append(os.pidfd_open(int(pid)))
    return found


def _marked(container_ids: set[str]) -> list[int]:
    marks = {f"{CONTAINER_ID_VARIABLE}={container_id}".encode() for container_id in container_ids}
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # Opened before it is looked at: what is killed is what was seen, not who has its number by then.
            pidfd = os.pidfd_open(int(entry.name))
        except OSError:
            continue
        if _is_marked(entry, marks):
            found.append(pidfd)
        else:
            os.close(pidfd)
    return found


def _is_marked(process: Path, marks: set[bytes]) -> bool:
    try:
        return not marks.isdisjoint((process / "environ").read_bytes().split(b"\0"))
    except OSError:
        return False

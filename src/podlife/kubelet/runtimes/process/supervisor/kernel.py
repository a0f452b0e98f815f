"""Linux features that Python 3.11 lacks: prctl, mount, and the descendants of a process."""

from __future__ import annotations

import ctypes
import os

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_CLONE_NEWNS = 0x00020000
_MS_RDONLY, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_SLAVE = 0x1, 0x20, 0x1000, 0x4000, 0x80000
_SIGKILL = 9

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def adopt_orphans() -> None:
    """Become the reaper of all descendants, including daemons that double-fork."""
    _checked(_libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "adopt orphans")


def die_with_parent(parent: int, number: int = _SIGKILL) -> None:
    """Receive this signal when the parent exits; exit now if it already has."""
    _checked(_libc.prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0), "die with parent")
    if os.getppid() != parent:
        os._exit(137)


def set_no_new_privileges() -> None:
    _checked(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")


def unshare_mounts() -> None:
    """Enter a new mount namespace; mounts on the node still propagate into it."""
    _checked(_libc.unshare(_CLONE_NEWNS), "a mount namespace of its own")
    _checked(_libc.mount(b"none", b"/", None, _MS_REC | _MS_SLAVE, None), "mounts of its own")


def enter_mounts(namespace: int) -> None:
    _checked(_libc.setns(namespace, _CLONE_NEWNS), "enter the container's mounts")


def mount_in_memory(target: str) -> None:
    _checked(
        _libc.mount(b"podlife", os.fsencode(target), b"tmpfs", 0, b"mode=0700"), f"mount memory at {target}"
    )


def mount_layer(below: str, layer: str, *, at: str) -> None:
    """Mount an overlay of the folder `below` at `at`; changes go to `layer`. Owner and mode are copied, because
    an overlay's root has those of its upper folder."""
    for part in (layer, layer + "/upper", layer + "/work"):
        os.mkdir(part, 0o700)
    found = os.stat(below)
    os.chown(layer + "/upper", found.st_uid, found.st_gid)
    os.chmod(layer + "/upper", found.st_mode & 0o7777)
    options = f"lowerdir={_escaped(below)},upperdir={_escaped(layer)}/upper,workdir={_escaped(layer)}/work"
    result = _libc.mount(b"podlife", os.fsencode(at), b"overlay", 0, os.fsencode(options))
    _checked(result, f"a layer over {below}")


def _escaped(path: str) -> str:
    return path.replace("\\", "\\\\").replace(",", "\\,").replace(":", "\\:")


def bind_mount(source: str, target: str, *, readonly: bool) -> None:
    what = f"mount {source} at {target}"
    names = os.fsencode(source), os.fsencode(target)
    _checked(_libc.mount(*names, None, _MS_BIND | _MS_REC, None), what)
    if readonly:
        # A bind mount takes flags only in a remount.
        _checked(_libc.mount(*names, None, _MS_BIND | _MS_REMOUNT | _MS_RDONLY, None), what)


def descendants(pid: int) -> list[int]:
    """All descendants of a process. A process that forks meanwhile may be missed: repeat until none is left."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        children = _children(waiting.pop())
        found += children
        waiting += children
    return found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as listed:
                found += [int(child) for child in listed.read().split()]
    except (FileNotFoundError, ProcessLookupError):
        # The process has exited; the supervisor adopts its children, and the next call finds them.
        pass
    return found

"""From a fork to the program of a container: everything that is set up in between, and how its failure is told.

A process that begins here has a session and a group of its own, the container's user, limits and mounts, nothing of
the agent's environment, and dies when its supervisor does.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import termios
from typing import Any

from . import kernel, limits
from .folder import Folder

__all__ = ["start"]

# Descriptors of the three streams.
Streams = tuple[int, int, int]
_FAILURE_BYTES = 4096


def start(folder: Folder, streams: Streams, *, tty: bool, command: list[str] | None = None) -> int:
    """Start the container's program, or a command beside it; answers its process ID.

    Raises OSError with a text for users.
    """
    reader, writer = os.pipe2(os.O_CLOEXEC)
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        _become(folder, command, streams, tty=tty, parent=parent, failures=writer)
    os.close(writer)
    # The other end closes when the program has begun; until then whatever comes is why it could not.
    failure = os.read(reader, _FAILURE_BYTES)
    os.close(reader)
    if failure:
        os.waitpid(pid, 0)
        raise OSError(failure.decode(errors="replace"))
    return pid


def _become(
    folder: Folder, command: list[str] | None, streams: Streams, *, tty: bool, parent: int, failures: int
) -> None:
    argv: list[str] = command or []
    launch: dict[str, Any] = {"cwd": ""}
    try:
        launch = folder.launch()
        argv = argv or launch["argv"]
        (limits.apply if command is None else limits.join)(launch)
        _set_up(launch, streams, tty=tty)
        kernel.die_with_parent(parent)
        os.umask(0o022)
        _reset_signals()
        os.execvpe(argv[0], argv, launch["env"])
    except OSError as failure:
        os.write(failures, _explained(failure, argv, launch).encode(errors="replace"))
    except BaseException as failure:  # noqa: BLE001 - a fork: nothing may return into the supervisor's code
        os.write(failures, repr(failure).encode(errors="replace"))
    finally:
        os._exit(127)


def _explained(failure: OSError, argv: list[str], launch: dict[str, Any]) -> str:
    if failure.filename is not None and os.fsdecode(failure.filename) == launch["cwd"]:
        return f"working directory {launch['cwd']}: {failure.strerror}"
    if failure.errno == errno.ENOENT:
        return f'exec: "{argv[0]}": no such file, or not in $PATH'
    return f'exec: "{argv[0]}": {failure.strerror or failure}'


def _set_up(launch: dict[str, Any], streams: Streams, *, tty: bool) -> None:
    os.setsid()
    # First away from the low numbers: a stream that is given may stand where another one goes.
    for target, high in enumerate([fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in streams]):
        os.dup2(high, target)
    if tty:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    if launch["mounts"]:
        kernel.private_mounts()
        for mount in launch["mounts"]:
            kernel.bind_mount(mount["source"], mount["target"], readonly=mount["readonly"])
    _score("0")
    # Before the user changes: the default one lies in folders that only the agent may enter.
    os.chdir(launch["cwd"])
    if user := launch["user"]:
        for path in launch["owned"]:
            os.chown(path, user["uid"], user["gid"], follow_symlinks=False)
        os.setgroups(user["groups"])
        os.setgid(user["gid"])
        os.setuid(user["uid"])
    if launch["no_new_privileges"]:
        kernel.allow_no_new_privileges()


def _score(adjustment: str) -> None:
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:
            score.write(adjustment)
    except OSError:
        # Only root may lower it; then it was never raised either.
        pass


def _reset_signals() -> None:
    for number in signal.valid_signals():
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            try:
                signal.signal(number, signal.SIG_DFL)
            except (OSError, ValueError):
                continue
    signal.pthread_sigmask(signal.SIG_SETMASK, [])

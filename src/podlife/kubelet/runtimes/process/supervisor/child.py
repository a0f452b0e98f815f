"""From a fork to the program of a container: everything that is set up in between, and how its failure is told.

A process that begins here has a session and a group of its own, the container's user, limits and mounts, nothing of
the kubelet's environment, and dies when its supervisor does.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import termios
from typing import Any

from . import kernel, limits, mounts
from .folder import Folder

# Descriptors of the three streams.
Streams = tuple[int, int, int]
_FAILURE_BYTES = 4096


class Exec:
    """A command to run where the container's own program is."""

    __slots__ = ("argv", "beside")

    def __init__(self, argv: list[str], beside: int) -> None:
        if not argv:
            raise OSError("no command")
        self.argv = argv
        self.beside = beside


def start(folder: Folder, streams: Streams, *, tty: bool, command: Exec | None = None) -> int:
    """Start the container's own program, or a command; answers its process ID, or raises OSError with a text for
    users."""
    reader, writer = os.pipe2(os.O_CLOEXEC)
    parent = os.getpid()
    try:
        pid = os.fork()
    except OSError:
        # There may be no room for another process; the supervisor goes on, and is asked again.
        os.close(reader)
        os.close(writer)
        raise
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
    folder: Folder, command: Exec | None, streams: Streams, *, tty: bool, parent: int, failures: int
) -> None:
    try:
        launch = folder.launch()
        _prepare(launch, folder, command)
        _set_up(launch, streams, tty=tty)
        kernel.die_with_parent(parent)
        _reset_signals()
        _execute(launch["argv"] if command is None else command.argv, launch["env"])
    except BaseException as failure:  # noqa: BLE001 - a fork: nothing may return into the supervisor's code
        os.write(failures, _explained(failure).encode(errors="replace")[:_FAILURE_BYTES])
    finally:
        os._exit(127)


def _prepare(launch: dict[str, Any], folder: Folder, command: Exec | None) -> None:
    if command is None:
        limits.apply(launch)
        if launch["mounts"]:
            mounts.show(launch["mounts"], folder.path)
    else:
        limits.join(launch)
        if launch["mounts"]:
            mounts.enter(command.beside)


def _execute(argv: list[str], env: dict[str, str]) -> None:
    try:
        os.execvpe(argv[0], argv, env)
    except FileNotFoundError:
        raise OSError(f'exec: "{argv[0]}": no such file, or not in $PATH') from None
    except OSError as failure:
        raise OSError(f'exec: "{argv[0]}": {failure.strerror}') from None


def _explained(failure: BaseException) -> str:
    if isinstance(failure, OSError) and failure.filename is not None:
        return f"{os.fsdecode(failure.filename)}: {failure.strerror}"
    if isinstance(failure, OSError):
        return failure.strerror or str(failure)
    return repr(failure)


def _set_up(launch: dict[str, Any], streams: Streams, *, tty: bool) -> None:
    os.setsid()
    # First away from the low numbers: a stream that is given may stand where another one goes.
    for target, high in enumerate([fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in streams]):
        os.dup2(high, target)
    if tty:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    # Only root may lower it; then it was never raised either.
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:
        score.write("0")
    # Before the user changes: the default one lies in folders that only the kubelet may enter.
    try:
        os.chdir(launch["cwd"])
    except OSError as failure:
        raise OSError(f"working directory {launch['cwd']}: {failure.strerror}") from None
    os.umask(0o022)
    if user := launch["user"]:
        for path in launch["owned"]:
            os.chown(path, user["uid"], user["gid"], follow_symlinks=False)
        os.setgroups(user["groups"])
        os.setgid(user["gid"])
        os.setuid(user["uid"])
    if launch["no_new_privileges"]:
        kernel.allow_no_new_privileges()


def _reset_signals() -> None:
    for number in signal.valid_signals():
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])

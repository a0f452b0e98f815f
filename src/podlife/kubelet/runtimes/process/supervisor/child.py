"""Sets up a process between fork and exec, and reports failures to the supervisor.

The process gets its own session and process group, the container's user, limits and mounts, and nothing of the
kubelet's environment. It dies with its supervisor.
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

# File descriptors of stdin, stdout and stderr.
Streams = tuple[int, int, int]
_FAILURE_BYTES = 4096


class Exec:
    """A command to run in the container, beside its main process."""

    __slots__ = ("argv", "container_pid")

    def __init__(self, argv: list[str], container_pid: int) -> None:
        if not argv:
            raise OSError("no command")
        self.argv = argv
        self.container_pid = container_pid


def start(folder: Folder, streams: Streams, *, tty: bool, command: Exec | None = None) -> int:
    """Start the container's main process, or `command`; returns the PID. Raises OSError with a message for users."""
    reader, writer = os.pipe2(os.O_CLOEXEC)
    parent = os.getpid()
    try:
        pid = os.fork()
    except OSError:
        # The process limit may be exhausted; the supervisor must survive, and the caller may retry.
        os.close(reader)
        os.close(writer)
        raise
    if pid == 0:
        _exec_in_child(folder, command, streams, tty=tty, parent=parent, failures=writer)
    os.close(writer)
    # exec closes the other end; anything read before that is the error message.
    failure = os.read(reader, _FAILURE_BYTES)
    os.close(reader)
    if failure:
        os.waitpid(pid, 0)
        raise OSError(failure.decode(errors="replace"))
    return pid


def _exec_in_child(
    folder: Folder, command: Exec | None, streams: Streams, *, tty: bool, parent: int, failures: int
) -> None:
    try:
        launch = folder.launch()
        _prepare(launch, folder, command)
        _set_up(launch, streams, tty=tty)
        kernel.die_with_parent(parent)
        _reset_signals()
        # A command of its own terminal has a TERM even if the container has none.
        env = {"TERM": "xterm"} | launch["env"] if tty else launch["env"]
        _execute(launch["argv"] if command is None else command.argv, env)
    except BaseException as failure:  # noqa: BLE001 - a fork: nothing may return into the supervisor's code
        os.write(failures, _describe(failure).encode(errors="replace")[:_FAILURE_BYTES])
    finally:
        os._exit(127)


def _prepare(launch: dict[str, Any], folder: Folder, command: Exec | None) -> None:
    if command is None:
        limits.apply(launch)
        if launch["mounts"]:
            mounts.set_up(launch["mounts"], folder.path)
    else:
        limits.join(launch)
        if launch["mounts"]:
            mounts.enter(command.container_pid)


def _execute(argv: list[str], env: dict[str, str]) -> None:
    try:
        os.execvpe(argv[0], argv, env)
    except FileNotFoundError:
        raise OSError(f'exec: "{argv[0]}": no such file, or not in $PATH') from None
    except OSError as failure:
        raise OSError(f'exec: "{argv[0]}": {failure.strerror}') from None


def _describe(failure: BaseException) -> str:
    if isinstance(failure, OSError) and failure.filename is not None:
        return f"{os.fsdecode(failure.filename)}: {failure.strerror}"
    if isinstance(failure, OSError):
        return failure.strerror or str(failure)
    return repr(failure)


def _set_up(launch: dict[str, Any], streams: Streams, *, tty: bool) -> None:
    os.setsid()
    # Move the descriptors up first: one of them may have a number that another one is to get.
    for target, high in enumerate([fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in streams]):
        os.dup2(high, target)
    if tty:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    # Undoes the supervisor's oom_score_adj. Only root may lower the score, so for others it was never lowered.
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:
        score.write("0")
    # Before setuid: only the kubelet's user may enter the default working directory's parents.
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
        kernel.set_no_new_privileges()


def _reset_signals() -> None:
    for number in signal.valid_signals():
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])

"""One container, from its start to the record of its end.

The supervisor is the parent of everything in the container, also of what forks away twice. It writes the log, takes
orders at a socket in the container's folder, and sleeps in between: an idle container costs no time at all. When the
main process ends the rest is killed, as in a container with a process namespace; while it is being stopped the rest
has what is left of the grace period. Only when nobody is left the exit code is recorded, and the supervisor ends.
"""

from __future__ import annotations

import contextlib
import errno
import os
import pty
import select
import signal
import time

from . import child, kernel, limits
from .folder import Folder
from .logfile import LogFile
from .orders import Order, Orders, StartOrder

_CHUNK_BYTES = 64 * 1024
# More than a pipe holds: what comes after the end comes from somebody outside who was given the stream.
_LAST_CHUNKS = 64
_LONGEST_POLL_MILLISECONDS = 24 * 3600 * 1000
_KILL_AGAIN_SECONDS = 0.05
# A process in uninterruptible sleep outlives SIGKILL; the container's end does not wait for it for ever.
_GIVE_UP_SECONDS = 30.0


class Supervisor:
    def __init__(self, folder: Folder, order: StartOrder) -> None:
        self._folder = folder
        self._order = order
        self._log: LogFile | None = None
        self._streams: dict[int, str] = {}
        self._poll = select.poll()
        self._main = 0
        self._status: int | None = None
        self._started_at_ns = 0
        self._has_children = True
        self._stop_at: float | None = None
        self._rest_was_asked = False
        self._killing_since: float | None = None
        self._execs: dict[int, Order] = {}

    def start(self) -> None:
        """Start the container; raises OSError where it cannot be, and has then recorded its end."""
        kernel.adopt_orphans()
        try:
            self._start()
        except OSError as failure:
            limits.remove(self._folder.launch())
            self._record(128, "StartError", str(failure))
            raise
        self._folder.record_start(self._main, self._started_at_ns)

    def run(self) -> None:
        """Until the container has ended and its end is recorded."""
        while not self._is_over():
            for fd, _ in self._poll.poll(self._patience_milliseconds()):
                self._handle(fd)
            self._reap()
            self._advance()
        self._finish()

    def _start(self) -> None:
        os.chdir(self._folder.path)
        self._orders = Orders("control")
        self._wake_up, wake_up = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(wake_up, warn_on_full_buffer=False)
        for fd in (self._wake_up, self._orders.fileno()):
            self._poll.register(fd, select.POLLIN)
        ours, theirs = _terminal() if self._order.tty else _pipes()
        self._started_at_ns = time.time_ns()
        try:
            self._main = child.start(self._folder, theirs, tty=self._order.tty)
        finally:
            for fd in set(theirs):
                os.close(fd)
        for fd, stream in ours.items():
            os.set_blocking(fd, False)
            self._streams[fd] = stream
            self._poll.register(fd, select.POLLIN)

    def _handle(self, fd: int) -> None:
        if fd == self._wake_up:
            # The numbers of the signals that came.
            if signal.SIGTERM in os.read(fd, 4096):
                self._stop(self._order.shutdown_grace_seconds)
        elif fd in self._streams:
            self._read(fd)
        elif fd == self._orders.fileno():
            # Refused when there is no room for another descriptor; whoever asked asks again.
            with contextlib.suppress(OSError):
                self._poll.register(self._orders.accept(), select.POLLIN)
        elif fd in self._orders:
            self._take_order(fd)

    def _read(self, fd: int) -> bool:
        """Move what a stream has to the log; False when there is nothing now."""
        try:
            chunk = os.read(fd, _CHUNK_BYTES)
        except BlockingIOError:
            return False
        except OSError as failure:
            if failure.errno != errno.EIO:  # how a terminal says that nobody is on the other side
                raise
            chunk = b""
        if not chunk:
            self._poll.unregister(fd)
            del self._streams[fd]
            os.close(fd)
            return False
        self._to_log(self._streams[fd], chunk)
        return True

    def _to_log(self, stream: str, chunk: bytes) -> None:
        order = self._order
        if self._log is None and order.log_path:
            # Not before there is something to write: many containers are silent, and all the smaller for it.
            self._log = LogFile(order.log_path, max_bytes=order.log_max_bytes, max_files=order.log_max_files)
        if self._log is not None:
            self._log.feed(stream, chunk)

    def _take_order(self, fd: int) -> None:
        order = self._orders.receive(fd)
        if order is None:
            self._poll.unregister(fd)
            for pid in [pid for pid, exec_order in self._execs.items() if exec_order.fd == fd]:
                _signal_group(pid, signal.SIGKILL)
            self._orders.close(fd)
        elif order.verb == "stop":
            self._stop(order.content["grace_seconds"])
            order.answer({"stopping": True})
        elif order.verb == "exec":
            self._exec(order)

    def _exec(self, order: Order) -> None:
        try:
            if self._status is not None or self._killing_since is not None:
                raise OSError("the container has ended")
            first, second, third = order.fds
            command = child.Exec(order.content["argv"], self._main)
            streams = (first, second, third)
            pid = child.start(self._folder, streams, tty=order.content["tty"], command=command)
        except (OSError, ValueError) as failure:
            order.answer({"error": str(failure)})
        else:
            self._execs[pid] = order
            order.answer({"started": True})
        finally:
            for fd in order.fds:
                os.close(fd)

    def _stop(self, grace_seconds: float) -> None:
        deadline = time.monotonic() + grace_seconds
        if self._stop_at is None:
            self._stop_at = deadline
            if grace_seconds > 0 and self._status is None:
                _signal_group(self._main, self._order.stop_signal)
        else:
            self._stop_at = min(self._stop_at, deadline)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self._has_children = False
                return
            if pid == 0:
                self._has_children = True
                return
            if pid == self._main:
                self._status = status
            elif order := self._execs.pop(pid, None):
                order.answer({"exit_code": _exit_code(status)})

    def _advance(self) -> None:
        """From what is known to what is sent: nothing, a request to end, or the end."""
        now = time.monotonic()
        if self._stop_at is not None and now < self._stop_at:
            if self._status is not None and not self._rest_was_asked:
                # Those that left the group have not been asked yet.
                self._rest_was_asked = True
                others = [pid for pid in kernel.descendants(os.getpid()) if not _is_in_group(pid, self._main)]
                _signal_all(others, self._order.stop_signal)
            return
        if self._status is not None or self._stop_at is not None:
            self._killing_since = self._killing_since or now
            if self._has_children:
                limits.kill_members(self._folder.launch())
                _kill_with_groups(kernel.descendants(os.getpid()))

    def _patience_milliseconds(self) -> int | None:
        if self._killing_since is not None:
            return int(_KILL_AGAIN_SECONDS * 1000)
        if self._stop_at is not None:
            milliseconds = int((self._stop_at - time.monotonic()) * 1000) + 1
            # poll() takes 24 days at most, and a grace may be any: it is looked at again then.
            return max(0, min(milliseconds, _LONGEST_POLL_MILLISECONDS))
        return None

    def _is_over(self) -> bool:
        if self._status is not None and not self._has_children:
            return True
        return self._killing_since is not None and time.monotonic() - self._killing_since > _GIVE_UP_SECONDS

    def _finish(self) -> None:
        for fd in list(self._streams):
            for _ in range(_LAST_CHUNKS):
                if fd not in self._streams or not self._read(fd):
                    break
        if self._log is not None:
            self._log.end()
        code = 137 if self._status is None else _exit_code(self._status)
        reason = "Completed" if code == 0 else "Error"
        launch = self._folder.launch()
        if code != 0 and limits.was_out_of_memory(launch):
            reason = "OOMKilled"
        limits.remove(launch)
        self._record(code, reason, "")

    def _record(self, exit_code: int, reason: str, message: str) -> None:
        finished = time.time_ns()
        self._folder.record_exit(
            {
                "exit_code": exit_code,
                "reason": reason,
                "message": message,
                "termination_message": self._folder.termination_message(),
                "started_at_ns": self._started_at_ns or finished,
                "finished_at_ns": finished,
            }
        )


def _pipes() -> tuple[dict[int, str], child.Streams]:
    nothing = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
    out_reader, out_writer = os.pipe2(os.O_CLOEXEC)
    error_reader, error_writer = os.pipe2(os.O_CLOEXEC)
    return {out_reader: "stdout", error_reader: "stderr"}, (nothing, out_writer, error_writer)


def _terminal() -> tuple[dict[int, str], child.Streams]:
    ours, theirs = pty.openpty()
    return {ours: "stdout"}, (theirs, theirs, theirs)


def _exit_code(status: int) -> int:
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _signal_group(pid: int, number: int) -> None:
    # The process has not been reaped, so the group's number is still its own.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _kill_with_groups(pids: list[int]) -> None:
    """A process that forks and ends faster than it can be named does not get away from its group.

    Nobody is reaped between the listing and this, so that every group is still the one of a process listed.
    """
    groups: set[int] = set()
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            groups.add(os.getpgid(pid))
    for group in groups - {os.getpgid(0)}:
        _signal_group(group, signal.SIGKILL)
    _signal_all(pids, signal.SIGKILL)


def _is_in_group(pid: int, group: int) -> bool:
    try:
        return os.getpgid(pid) == group
    except ProcessLookupError:
        return False


def _signal_all(pids: list[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)

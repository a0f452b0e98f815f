"""Supervises one container from its start until its exit is recorded.

The supervisor is the reaper of all processes in the container, including daemons that double-fork. It writes the log,
takes requests on a socket in the container's folder, and otherwise sleeps: an idle container uses no CPU time. When the
main process exits, the supervisor kills the rest, as in a PID namespace; during a stop the rest has the remaining grace
period. After the last process has exited, it records the exit code and exits.
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
from .attachments import Attachments
from .folder import Folder
from .logfile import LogFile
from .requests import ControlSocket, Request, StartRequest

_CHUNK_BYTES = 64 * 1024
# More than a pipe holds: later output comes from a process outside the container that inherited the stream.
_LAST_CHUNKS = 64
_LONGEST_POLL_MILLISECONDS = 24 * 3600 * 1000
_KILL_AGAIN_SECONDS = 0.05
# A process in uninterruptible sleep survives SIGKILL; the container's exit is recorded without it.
_GIVE_UP_SECONDS = 30.0


class Supervisor:
    def __init__(self, folder: Folder, request: StartRequest) -> None:
        self._folder = folder
        self._start_request = request
        self._log: LogFile | None = None
        self._streams: dict[int, str] = {}
        self._poll = select.poll()
        self._main = 0
        self._status: int | None = None
        self._started_at_ns = 0
        self._has_children = True
        self._stop_at: float | None = None
        self._rest_was_signalled = False
        self._killing_since: float | None = None
        self._execs: dict[int, Request] = {}
        self._attachments = Attachments(self._poll)
        # The writing side of the container's input; its terminal, if it has one.
        self._stdin = -1

    def start(self) -> None:
        """Start the container. Raises OSError if that fails, after recording the exit."""
        kernel.adopt_orphans()
        try:
            self._start()
        except OSError as failure:
            limits.remove(self._folder.launch())
            self._record(128, "StartError", str(failure))
            raise
        self._folder.record_start(self._main, self._started_at_ns)

    def run(self) -> None:
        """Run until the container has exited and its exit is recorded."""
        while not self._is_finished():
            for fd, _ in self._poll.poll(self._poll_timeout_milliseconds()):
                self._handle(fd)
            self._attachments.drop_stalled()
            self._reap()
            self._advance()
        self._finish()

    def _start(self) -> None:
        os.chdir(self._folder.path)
        self._control = ControlSocket("control")
        self._wake_up, wake_up = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(wake_up, warn_on_full_buffer=False)
        for fd in (self._wake_up, self._control.fileno()):
            self._poll.register(fd, select.POLLIN)
        ours, theirs = _terminal() if self._start_request.tty else _pipes()
        if self._start_request.stdin and self._start_request.tty:
            self._stdin = next(iter(ours))
        elif self._start_request.stdin:
            os.close(theirs[0])
            reader, self._stdin = os.pipe2(os.O_CLOEXEC)
            theirs = (reader, *theirs[1:])
        self._started_at_ns = time.time_ns()
        try:
            self._main = child.start(self._folder, theirs, tty=self._start_request.tty)
        finally:
            for fd in set(theirs):
                os.close(fd)
        for fd, stream in ours.items():
            os.set_blocking(fd, False)
            self._streams[fd] = stream
            self._poll.register(fd, select.POLLIN)
        self._attachments.sources = self._streams

    def _handle(self, fd: int) -> None:
        if fd == self._wake_up:
            # The wake-up pipe carries signal numbers.
            if signal.SIGTERM in os.read(fd, 4096):
                self._stop(self._start_request.shutdown_grace_seconds)
        elif fd in self._streams:
            self._read(fd)
        elif fd in self._attachments:
            self._attachments.flush(fd)
        elif fd == self._control.fileno():
            # Fails when no descriptor is free; the kubelet retries.
            with contextlib.suppress(OSError):
                self._poll.register(self._control.accept(), select.POLLIN)
        elif fd in self._control:
            self._handle_request(fd)

    def _read(self, fd: int) -> bool:
        """Copy available output of a stream to the log; False if there is none."""
        try:
            chunk = os.read(fd, _CHUNK_BYTES)
        except BlockingIOError:
            return False
        except OSError as failure:
            if failure.errno != errno.EIO:  # the other side of a terminal was closed
                raise
            chunk = b""
        if not chunk:
            with contextlib.suppress(KeyError):
                # Not registered while an attached client is slow.
                self._poll.unregister(fd)
            self._attachments.end(self._streams.pop(fd))
            if fd == self._stdin:
                self._stdin = -1
            os.close(fd)
            return False
        self._to_log(self._streams[fd], chunk)
        self._attachments.write(self._streams[fd], chunk)
        return True

    def _to_log(self, stream: str, chunk: bytes) -> None:
        request = self._start_request
        if self._log is None and request.log_path:
            # Opened with the first output: many containers write none, and their supervisors stay smaller.
            self._log = LogFile(
                request.log_path, max_bytes=request.log_max_bytes, max_files=request.log_max_files
            )
        if self._log is not None:
            self._log.feed(stream, chunk)

    def _handle_request(self, fd: int) -> None:
        request = self._control.receive(fd)
        if request is None:
            self._poll.unregister(fd)
            for pid in [pid for pid, exec_request in self._execs.items() if exec_request.fd == fd]:
                _signal_group(pid, signal.SIGKILL)
            self._attachments.remove(fd)
            self._control.close(fd)
        elif request.verb == "stop":
            self._stop(request.content["grace_seconds"])
            request.reply({"stopping": True})
        elif request.verb == "exec":
            self._exec(request)
        elif request.verb == "attach":
            self._attach(request)
        elif request.verb == "close_stdin" and self._stdin >= 0 and not self._start_request.tty:
            os.close(self._stdin)
            self._stdin = -1

    def _attach(self, request: Request) -> None:
        """The request has the writing ends of two pipes; the reply has the container's input, if it is asked for."""
        if self._status is not None or len(request.fds) != 2:
            for fd in request.fds:
                os.close(fd)
            request.reply({"error": "the container has ended"})
            return
        stdout, stderr = request.fds
        self._attachments.add(request, {"stdout": stdout, "stderr": stderr})
        has_stdin = request.content["stdin"] and self._stdin >= 0
        request.reply({"attached": True}, (self._stdin,) if has_stdin else ())

    def _exec(self, request: Request) -> None:
        try:
            if self._status is not None or self._killing_since is not None:
                raise OSError("the container has ended")
            first, second, third = request.fds
            command = child.Exec(request.content["argv"], self._main)
            streams = (first, second, third)
            pid = child.start(self._folder, streams, tty=request.content["tty"], command=command)
        except (OSError, ValueError) as failure:
            request.reply({"error": str(failure)})
        else:
            self._execs[pid] = request
            request.reply({"started": True})
        finally:
            for fd in request.fds:
                os.close(fd)

    def _stop(self, grace_seconds: float) -> None:
        deadline = time.monotonic() + grace_seconds
        if self._stop_at is None:
            self._stop_at = deadline
            if grace_seconds > 0 and self._status is None:
                _signal_group(self._main, self._start_request.stop_signal)
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
            elif request := self._execs.pop(pid, None):
                request.reply({"exit_code": _exit_code(status)})

    def _advance(self) -> None:
        """Send the signal that is due: none, the stop signal to the rest, or SIGKILL."""
        now = time.monotonic()
        if self._stop_at is not None and now < self._stop_at:
            if self._status is not None and not self._rest_was_signalled:
                # Processes outside the main process's group have not received the stop signal yet.
                self._rest_was_signalled = True
                others = [pid for pid in kernel.descendants(os.getpid()) if not _is_in_group(pid, self._main)]
                _signal_all(others, self._start_request.stop_signal)
            return
        if self._status is not None or self._stop_at is not None:
            self._killing_since = self._killing_since or now
            if self._has_children:
                limits.kill_members(self._folder.launch())
                _kill_with_groups(kernel.descendants(os.getpid()))

    def _poll_timeout_milliseconds(self) -> int | None:
        if self._killing_since is not None:
            return int(_KILL_AGAIN_SECONDS * 1000)
        if self._stop_at is not None:
            milliseconds = int((self._stop_at - time.monotonic()) * 1000) + 1
            # poll() takes at most 24 days, but a grace period may be longer.
            return max(0, min(milliseconds, _LONGEST_POLL_MILLISECONDS))
        return self._attachments.poll_timeout_milliseconds()

    def _is_finished(self) -> bool:
        if self._status is not None and not self._has_children:
            return True
        return self._killing_since is not None and time.monotonic() - self._killing_since > _GIVE_UP_SECONDS

    def _finish(self) -> None:
        for fd in list(self._streams):
            for _ in range(_LAST_CHUNKS):
                if fd not in self._streams or not self._read(fd):
                    break
        self._attachments.close()
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
    # The process has not been reaped, so the group ID is still its own.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _kill_with_groups(pids: list[int]) -> None:
    """Kill whole process groups, so that a process cannot escape by forking faster than it is listed.

    No process is reaped between the listing and this call, so every group ID still belongs to a listed process.
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

"""The launcher: keeps the supervisor's code in memory and forks a supervisor for every container that starts.

It takes requests from the kubelet on standard input and exits with the kubelet; supervisors outlive it. Until a
supervisor has claimed its container it shares the launcher's lock, so the next kubelet can wait for pending starts.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import sys

from .folder import AlreadyClaimedError, Folder
from .requests import StartRequest
from .supervise import Supervisor

_MESSAGE_BYTES = 64 * 1024
_LAUNCHER = os.getpid()


def main() -> None:
    """Serve the kubelet until it exits. Standard input is a socket; the first argument is the lock's descriptor."""
    lock = int(sys.argv[1])
    os.set_inheritable(lock, False)
    os.umask(0o077)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    # Set once here for all supervisors: a signal interrupts their poll, and they read its number from the wake-up pipe.
    signal.signal(signal.SIGCHLD, _reap)
    signal.signal(signal.SIGTERM, _on_sigterm)
    agent = socket.socket(fileno=os.dup(0))
    # Keep the garbage collector from writing to pages that the forks share.
    gc.disable()
    gc.freeze()
    while True:
        data, fds, _, _ = socket.recv_fds(agent, _MESSAGE_BYTES, 1)
        if not data:
            return
        os.set_inheritable(fds[0], False)
        if os.fork() == 0:
            agent.close()
            _supervise(data, lock, fds[0])
        os.close(fds[0])


def _reap(*_: object) -> None:
    if os.getpid() != _LAUNCHER:
        return
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _on_sigterm(*_: object) -> None:
    if os.getpid() == _LAUNCHER:
        os._exit(0)


def _supervise(request: bytes, lock: int, reply: int) -> None:
    try:
        os.setsid()
        start_request = StartRequest(request)
        _detach(start_request.folder + "/supervisor.log")
        _protect()
        supervisor = _start(start_request, lock, reply)
        os.close(reply)
        if supervisor is not None:
            supervisor.run()
    except BaseException:  # noqa: BLE001 - this is a fork: nothing may return into the launcher's loop
        import traceback

        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _start(start_request: StartRequest, lock: int, reply: int) -> Supervisor | None:
    folder = Folder(start_request.folder, start_request.lock)
    try:
        folder.claim()
    except AlreadyClaimedError:
        _reply(reply, b"conflict")
        return None
    except OSError as failure:
        # No disk space for the exit record: refuse to start.
        _reply(reply, b"failed " + str(failure).encode())
        return None
    finally:
        os.close(lock)
    supervisor = Supervisor(folder, start_request)
    try:
        supervisor.start()
    except OSError as failure:
        _reply(reply, b"failed " + str(failure).encode())
        return None
    _reply(reply, b"started")
    return supervisor


def _reply(reply: int, message: bytes) -> None:
    # The kubelet may be gone; the result is on disk regardless.
    with contextlib.suppress(OSError):
        os.write(reply, message)


def _detach(errors: str) -> None:
    nothing = os.open("/dev/null", os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.close(nothing)
    log = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    os.dup2(log, 2)
    os.close(log)


def _protect() -> None:
    # Only root may lower the score.
    with contextlib.suppress(OSError):
        score = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
        os.write(score, b"-999")
        os.close(score)

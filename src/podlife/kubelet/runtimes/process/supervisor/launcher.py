"""The launcher: holds the supervisor's code in memory and forks a supervisor for every container that is started.

It takes requests from the kubelet at its standard input and ends with it. Supervisors are not its concern once they are
forked: they outlive it. Until a supervisor has claimed its container it shares the launcher's lock, so that the next
kubelet can wait until no start is on its way any more.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import sys

from .folder import AlreadyClaimedError, Folder
from .orders import StartOrder
from .supervise import Supervisor

_MESSAGE_BYTES = 64 * 1024
_LAUNCHER = os.getpid()


def main() -> None:
    """Serve the kubelet until it goes. Standard input is its socket; the first argument is the lock's descriptor."""
    lock = int(sys.argv[1])
    os.set_inheritable(lock, False)
    os.umask(0o077)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    # Set here and not in each supervisor: there they do nothing but end its sleep, and it reads the number.
    signal.signal(signal.SIGCHLD, _reap)
    signal.signal(signal.SIGTERM, _leave)
    agent = socket.socket(fileno=os.dup(0))
    # What is here now is shared by every fork for as long as nobody collects or counts over it.
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


def _leave(*_: object) -> None:
    if os.getpid() == _LAUNCHER:
        os._exit(0)


def _supervise(request: bytes, lock: int, reply: int) -> None:
    try:
        os.setsid()
        order = StartOrder(request)
        _detach(order.folder + "/supervisor.log")
        _protect()
        supervisor = _start(order, lock, reply)
        os.close(reply)
        if supervisor is not None:
            supervisor.run()
    except BaseException:  # noqa: BLE001 - this is a fork: nothing may return into the launcher's loop
        import traceback

        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _start(order: StartOrder, lock: int, reply: int) -> Supervisor | None:
    folder = Folder(order.folder, order.lock)
    try:
        folder.claim()
    except AlreadyClaimedError:
        _answer(reply, b"conflict")
        return None
    except OSError as failure:
        # No room on the disk for the record of its end: then it does not begin.
        _answer(reply, b"failed " + str(failure).encode())
        return None
    finally:
        os.close(lock)
    supervisor = Supervisor(folder, order)
    try:
        supervisor.start()
    except OSError as failure:
        _answer(reply, b"failed " + str(failure).encode())
        return None
    _answer(reply, b"started")
    return supervisor


def _answer(reply: int, answer: bytes) -> None:
    # The kubelet may have gone; what it asked for is done all the same, and on the disk.
    with contextlib.suppress(OSError):
        os.write(reply, answer)


def _detach(errors: str) -> None:
    nothing = os.open("/dev/null", os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.close(nothing)
    log = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    os.dup2(log, 2)
    os.close(log)


def _protect() -> None:
    # Only root may ask for it.
    with contextlib.suppress(OSError):
        score = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
        os.write(score, b"-999")
        os.close(score)

"""The launcher: holds the supervisor's code in memory and forks a supervisor for every container that is started.

It takes requests from the agent at its standard input and ends with it. Supervisors are not its concern once they are
forked: they outlive it. Until a supervisor has claimed its container it shares the launcher's lock, so that the next
agent can wait until no start is on its way any more.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
from typing import Any

from .folder import AlreadyClaimedError, Folder
from .supervise import Supervisor

__all__ = ["main"]

_MESSAGE_BYTES = 64 * 1024


def main() -> None:
    """Serve the agent until it goes. Standard input is its socket; the first argument is the lock's descriptor."""
    lock = int(sys.argv[1])
    os.set_inheritable(lock, False)
    os.umask(0o077)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    # Supervisors are nobody's children to wait for.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    agent = socket.socket(fileno=os.dup(0))
    # What is here now is shared by every fork for as long as nobody collects or counts over it.
    gc.disable()
    gc.freeze()
    while True:
        data, fds, _, _ = socket.recv_fds(agent, _MESSAGE_BYTES, 1, socket.MSG_CMSG_CLOEXEC)
        if not data:
            return
        if os.fork() == 0:
            agent.close()
            _supervise(json.loads(data), lock, socket.socket(fileno=fds[0]))
        os.close(fds[0])


def _supervise(request: dict[str, Any], lock: int, reply: socket.socket) -> None:
    try:
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _detach(os.path.join(request["folder"], "supervisor.log"))
        _protect()
        folder = Folder(request["folder"], request["lock"])
        supervisor = _start(folder, lock, reply)
        reply.close()
        if supervisor is not None:
            supervisor.run()
    except BaseException:  # noqa: BLE001 - this is a fork: nothing may return into the launcher's loop
        import traceback

        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _start(folder: Folder, lock: int, reply: socket.socket) -> Supervisor | None:
    try:
        folder.claim()
    except AlreadyClaimedError:
        _answer(reply, {"conflict": True})
        return None
    finally:
        os.close(lock)
    supervisor = Supervisor(folder, folder.launch())
    try:
        supervisor.start()
    except OSError as failure:
        _answer(reply, {"error": str(failure)})
        return None
    _answer(reply, {"started": True})
    return supervisor


def _answer(reply: socket.socket, content: dict[str, Any]) -> None:
    try:
        reply.send(json.dumps(content).encode(), socket.MSG_NOSIGNAL)
    except OSError:
        # The agent has gone; what it asked for is done all the same, and on the disk.
        return


def _detach(errors: str) -> None:
    nothing = os.open("/dev/null", os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.close(nothing)
    log = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    os.dup2(log, 2)
    os.close(log)


def _protect() -> None:
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:
            score.write("-999")
    except OSError:
        # Only root may ask for it.
        return

"""A fork server: components start at once, since they are forked from a process that has imported everything already.

`ForkServer.open` forks the server, a process with one thread and no event loop. It forks a component on request, relays
what components report and how they end, and forwards messages to them. So modules are imported once, their memory is
shared, and nothing is ever forked out of a running event loop.

No component outlives the server, and the server does not outlive its supervisor: when the socket between them closes it
stops the components, with a deadline. What to start, and when to restart it, is left to the supervisor.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import selectors
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from podlife.daemons.event_loop import hold_back_signals
from podlife.kubelet.runtimes.process.supervisor.kernel import die_with_parent

Message = dict[str, Any]
# A component: takes its configuration and the link to its supervisor, and runs until it ends.
ComponentMain = Callable[[Message, "SupervisorLink"], None]
# Calls a function, and turns what it raises into SystemExit.
Guard = Callable[[Callable[[], None]], None]

_MOST_BYTES = 128 * 1024
# Short, because a component that is killed resumes where it was.
_STOP_SECONDS = 3.0


class SupervisorLink:
    """A component's link to its supervisor."""

    def __init__(self, link: socket.socket) -> None:
        self.socket = link

    def send(self, message: Message) -> None:
        """Ignores that the supervisor is gone: the fork server is about to stop the component."""
        with contextlib.suppress(OSError):
            self.socket.send(json.dumps(message).encode())


class ForkServer:
    """The supervisor's side. Messages from the server are `{"name": …}` with one of `pid`, `report` or `ended`."""

    def __init__(self, line: socket.socket, pid: int) -> None:
        self._line = line
        self.pid = pid
        # Messages beyond the socket's buffer, as when a hundred nodes are started: the server forks one by one.
        self._waiting: deque[bytes] = deque()

    @classmethod
    def open(
        cls, components: Mapping[str, ComponentMain], environment: Mapping[str, str], guard: Guard
    ) -> ForkServer:
        """Fork the server, before there is an event loop or a second thread. Components run with `environment`, each
        within `guard`."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # Objects loaded so far stay: garbage collection in a component would only copy shared pages.
        gc.collect()
        gc.freeze()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            ours.close()
            _serve(_Server(theirs, components, guard), environment)
        theirs.close()
        ours.setblocking(False)
        return cls(ours, pid)

    def start(self, name: str, kind: str, config: Message, log: Path) -> None:
        self._send({"start": name, "kind": kind, "config": config, "log": str(log)})

    def signal(self, name: str, number: int) -> None:
        """Ignored if the component has ended; never reaches another process."""
        self._send({"signal": name, "number": number})

    def send(self, name: str, message: Message) -> None:
        self._send({"send": name, "message": message})

    async def run(self, receive: Callable[[Message], None]) -> None:
        """Run until the server ends, which is a failure."""
        loop = asyncio.get_running_loop()
        while data := await loop.sock_recv(self._line, _MOST_BYTES):
            receive(json.loads(data))

    async def close(self, *, seconds: float = _STOP_SECONDS + 2.0) -> None:
        """Stop the components that are still running."""
        asyncio.get_running_loop().remove_writer(self._line.fileno())
        self._line.close()
        deadline = time.monotonic() + seconds
        while not self._has_ended():
            if time.monotonic() > deadline:
                os.kill(self.pid, signal.SIGKILL)
            await asyncio.sleep(0.01)

    def _has_ended(self) -> bool:
        return os.waitpid(self.pid, os.WNOHANG)[0] != 0

    def _send(self, message: Message) -> None:
        self._waiting.append(json.dumps(message).encode())
        if len(self._waiting) == 1:
            self._flush()

    def _flush(self) -> None:
        """Never blocks: the server may be blocked until this process reads."""
        event_loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                self._line.send(self._waiting[0])
                self._waiting.popleft()
        except BlockingIOError:
            event_loop.add_writer(self._line.fileno(), self._flush)
            return
        except OSError:
            # `run` notices that the server is gone.
            self._waiting.clear()
        event_loop.remove_writer(self._line.fileno())


def _serve(server: _Server, environment: Mapping[str, str]) -> NoReturn:
    code = 1
    try:
        # Own session: Ctrl-C goes to the supervisor only, which stops everything in order.
        os.setsid()
        _set_process_name("forkserver")
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        os.environ.clear()
        os.environ.update(environment)
        server.run()
        code = 0
    finally:
        os._exit(code)


@dataclass(slots=True)
class _Child:
    name: str
    pid: int
    pidfd: int
    line: socket.socket


class _Server:
    def __init__(self, line: socket.socket, components: Mapping[str, ComponentMain], guard: Guard) -> None:
        self._line = line
        self._components = components
        self._guard = guard
        self._selector = selectors.DefaultSelector()
        self._children: dict[str, _Child] = {}

    def run(self) -> None:
        self._selector.register(self._line, selectors.EVENT_READ, self._handle_request)
        try:
            while True:
                self._step(None)
        except ConnectionError:
            self._stop_all()

    def _step(self, seconds: float | None) -> None:
        for key, _ in self._selector.select(seconds):
            key.data()

    def _stop_all(self) -> None:
        self._selector.unregister(self._line)
        for number, seconds in ((signal.SIGTERM, _STOP_SECONDS), (signal.SIGKILL, 1.0)):
            for child in self._children.values():
                signal.pidfd_send_signal(child.pidfd, number)
                # A process stopped by SIGSTOP does not handle other signals.
                signal.pidfd_send_signal(child.pidfd, signal.SIGCONT)
            deadline = time.monotonic() + seconds
            while self._children and (left := deadline - time.monotonic()) > 0:
                self._step(left)

    def _handle_request(self) -> None:
        data = self._line.recv(_MOST_BYTES)
        if not data:
            raise ConnectionResetError
        message = json.loads(data)
        if "start" in message:
            self._start(message)
            return
        child = self._children.get(message.get("signal") or message.get("send") or "")
        if child is None:
            return
        if "number" in message:
            # Not reaped yet, so the PID has not been reused.
            signal.pidfd_send_signal(child.pidfd, message["number"])
        else:
            with contextlib.suppress(OSError):
                child.line.send(json.dumps(message["message"]).encode())

    def _start(self, message: Message) -> None:
        name = message["start"]
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        server = os.getpid()
        # Before the fork: the next request may send a signal, and one that arrives before the component handles signals
        # would kill it during start.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        hold_back_signals()
        pid = os.fork()
        if pid == 0:
            component = self._components[message["kind"]]
            _run_component(
                lambda link: self._run(component, message["config"], link), message, theirs, server
            )
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        theirs.close()
        child = _Child(name, pid, os.pidfd_open(pid), ours)
        self._children[name] = child
        self._selector.register(child.pidfd, selectors.EVENT_READ, lambda: self._reap(child))
        self._selector.register(child.line, selectors.EVENT_READ, lambda: self._relay(child))
        self._report({"name": name, "pid": pid})

    def _run(self, component: ComponentMain, config: Message, link: SupervisorLink) -> int:
        """The exit code of a component."""

        def reported() -> None:
            try:
                component(config, link)
            except Exception as error:
                link.send({"failed": " ".join(str(error).split()) or type(error).__name__})
                raise

        try:
            self._guard(reported)
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else 1
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
        return 0

    def _relay(self, child: _Child) -> bool:
        try:
            data = child.line.recv(_MOST_BYTES, socket.MSG_DONTWAIT)
        except OSError:
            return False
        if data:
            self._report({"name": child.name, "pid": child.pid, "report": json.loads(data)})
        return bool(data)

    def _reap(self, child: _Child) -> None:
        # Relay its last messages before its end.
        while self._relay(child):
            pass
        _, status = os.waitpid(child.pid, 0)
        for each in (child.pidfd, child.line):
            self._selector.unregister(each)
        os.close(child.pidfd)
        child.line.close()
        if self._children.get(child.name) is child:
            del self._children[child.name]
        self._report({"name": child.name, "pid": child.pid, "ended": os.waitstatus_to_exitcode(status)})

    def _report(self, message: Message) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionError):
            self._line.send(json.dumps(message).encode())


def _run_component(
    run: Callable[[SupervisorLink], int], message: Message, line: socket.socket, server: int
) -> NoReturn:
    """Run one component in a forked process; never returns into the server's code."""
    code = 1
    try:
        os.setsid()
        die_with_parent(server)
        _set_process_name(message["start"])
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        _keep_only(line.fileno(), Path(message["log"]))
        code = run(SupervisorLink(line))
    finally:
        os._exit(code)


def _set_process_name(name: str) -> None:
    """As `top` and `ps -o comm` show it: all components have the same command line."""
    with contextlib.suppress(OSError):
        Path("/proc/self/comm").write_text(name[:15], encoding="utf-8")


def _keep_only(descriptor: int, log: Path) -> None:
    """Keep the log and the link open; other descriptors belong to the server and to other components."""
    null = os.open(os.devnull, os.O_RDONLY)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(null, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    highest = max(int(each.name) for each in Path("/proc/self/fd").iterdir())
    os.closerange(3, descriptor)
    os.closerange(descriptor + 1, highest + 1)

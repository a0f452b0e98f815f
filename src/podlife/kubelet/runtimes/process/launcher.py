"""The kubelet's side of the launcher process: starts it with the first container, and again if it dies."""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
import subprocess
import sys
from pathlib import Path

import msgspec

from podlife.kubelet.runtime import RuntimeUnavailableError, StartContainerError
from podlife.kubelet.runtimes.preconditions import started_before

_BOOT = "import sys; sys.path.insert(0, sys.argv.pop()); from supervisor.launcher import main; main()"
_CODE = str(Path(__file__).parent)
_MAX_STARTING = 16
_START_SECONDS = 60.0


class Launcher:
    def __init__(self, lock_path: Path) -> None:
        self._lock_path = lock_path
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        # Further requests would only queue at the launcher's socket.
        self._slots = asyncio.Semaphore(_MAX_STARTING)

    async def wait_for_pending_starts(self, *, seconds: float = 10.0) -> None:
        """Wait until every start requested by an earlier kubelet has completed."""
        fd = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            async with asyncio.timeout(seconds):
                while not _is_free(fd):  # noqa: ASYNC110 - another process's lock has no event
                    await asyncio.sleep(0.005)
        except TimeoutError:
            raise RuntimeUnavailableError(
                f"the launcher of an earlier kubelet still holds {self._lock_path}"
            ) from None
        finally:
            os.close(fd)

    async def start(self, name: str, folder: Path, lock: Path) -> None:
        async with self._slots:
            try:
                reply = await self._request_start(name, folder, lock)
                if not reply and not (folder / "claimed").exists():
                    # The launcher was killed before it handled the request, so it is safe to retry.
                    reply = await self._request_start(name, folder, lock)
            except OSError as failure:
                raise RuntimeUnavailableError(
                    f"container {name!r} cannot be started now: {failure.strerror or failure}"
                ) from failure
        if not reply:
            raise RuntimeUnavailableError(f"the supervisor of container {name!r} was killed while it started")
        if reply == "conflict":
            raise started_before(name)
        if reply != "started":
            raise StartContainerError(f"cannot start container {name!r}: {reply.removeprefix('failed ')}")

    async def close(self) -> None:
        """Stop the launcher. Containers keep running."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._process is not None:
            process, self._process = self._process, None
            await asyncio.to_thread(process.wait)

    async def _request_start(self, name: str, folder: Path, lock: Path) -> str:
        """The supervisor's response; empty if the supervisor or the launcher died before responding."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours:
            ours.setblocking(False)
            with theirs:
                self._send(_encode_request(folder, lock), theirs.fileno())
            try:
                async with asyncio.timeout(_START_SECONDS):
                    data = await asyncio.get_running_loop().sock_recv(ours, 64 * 1024)
            except ConnectionError:
                return ""
            except TimeoutError:
                raise RuntimeUnavailableError(
                    f"the supervisor of container {name!r} did not report whether it started"
                ) from None
        return data.decode(errors="replace")

    def _send(self, request: bytes, reply_fd: int) -> None:
        for attempt in (1, 2):
            try:
                socket.send_fds(self._running(), [request], [reply_fd])
            except ConnectionError:
                # The launcher was killed before it received the request, so it is safe to retry.
                self._discard()
                if attempt == 2:
                    raise RuntimeUnavailableError("the container launcher keeps exiting") from None
            else:
                return

    def _running(self) -> socket.socket:
        if self._process is not None and self._process.poll() is not None:
            self._discard()
        if self._socket is None:
            self._socket = self._spawn()
        return self._socket

    def _discard(self) -> None:
        if self._socket is not None:
            self._socket.close()
        if self._process is not None:
            self._process.wait()
        self._socket = self._process = None

    def _spawn(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        lock = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_SH)
            self._process = subprocess.Popen(  # noqa: S603 - our own program, by the interpreter that runs us
                [sys.executable, "-I", "-S", "-X", "utf8", "-c", _BOOT, str(lock), _CODE],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={"PATH": os.defpath},
                cwd="/",
                pass_fds=(lock,),
                start_new_session=True,
            )
        finally:
            os.close(lock)
            theirs.close()
        return ours


def _encode_request(folder: Path, lock: Path) -> bytes:
    """The fields of `StartRequest` in order, so that a supervisor need not read config.json."""
    launch = msgspec.json.decode((folder / "config.json").read_bytes())["launch"]
    log = launch["log"] or {"path": "", "max_bytes": 0, "max_files": 0}
    of_log = (log["path"], log["max_bytes"], log["max_files"])
    # A container that an older kubelet created has no entry for its input.
    streams = (int(launch["tty"]), int(launch.get("stdin", False)))
    rest = (*streams, launch["stop_signal"], launch["shutdown_grace_seconds"])
    return os.fsencode("\0".join(map(str, (folder, lock, *of_log, *rest))))


def _is_free(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

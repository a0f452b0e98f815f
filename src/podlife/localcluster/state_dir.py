"""The data folder of `podlife up`: whose it is at this moment, and where everything in it lies.

    DIR/            what an API server keeps (store.db, pki/, admin.kubeconfig …)
    DIR/nodes/NAME  a node: its kubeconfig, pods, volumes and logs of containers
    DIR/logs        what each part has logged
    DIR/audit       the audit log of the API server
    DIR/up.json     which `podlife up` has it, for `down` and `status`
    DIR/up.sock     where that one takes orders

The lock on it ends with the process that holds it, and with the last of its parts. A process is told from another with
its number by the moment it started, so that `down` never signals a stranger.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shlex
import shutil
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from podlife import __version__
from podlife.errors import ConfigError
from podlife.pki import write_private

__all__ = [
    "Holder",
    "UpFolder",
    "age_seconds",
    "choose_folder",
    "default_folder",
    "running_folders",
    "started_at",
]

_LOCK = "up.lock"
# Of what `up` itself keeps; the store has a number of its own.
FORMAT = 1
# How long the parts of an `up` that was killed may take to end.
_LEFTOVER_SECONDS = 15.0
_MOST_LOG_BYTES = 10 * 1024 * 1024


def default_folder() -> Path:
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(home) / "podlife"


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that has, or had, the folder. `pods` says, for each node, how to end the pods on it: the work of a
    `down` after this process was killed. A process that ended in order has number 0."""

    pid: int
    started: int
    url: str = ""
    version: str = __version__
    format: int = FORMAT
    pods: tuple[dict[str, Any], ...] = ()

    @property
    def is_alive(self) -> bool:
        return self.started != 0 and started_at(self.pid) == self.started


class UpFolder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.logs = path / "logs"
        self.nodes = path / "nodes"
        self.audit_log = path / "audit" / "audit.log"
        self.socket = path / "up.sock"
        self.kubeconfig = path / "admin.kubeconfig"
        self.controllers_kubeconfig = path / "controllers.kubeconfig"
        self._state = path / "up.json"
        self._lock: int | None = None

    def log(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    def node(self, name: str) -> Path:
        return self.nodes / name

    def claim(self) -> None:
        """Take it, make what is missing; raises ConfigError when it cannot be used, or another has it."""
        from podlife.apiserver.storage.data_dir import make_private

        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            make_private(self.path)
            for each in (self.logs, self.nodes):
                each.mkdir(mode=0o700, exist_ok=True)
            lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            if not os.access(self.path, os.W_OK):
                raise PermissionError(13, "Permission denied")
        except (FileExistsError, NotADirectoryError):
            raise ConfigError(
                f"the data folder {self.path} cannot be used: it is a file; name another with --data"
            ) from None
        except OSError as error:
            raise ConfigError(
                f"the data folder {self.path} cannot be used: {error.strerror}; name another with --data"
            ) from None
        if not self._locked(lock):
            os.close(lock)
            holder = self.holder()
            who = f"process {holder.pid}" if holder is not None and holder.is_alive else "another process"
            raise ConfigError(
                f"the data folder {self.path} is in use by `podlife up`, {who}: `podlife down --data {self.path}` "
                "ends it, or name another with --data"
            )
        self._lock = lock
        self._check_format()

    def trim_logs(self, most_bytes: int = _MOST_LOG_BYTES) -> None:
        """What is too long becomes the older file of its name, in place of the one before. Its writer goes on."""
        for log in self.logs.glob("*.log"):
            if log.stat().st_size > most_bytes:
                # Its writers have it open, for appending: so it is emptied and not renamed.
                shutil.copyfile(log, log.with_suffix(".log.1"))
                log.with_suffix(".log.1").chmod(0o600)
                os.truncate(log, 0)

    def _locked(self, lock: int) -> bool:
        """One that was killed leaves parts that are about to end: those are waited for."""
        deadline = time.monotonic() + _LEFTOVER_SECONDS
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                holder = self.holder()
                if (holder is not None and holder.is_alive) or time.monotonic() > deadline:
                    return False
                time.sleep(0.05)
            else:
                return True

    def _check_format(self) -> None:
        holder = self.holder()
        if holder is not None and holder.format != FORMAT:
            raise ConfigError(
                f"the data folder {self.path} is of podlife {holder.version}, which keeps it in another way: use that "
                "version, or name another folder with --data"
            )

    def sign(self, url: str, pods: tuple[dict[str, Any], ...] = ()) -> None:
        """Tell others who has it."""
        self._write(Holder(os.getpid(), started_at(os.getpid()), url, pods=pods))

    def unsign(self) -> None:
        holder = self.holder()
        if holder is not None and holder.pid == os.getpid():
            self.forget(holder)

    def forget(self, holder: Holder) -> None:
        """Nothing is left of it; what is known of the format stays. Only for who has claimed the folder."""
        self._write(Holder(0, 0, holder.url))

    def _write(self, holder: Holder) -> None:
        write_private(self._state, json.dumps(asdict(holder)).encode())

    def holder(self) -> Holder | None:
        """Who signed last; nobody where nobody did, or it cannot be read."""
        try:
            known = json.loads(self._state.read_text(encoding="utf-8"))
            return Holder(**known | {"pods": tuple(known.get("pods", ()))})
        except (OSError, ValueError, TypeError):
            return None


def running_folders() -> list[UpFolder]:
    """Of every `podlife up` that this user runs now, found by the locks that their processes have open: there is no
    list that could be out of date."""
    found: set[Path] = set()
    for descriptors in Path("/proc").glob("[0-9]*/fd"):
        # Another user's, or one that has ended meanwhile.
        with contextlib.suppress(OSError):
            for each in list(descriptors.iterdir()):
                with contextlib.suppress(FileNotFoundError):
                    if (target := each.readlink()).name == _LOCK:
                        found.add(target.parent)
    folders = [UpFolder(path) for path in sorted(found)]
    return [each for each in folders if (holder := each.holder()) is not None and holder.is_alive]


def choose_folder(data: Path | None) -> UpFolder:
    """Which `podlife up` a command is about: the one that is named, the one that kubectl would use (even if it was
    killed), or the one of the default folder. Raises ConfigError where that could be the wrong one."""
    if data is not None:
        return UpFolder(data)
    default = UpFolder(default_folder())
    of_kubectl = Path(os.environ.get("KUBECONFIG", "").partition(os.pathsep)[0])
    named = UpFolder(of_kubectl.parent.resolve())
    if of_kubectl.name == named.kubeconfig.name and named.holder() is not None:
        return named
    running = {each.path: each for each in running_folders()}
    others = running.keys() - {default.path.resolve()}
    if not others:
        return default
    if len(others) < len(running):
        raise ConfigError(f"several clusters run here; choose one with {_flags_of(running)}")
    raise ConfigError(f"no `podlife up` runs on {default.path}; choose another with {_flags_of(others)}")


def _flags_of(paths: Iterable[Path]) -> str:
    return " or ".join(f"--data {shlex.quote(str(each))}" for each in sorted(paths))


def age_seconds() -> float:
    """For how long this process has been there, from its very first moment."""
    uptime = float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
    return uptime - started_at(os.getpid()) / os.sysconf("SC_CLK_TCK")


def started_at(pid: int) -> int:
    """When a process started, in the kernel's ticks since the machine did; 0 where there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    # The name may hold anything, spaces and parentheses too: the rest stands after its last one.
    fields = stat.rpartition(")")[2].split()
    return 0 if fields[0] in "ZX" else int(fields[19])

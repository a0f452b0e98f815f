"""The state directory of a local cluster: which process holds it, and where everything in it is.

    DIR/            what an API server keeps (store.db, pki/, admin.kubeconfig …)
    DIR/nodes/NAME  a node: its kubeconfig, pods, volumes and logs of containers
    DIR/logs        the log of each component
    DIR/audit       the audit log of the API server
    DIR/up.json     which `podlife up` holds it, for `down` and `status`
    DIR/up.sock     its control socket
    DIR/ui.token    the token in the address of its page

The lock on it ends with the process that holds it and the last of its components. A process is identified by its PID
and its start time, so that `down` never signals another process that was given the same PID.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import secrets
import shlex
import shutil
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from podlife import __version__
from podlife.daemons.xdg import default_data_dir
from podlife.errors import ConfigError
from podlife.pki import write_private

_LOCK = "up.lock"
_TOKEN = re.compile(r"[\w-]{32}", re.ASCII)
# Format of the files of `podlife up` itself; the store has its own version.
FORMAT = 1
# Maximum wait for the components of a killed `podlife up` to end.
_LEFTOVER_SECONDS = 15.0
_MOST_LOG_BYTES = 10 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that holds, or held, the directory. `pods` configures the pod shutdown of each node, for a `down` after
    this process was killed. The PID is 0 after a clean exit."""

    pid: int
    started: int
    url: str = ""
    version: str = __version__
    format: int = FORMAT
    pods: tuple[dict[str, Any], ...] = ()

    @property
    def is_alive(self) -> bool:
        return self.started != 0 and started_at(self.pid) == self.started


class StateDir:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.logs = path / "logs"
        self.nodes = path / "nodes"
        self.volumes = path / "volumes"
        self.audit_log = path / "audit" / "audit.log"
        self.socket = path / "up.sock"
        self.kubeconfig = path / "admin.kubeconfig"
        self.controllers_kubeconfig = path / "controllers.kubeconfig"
        self.authority_pem = path / "pki" / "ca.pem"
        self._state = path / "up.json"
        self._lock: int | None = None

    def log(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    def node(self, name: str) -> Path:
        return self.nodes / name

    def page_token(self) -> str:
        """The token of the page: of the last run, or a new one."""
        file = self.path / "ui.token"
        with contextlib.suppress(OSError, UnicodeDecodeError):
            if _TOKEN.fullmatch(token := file.read_text(encoding="ascii")):
                return token
        token = secrets.token_urlsafe(24)
        with contextlib.suppress(OSError):
            write_private(file, token.encode())
        return token

    def claim(self) -> None:
        """Lock it and create missing folders. Raises ConfigError if it is unusable or held by another process."""
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
        """Move the content of long logs to NAME.log.1, replacing the one before. Writers continue."""
        for log in self.logs.glob("*.log"):
            if log.stat().st_size > most_bytes:
                # Truncated, not renamed: its writers have it open for appending.
                shutil.copyfile(log, log.with_suffix(".log.1"))
                log.with_suffix(".log.1").chmod(0o600)
                os.truncate(log, 0)

    def _locked(self, lock: int) -> bool:
        """Take the lock, waiting for components of a killed `podlife up` to end."""
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
                f"data folder {self.path} was written by podlife {holder.version} in another format: use that "
                "version, or name another folder with --data"
            )

    def record_holder(self, url: str, pods: tuple[dict[str, Any], ...] = ()) -> None:
        """Record this process as the holder."""
        self._write(Holder(os.getpid(), started_at(os.getpid()), url, pods=pods))

    def clear_holder(self) -> None:
        holder = self.holder()
        if holder is not None and holder.pid == os.getpid():
            self.forget(holder)

    def forget(self, holder: Holder) -> None:
        """Record that nothing is left of the holder; the format stays. Requires the claim."""
        self._write(Holder(0, 0, holder.url))

    def _write(self, holder: Holder) -> None:
        write_private(self._state, json.dumps(asdict(holder)).encode())

    def holder(self) -> Holder | None:
        """The last holder; None if there was none or the file cannot be read."""
        try:
            known = json.loads(self._state.read_text(encoding="utf-8"))
            return Holder(**known | {"pods": tuple(known.get("pods", ()))})
        except (OSError, ValueError, TypeError):
            return None


def running_state_dirs() -> list[StateDir]:
    """The directories of every `podlife up` of this user, found by the lock files that processes have open, not by a
    list that could be out of date."""
    found: set[Path] = set()
    for descriptors in Path("/proc").glob("[0-9]*/fd"):
        # Another user's process, or one that has ended meanwhile.
        with contextlib.suppress(OSError):
            for each in list(descriptors.iterdir()):
                with contextlib.suppress(FileNotFoundError):
                    if (target := each.readlink()).name == _LOCK:
                        found.add(target.parent)
    directories = [StateDir(path) for path in sorted(found)]
    return [each for each in directories if (holder := each.holder()) is not None and holder.is_alive]


def choose_state_dir(data: Path | None) -> StateDir:
    """The directory for a command: the named one, the one of kubectl's cluster (even if killed), or the default.
    Raises ConfigError if that is ambiguous."""
    if data is not None:
        return StateDir(data)
    default = StateDir(default_data_dir())
    of_kubectl = Path(os.environ.get("KUBECONFIG", "").partition(os.pathsep)[0])
    named = StateDir(of_kubectl.parent.resolve())
    if of_kubectl.name == named.kubeconfig.name and named.holder() is not None:
        return named
    running = {each.path: each for each in running_state_dirs()}
    others = running.keys() - {default.path.resolve()}
    if not others:
        return default
    if len(others) < len(running):
        raise ConfigError(f"several clusters run here; choose one with {_flags_of(running)}")
    raise ConfigError(f"no `podlife up` runs on {default.path}; choose another with {_flags_of(others)}")


def _flags_of(paths: Iterable[Path]) -> str:
    return " or ".join(f"--data {shlex.quote(str(each))}" for each in sorted(paths))


def age_seconds() -> float:
    """How long this process has been running."""
    uptime = float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
    return uptime - started_at(os.getpid()) / os.sysconf("SC_CLK_TCK")


def started_at(pid: int) -> int:
    """When a process started, in clock ticks since boot; 0 if there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    # The name may contain spaces and parentheses: the other fields follow the last parenthesis.
    fields = stat.rpartition(")")[2].split()
    return 0 if fields[0] in "ZX" else int(fields[19])

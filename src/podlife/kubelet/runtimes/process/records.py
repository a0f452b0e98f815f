"""The process runtime's state on disk, and how a container's state is read from it.

    agent.lock, starting.lock      held by the one active kubelet; held while starts are pending
    sandboxes/<id>.json            a sandbox, replaced atomically when it changes
    containers/<id>/               config.json, after a resize resources.json; then, written by the supervisor: claimed,
                                   started.json, exit.json
    locks/<id>                     held by the supervisor while it lives
    making/, leaving/              entries being created or removed; both are emptied when a kubelet starts

A folder appears and disappears by one rename. Only the owner has access (0700 and 0600). IDs are random, and names that
come from users are never part of a path.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from podlife.kubelet.runtime import ContainerConfig, ContainerState, Resources, SandboxConfig, SandboxState
from podlife.linux.removal import remove_tree

log = logging.getLogger(__name__)

T = TypeVar("T")


# Bounded by what a status can hold: a container may be able to write to its own records.
ExitCode = Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)]
Nanoseconds = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class ExitRecord(msgspec.Struct, frozen=True):
    exit_code: ExitCode
    reason: str
    started_at_ns: Nanoseconds
    finished_at_ns: Nanoseconds
    message: str = ""
    termination_message: str = ""


@dataclass(slots=True)
class SandboxRecord:
    id: str
    config: SandboxConfig
    created_at: datetime
    state: SandboxState = SandboxState.READY


@dataclass(slots=True)
class ContainerRecord:
    id: str
    sandbox_id: str
    config: ContainerConfig
    created_at: datetime
    log_path: str | None = None
    # The following is not stored in config.json; it is derived from the supervisor's files.
    state: ContainerState = ContainerState.CREATED
    started_at: datetime | None = None
    exit: ExitRecord | None = None
    is_starting: bool = False
    is_exit_reported: bool = False
    waiters: list[asyncio.Future[None]] = field(default_factory=list)


class _StoredContainer(msgspec.Struct):
    """What config.json stores of a record. No runtime state: the container may be able to write there."""

    id: str
    sandbox_id: str
    config: ContainerConfig
    created_at: datetime
    log_path: str | None


class _ContainerFile(msgspec.Struct):
    record: _StoredContainer


class _Cgroup(msgspec.Struct):
    path: str


class _Launch(msgspec.Struct):
    cgroups: list[_Cgroup]


class _LaunchFile(msgspec.Struct):
    launch: _Launch


class _Started(msgspec.Struct):
    started_at_ns: Nanoseconds


class Records:
    def __init__(self, root: Path) -> None:
        self._root = root
        self.sandboxes = root / "sandboxes"
        self.containers = root / "containers"
        self.locks = root / "locks"
        self._making = root / "making"
        self._leaving = root / "leaving"
        self.starting_lock = root / "starting.lock"

    def prepare(self) -> list[Path]:
        """Create the folders. Returns what a killed kubelet left half created or half removed; the caller removes it in
        the background, because a container may have created many files."""
        for folder in (self._root, self.sandboxes, self.containers, self.locks, self._making, self._leaving):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for lock in self.locks.iterdir():
            if not self.container(lock.name).exists():
                lock.unlink()
        return [entry for folder in (self._making, self._leaving) for entry in folder.iterdir()]

    def container(self, container_id: str) -> Path:
        return self.containers / container_id

    def lock(self, container_id: str) -> Path:
        return self.locks / container_id

    def load_sandboxes(self) -> list[SandboxRecord]:
        """All readable sandboxes. A file cut short by a machine crash is removed."""
        found: list[SandboxRecord] = []
        for path in self.sandboxes.glob("*.json"):
            try:
                found.append(msgspec.json.decode(path.read_bytes(), type=SandboxRecord))
            except ValueError as failure:
                log.warning("sandbox %s cannot be read and is forgotten: %s", path.stem, failure)
                path.unlink()
        return found

    def load_containers(self) -> list[ContainerRecord]:
        """All readable containers. An unreadable one is removed unless it still has a supervisor."""
        found: list[ContainerRecord] = []
        for folder in list(self.containers.iterdir()):
            try:
                found.append(self._load_container(folder))
            except (ValueError, FileNotFoundError) as failure:
                log.warning("container %s cannot be read: %s", folder.name, failure)
                if not self.has_supervisor(folder.name):
                    remove(folder)
        return found

    def save_sandbox(self, record: SandboxRecord) -> None:
        made = self._making / f"{record.id}.json"
        write_private(made, msgspec.json.encode(record))
        made.rename(self.sandboxes / made.name)

    def remove_sandbox(self, sandbox_id: str) -> None:
        (self.sandboxes / f"{sandbox_id}.json").unlink(missing_ok=True)

    def save_container(self, record: ContainerRecord, launch: dict[str, Any]) -> None:
        made = self._making / record.id
        try:
            self._make_container(made, record, launch)
        except OSError:
            remove(made)
            raise
        made.rename(self.container(record.id))

    def _make_container(self, made: Path, record: ContainerRecord, launch: dict[str, Any]) -> None:
        made.mkdir(mode=0o700)
        (made / "work").mkdir(mode=0o700)
        write_private(made / "termination-log", b"")
        stored = {name: getattr(record, name) for name in _StoredContainer.__struct_fields__}
        write_private(made / "config.json", msgspec.json.encode({"record": stored, "launch": launch}))

    def save_resources(self, container_id: str, resources: Resources) -> None:
        """Of a container that was resized while it is running."""
        made = self._making / f"{container_id}.resources"
        made.unlink(missing_ok=True)
        write_private(made, msgspec.json.encode(resources))
        made.rename(self.container(container_id) / "resources.json")

    def detach_container(self, container_id: str) -> Path:
        """Hide the container at once, also from the next kubelet. Returns the folder, which the caller removes."""
        leaving = self._leaving / container_id
        with contextlib.suppress(FileNotFoundError):
            self.container(container_id).rename(leaving)
        self.lock(container_id).unlink(missing_ok=True)
        return leaving

    def refresh(self, record: ContainerRecord) -> None:
        """Read the state again. A claimed container without supervisor and exit record becomes UNKNOWN."""
        folder = self.container(record.id)
        record.exit = _read(folder / "exit.json", ExitRecord)
        if record.exit is not None:
            record.state = ContainerState.EXITED
            record.started_at = from_nanoseconds(record.exit.started_at_ns)
        elif not (folder / "claimed").exists():
            record.state = ContainerState.CREATED
        elif self.has_supervisor(record.id):
            started = _read(folder / "started.json", _Started)
            record.started_at = from_nanoseconds(started.started_at_ns) if started else record.created_at
            record.state = ContainerState.RUNNING
        else:
            # The supervisor may have exited between the two checks.
            record.exit = _read(folder / "exit.json", ExitRecord)
            record.state = ContainerState.EXITED if record.exit else ContainerState.UNKNOWN

    def control_groups(self, container_id: str) -> list[Path]:
        """The cgroups its supervisor creates. Other paths are ignored: a container may edit the file, and members are
        killed."""
        stored = _read(self.container(container_id) / "config.json", _LaunchFile)
        paths = [Path(group.path) for group in stored.launch.cgroups] if stored else []
        return [path for path in paths if path.name == container_id]

    def has_supervisor(self, container_id: str) -> bool:
        try:
            # Read-only: closing a writable descriptor would look like the supervisor's exit to the watch.
            fd = os.open(self.lock(container_id), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(fd)
        return False

    def save_exit(self, record: ContainerRecord, ended: ExitRecord) -> None:
        """Write the exit record on behalf of a supervisor that was killed."""
        folder = self.container(record.id)
        made = folder / "exit.agent"
        made.unlink(missing_ok=True)
        write_private(made, msgspec.json.encode(ended), durable=True)
        made.rename(folder / "exit.json")
        _sync(folder)

    def _load_container(self, folder: Path) -> ContainerRecord:
        stored = msgspec.json.decode((folder / "config.json").read_bytes(), type=_ContainerFile).record
        if (resources := _read(folder / "resources.json", Resources)) is not None:
            stored.config = replace(stored.config, resources=resources)
        record = ContainerRecord(**msgspec.structs.asdict(stored))
        self.refresh(record)
        record.is_exit_reported = record.state is ContainerState.EXITED
        return record


def from_nanoseconds(nanoseconds: int) -> datetime:
    return datetime.fromtimestamp(nanoseconds / 1_000_000_000, UTC)


def write_private(path: Path, data: bytes, *, durable: bool = False) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(fd)
    except OSError:
        path.unlink(missing_ok=True)
        raise


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _read(path: Path, kind: type[T]) -> T | None:
    """Decode a record; None if it is missing or damaged, so that damage never hides an exit."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except ValueError as failure:
        log.warning("%s is damaged and ignored: %s", path, failure)
        return None


def remove(*paths: Path) -> None:
    """Remove files or folder trees. Blocking."""
    for path in paths:
        try:
            remove_tree(path)
        except OSError as failure:
            # A mount or an immutable file: the next kubelet tries again.
            log.warning("%s could not be removed: %s", path, failure)

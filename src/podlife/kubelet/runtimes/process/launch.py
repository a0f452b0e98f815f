"""From a container's configuration to what its supervisor does: everything decided, nothing left to look up.

What this runtime cannot do is refused here, before anything exists, with a text that says what to change.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from podlife.kubelet.runtime import ContainerConfig, InvalidContainerError, Resources, SandboxConfig, User

from .cgroups import Cgroups

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_CAP_SYS_ADMIN = 21
_DEFAULT_TERMINATION_MESSAGE_PATH = "/dev/termination-log"
TERMINATION_LOG_VARIABLE = "PODLIFE_TERMINATION_LOG"
CONTAINER_ID_VARIABLE = "PODLIFE_CONTAINER_ID"


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """`root` is a folder for this runtime alone. Pods share the node's network, so `ips` are the node's."""

    root: Path
    ips: tuple[str, ...] = ("127.0.0.1",)
    log_max_bytes: int = 10 * 1024 * 1024
    log_max_files: int = 5
    # How long a container has when not the kubelet but the machine asks it to end.
    shutdown_grace_seconds: float = 10.0
    use_cgroups: bool = True


@dataclass(frozen=True, slots=True)
class LaunchContext:
    container_id: str
    folder: Path
    log_path: Path | None


def launch_of(
    sandbox: SandboxConfig,
    config: ContainerConfig,
    place: LaunchContext,
    settings: ProcessSettings,
    cgroups: Cgroups | None,
) -> dict[str, Any]:
    """What the supervisor reads. Raises `InvalidContainerError`."""
    log = {
        "path": str(place.log_path),
        "max_bytes": settings.log_max_bytes,
        "max_files": settings.log_max_files,
    }
    return {
        "argv": _argv(config),
        "env": _environment(sandbox, config, place),
        "cwd": _working_dir(config, place),
        "tty": config.tty,
        "log": log if place.log_path is not None else None,
        "user": _user(config.user),
        "owned": [str(place.folder / "work"), str(place.folder / "termination-log")],
        "no_new_privileges": not config.allow_privilege_escalation,
        "mounts": _mounts(config, place),
        "stop_signal": _stop_signal(config),
        "shutdown_grace_seconds": settings.shutdown_grace_seconds,
        "cgroups": cgroups.groups(place.container_id, config.resources) if cgroups else [],
        "rlimits_without_cgroups": _rlimits(config.resources),
    }


def _argv(config: ContainerConfig) -> list[str]:
    if not config.command or not config.command[0]:
        raise InvalidContainerError(
            f"container {config.name!r} has no command: this node runs commands of its own machine, not the image "
            f"{config.image!r}; set command (kubectl run NAME --image={config.image} --command -- PROGRAM), or use a "
            "node with --runtime containerd"
        )
    argv = [*config.command, *config.args]
    if any("\0" in word for word in argv):
        raise InvalidContainerError(f"command of container {config.name!r} holds a NUL character")
    return argv


def _environment(sandbox: SandboxConfig, config: ContainerConfig, place: LaunchContext) -> dict[str, str]:
    env = {"PATH": _PATH, "HOME": _home(config.user), "HOSTNAME": sandbox.hostname or sandbox.name}
    if config.tty:
        env["TERM"] = "xterm"
    for name, value in config.env:
        if not name or "=" in name or "\0" in name or "\0" in value:
            raise InvalidContainerError(
                f"environment variable {name!r} of container {config.name!r} cannot be set"
            )
        env[name] = value
    # Last, so that nobody else's survivors are taken for this container's.
    env[CONTAINER_ID_VARIABLE] = place.container_id
    env[TERMINATION_LOG_VARIABLE] = str(place.folder / "termination-log")
    return env


def _home(user: User | None) -> str:
    try:
        return pwd.getpwuid(os.getuid() if user is None else user.uid).pw_dir
    except KeyError:
        return "/"


def _working_dir(config: ContainerConfig, place: LaunchContext) -> str:
    if not config.working_dir:
        return str(place.folder / "work")
    if not config.working_dir.startswith("/") or "\0" in config.working_dir:
        raise InvalidContainerError(
            f"working directory {config.working_dir!r} of container {config.name!r} is not an absolute path"
        )
    return config.working_dir


def _user(user: User | None) -> dict[str, Any] | None:
    if user is None:
        return None
    gid = _group_of(user)
    if os.getuid() != 0:
        if (user.uid, gid) != (os.getuid(), os.getgid()) or user.supplemental_groups:
            raise InvalidContainerError(
                f"processes run as user {os.getuid()}, as the agent does: only an agent that is root can run "
                f"one as user {user.uid}"
            )
        return None
    return {"uid": user.uid, "gid": gid, "groups": list(user.supplemental_groups)}


def _group_of(user: User) -> int:
    if user.gid is not None:
        return user.gid
    try:
        return pwd.getpwuid(user.uid).pw_gid
    except KeyError:
        return 0


def _mounts(config: ContainerConfig, place: LaunchContext) -> list[dict[str, Any]]:
    if config.mounts and not can_mount():
        raise InvalidContainerError(
            f"container {config.name!r} mounts {config.mounts[0].container_path}: "
            "only an agent with the rights of root can mount: run it as root, or give values as environment variables"
        )
    for mount in config.mounts:
        target = PurePosixPath(mount.container_path)
        if not target.is_absolute() or ".." in target.parts or target == PurePosixPath("/"):
            raise InvalidContainerError(
                f"container {config.name!r} cannot mount at {mount.container_path!r}: it takes an absolute path"
            )
    shown = [
        {"source": mount.host_path, "target": mount.container_path, "readonly": mount.readonly}
        for mount in config.mounts
    ]
    message_path = config.termination_message_path
    if can_mount() and _can_be_shown(message_path):
        message = str(place.folder / "termination-log")
        shown.append({"source": message, "target": message_path, "readonly": False})
    return shown


def can_mount() -> bool:
    """Whether this process may make mounts: root may, unless it is root of a container."""
    status = Path("/proc/self/status").read_text()
    capabilities = next((line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")), "0")
    return bool(int(capabilities, 16) >> _CAP_SYS_ADMIN & 1)


def _can_be_shown(message_path: str) -> bool:
    if message_path == _DEFAULT_TERMINATION_MESSAGE_PATH:
        return Path(message_path).is_file()
    return message_path.startswith("/") and ".." not in PurePosixPath(message_path).parts


def make_default_termination_message_path() -> None:
    """An empty file to mount upon, so that not every container needs a layer over /dev. Only root can, and needs it."""
    if not can_mount():
        return
    with contextlib.suppress(OSError):
        os.close(os.open(_DEFAULT_TERMINATION_MESSAGE_PATH, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))


def _stop_signal(config: ContainerConfig) -> int:
    try:
        return int(signal.Signals[config.stop_signal])
    except KeyError:
        raise InvalidContainerError(
            f"stop signal {config.stop_signal!r} of container {config.name!r} is unknown"
        ) from None


def _rlimits(resources: Resources) -> dict[str, int]:
    if resources.memory_limit_bytes is None:
        return {}
    # Not the address space: many programs reserve far more of it than they ever use.
    return {"RLIMIT_DATA": resources.memory_limit_bytes}

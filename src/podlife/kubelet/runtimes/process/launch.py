"""Translates a container's configuration into instructions for its supervisor, which looks nothing up itself.

Configurations this runtime does not support are rejected here, before anything is created; errors say what to change.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from podlife.client.config import SERVICE_ACCOUNT, SERVICE_ACCOUNT_VARIABLE
from podlife.kubelet.runtime import (
    ContainerConfig,
    InvalidContainerError,
    Mount,
    Resources,
    SandboxConfig,
    User,
)

from .cgroups import Cgroups

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_CAP_SYS_ADMIN = 21
_DEFAULT_TERMINATION_MESSAGE_PATH = "/dev/termination-log"
TERMINATION_LOG_VARIABLE = "PODLIFE_TERMINATION_LOG"
CONTAINER_ID_VARIABLE = "PODLIFE_CONTAINER_ID"


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """`root` is used by this runtime alone. Pods share the node's network, so `ips` are the node's."""

    root: Path
    ips: tuple[str, ...] = ("127.0.0.1",)
    log_max_bytes: int = 10 * 1024 * 1024
    log_max_files: int = 5
    # Grace period when the machine shuts down, as opposed to a stop by the kubelet.
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
    context: LaunchContext,
    settings: ProcessSettings,
    cgroups: Cgroups | None,
) -> dict[str, Any]:
    """The instructions that the supervisor reads. Raises `InvalidContainerError`."""
    log = {
        "path": str(context.log_path),
        "max_bytes": settings.log_max_bytes,
        "max_files": settings.log_max_files,
    }
    return {
        "argv": _argv(config),
        "env": _environment(sandbox, config, context),
        "cwd": _working_dir(config, context),
        "tty": config.tty,
        "stdin": config.stdin,
        "log": log if context.log_path is not None else None,
        "user": _user(config.user),
        "owned": [str(context.folder / "work"), str(context.folder / "termination-log")],
        "no_new_privileges": not config.allow_privilege_escalation,
        "mounts": _mounts(config, context),
        "stop_signal": _stop_signal(config),
        "shutdown_grace_seconds": settings.shutdown_grace_seconds,
        "cgroups": cgroups.groups(context.container_id, config.resources) if cgroups else [],
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


def _environment(sandbox: SandboxConfig, config: ContainerConfig, context: LaunchContext) -> dict[str, str]:
    env = {"PATH": _PATH, "HOME": _home(config.user), "HOSTNAME": sandbox.hostname or sandbox.name}
    for name, value in config.env:
        if not name or "=" in name or "\0" in name or "\0" in value:
            raise InvalidContainerError(
                f"environment variable {name!r} of container {config.name!r} cannot be set"
            )
        env[name] = value
    # For an agent that cannot mount: every pod has this volume, most do not use it, and podlife's client finds it.
    if not can_mount() and (account := next(filter(_is_account, config.mounts), None)):
        env[SERVICE_ACCOUNT_VARIABLE] = account.host_path
    # Last, so that a user's variables cannot override the marker by which leftover processes are found.
    env[CONTAINER_ID_VARIABLE] = context.container_id
    env[TERMINATION_LOG_VARIABLE] = str(context.folder / "termination-log")
    return env


def _home(user: User | None) -> str:
    try:
        return pwd.getpwuid(os.getuid() if user is None else user.uid).pw_dir
    except KeyError:
        return "/"


def _working_dir(config: ContainerConfig, context: LaunchContext) -> str:
    if not config.working_dir:
        return str(context.folder / "work")
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


def _mounts(config: ContainerConfig, context: LaunchContext) -> list[dict[str, Any]]:
    wanted = config.mounts if can_mount() else [each for each in config.mounts if not _is_account(each)]
    if wanted and not can_mount():
        raise InvalidContainerError(
            f"container {config.name!r} mounts {wanted[0].container_path}: "
            "only an agent with the rights of root can mount: run it as root, or give values as environment variables"
        )
    for mount in config.mounts:
        target = PurePosixPath(mount.container_path)
        if not target.is_absolute() or ".." in target.parts or target == PurePosixPath("/"):
            raise InvalidContainerError(
                f"container {config.name!r} cannot mount at {mount.container_path!r}: it takes an absolute path"
            )
    mounts = [
        {"source": mount.host_path, "target": mount.container_path, "readonly": mount.readonly}
        for mount in wanted
    ]
    message_path = config.termination_message_path
    if can_mount() and _can_mount_message(message_path):
        message = str(context.folder / "termination-log")
        mounts.append({"source": message, "target": message_path, "readonly": False})
    return mounts


def _is_account(mount: Mount) -> bool:
    return mount.container_path == str(SERVICE_ACCOUNT)


def can_mount() -> bool:
    """Whether this process may mount: root usually may, but not root inside a container."""
    status = Path("/proc/self/status").read_text()
    capabilities = next((line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")), "0")
    return bool(int(capabilities, 16) >> _CAP_SYS_ADMIN & 1)


def _can_mount_message(message_path: str) -> bool:
    if message_path == _DEFAULT_TERMINATION_MESSAGE_PATH:
        return Path(message_path).is_file()
    return message_path.startswith("/") and ".." not in PurePosixPath(message_path).parts


def make_default_termination_message_path() -> None:
    """Create an empty file as mount point, so that containers need no overlay over /dev. Root only."""
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
    # Not the address space: many programs reserve far more of it than they use.
    return {"RLIMIT_DATA": resources.memory_limit_bytes}

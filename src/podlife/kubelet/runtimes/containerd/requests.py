"""Converts sandbox and container configurations to CRI requests.

CRI returns only a part of a configuration. The whole of it is therefore stored in an annotation of the container or
sandbox, from which a restarted kubelet restores it.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from podlife.kubelet.runtime import ContainerConfig, InvalidContainerError, Resources, SandboxConfig, User

from .client import ContainerdSettings
from .messages import message

RECORD_ANNOTATION = "podlife.dev/config"
SANDBOX_ID = "podlife.dev/sandbox"
_OWNER = "podlife.dev/agent"
POD_UID = "io.kubernetes.pod.uid"
_POD, _CONTAINER, _NODE = 0, 1, 2
_CPU_PERIOD_MICROSECONDS = 100_000
_MIN_QUOTA_MICROSECONDS = 1000
_MIN_SHARES, _MAX_SHARES = 2, 262_144
# Upstream's default masked and read-only paths.
_MASKED = (
    "/proc/asound",
    "/proc/acpi",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
)
_READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
# CRI has its own signal numbers, unlike the kernel's.
_NAMED_SIGNALS = (
    "ABRT ALRM BUS CHLD CLD CONT FPE HUP ILL INT IO IOT KILL PIPE POLL PROF PWR QUIT SEGV STKFLT STOP SYS TERM "
    "TRAP TSTP TTIN TTOU URG USR1 USR2 VTALRM WINCH XCPU XFSZ RTMIN"
)
_SIGNAL_NAMES = (
    *_NAMED_SIGNALS.split(),
    *(f"RTMIN+{step}" for step in range(1, 16)),
    *(f"RTMAX-{step}" for step in range(14, 0, -1)),
    "RTMAX",
)
_SIGNALS = {name: number for number, name in enumerate(_SIGNAL_NAMES, start=1)}


class ContainerRecord(msgspec.Struct, frozen=True):
    config: ContainerConfig
    sandbox_id: str
    pod_uid: str
    log_path: str | None = None
    termination_file: str = ""


def owner_of(settings: ContainerdSettings) -> str:
    """The kubelet that a pod belongs to, identified by its root folder."""
    return hashlib.sha256(str(settings.root.absolute()).encode()).hexdigest()[:16]


def selector(settings: ContainerdSettings, pod_uid: str | None = None) -> dict[str, str]:
    """Labels that select this kubelet's objects only, even if others share the daemon."""
    return {_OWNER: owner_of(settings)} | ({} if pod_uid is None else {POD_UID: pod_uid})


def sandbox_request(config: SandboxConfig, settings: ContainerdSettings) -> Any:
    namespaces = message("NamespaceOption")(
        network=_NODE if config.host_network else _POD, pid=_CONTAINER, ipc=_POD
    )
    return message("PodSandboxConfig")(
        metadata=message("PodSandboxMetadata")(
            name=config.name, uid=config.pod_uid, namespace=config.namespace, attempt=config.attempt
        ),
        # With host networking the pod has the node's hostname.
        hostname="" if config.host_network else config.hostname or config.name[:63],
        log_directory=config.log_directory or "",
        labels={**config.labels, **selector(settings, config.pod_uid)},
        annotations={**config.annotations, RECORD_ANNOTATION: msgspec.json.encode(config).decode()},
        linux=message("LinuxPodSandboxConfig")(
            cgroup_parent=settings.cgroup_parent,
            security_context=message("LinuxSandboxSecurityContext")(namespace_options=namespaces),
            sysctls=config.sysctls,
        ),
    )


def container_request(sandbox: SandboxConfig, record: ContainerRecord, settings: ContainerdSettings) -> Any:
    """Raises InvalidContainerError for values that CRI cannot represent."""
    config = record.config
    try:
        return message("ContainerConfig")(
            metadata=message("ContainerMetadata")(name=config.name, attempt=config.attempt),
            image=message("ImageSpec")(image=config.image, user_specified_image=config.image),
            command=config.command,
            args=config.args,
            working_dir=config.working_dir,
            envs=[message("KeyValue")(key=name, value=value.encode()) for name, value in config.env],
            mounts=_mounts(record),
            labels={**config.labels, **selector(settings, record.pod_uid), SANDBOX_ID: record.sandbox_id},
            annotations={**config.annotations, RECORD_ANNOTATION: msgspec.json.encode(record).decode()},
            log_path=config.log_path if record.log_path else "",
            stdin=config.stdin,
            stdin_once=config.stdin_once,
            tty=config.tty,
            linux=message("LinuxContainerConfig")(
                resources=linux_resources(config.resources), security_context=_security(sandbox, config)
            ),
            stop_signal=_signal(config),
        )
    except (ValueError, TypeError) as error:
        raise InvalidContainerError(f"container {config.name!r} cannot be asked for: {error}") from None


def _mounts(record: ContainerRecord) -> list[Any]:
    mounts = [
        message("Mount")(
            container_path=mount.container_path, host_path=mount.host_path, readonly=mount.readonly
        )
        for mount in record.config.mounts
    ]
    if record.termination_file:
        path = record.config.termination_message_path
        mounts.append(message("Mount")(container_path=path, host_path=record.termination_file))
    return mounts


def linux_resources(wanted: Resources) -> Any:
    # As upstream: a container that requests no CPU has the least of it while others need it.
    shares = (wanted.cpu_request_millis or wanted.cpu_limit_millis or 0) * 1024 // 1000
    resources = message("LinuxContainerResources")(cpu_shares=min(max(shares, _MIN_SHARES), _MAX_SHARES))
    if wanted.cpu_limit_millis is not None:
        resources.cpu_period = _CPU_PERIOD_MICROSECONDS
        quota = math.ceil(wanted.cpu_limit_millis * _CPU_PERIOD_MICROSECONDS / 1000)
        resources.cpu_quota = max(quota, _MIN_QUOTA_MICROSECONDS)
    if wanted.memory_limit_bytes is not None:
        resources.memory_limit_in_bytes = wanted.memory_limit_bytes
    if wanted.pids_limit is not None and Path("/sys/fs/cgroup/cgroup.controllers").exists():
        # CRI has no field for it. `unified` passes cgroup v2 settings through; v1 has no equivalent.
        resources.unified["pids.max"] = str(wanted.pids_limit)
    return resources


def reported_resources(raw: Any, known: Resources) -> Resources:
    """The resources of a container by its status; `known` are those that it was created with. What CRI does not
    represent, and every value if the daemon reports none, stays as it is known."""
    linux = raw.resources.linux
    wanted = linux_resources(known)
    fields = ("cpu_shares", "cpu_quota", "memory_limit_in_bytes")
    if not raw.HasField("resources") or all(getattr(linux, each) == getattr(wanted, each) for each in fields):
        return known
    return replace(
        known,
        cpu_request_millis=math.ceil(linux.cpu_shares * 1000 / 1024)
        if linux.cpu_shares > _MIN_SHARES
        else None,
        cpu_limit_millis=max(linux.cpu_quota, 0) * 1000 // (linux.cpu_period or _CPU_PERIOD_MICROSECONDS)
        or None,
        memory_limit_bytes=max(linux.memory_limit_in_bytes, 0) or None,
    )


def _security(sandbox: SandboxConfig, config: ContainerConfig) -> Any:
    network = _NODE if sandbox.host_network else _POD
    user = config.user
    return message("LinuxContainerSecurityContext")(
        namespace_options=message("NamespaceOption")(network=network, pid=_CONTAINER, ipc=_POD),
        no_new_privs=not config.allow_privilege_escalation,
        masked_paths=_MASKED,
        readonly_paths=_READ_ONLY,
        supplemental_groups=user.supplemental_groups if user else (),
        **_ids(user),
    )


def _ids(user: User | None) -> dict[str, Any]:
    if user is None:
        return {}
    ids = {"run_as_user": message("Int64Value")(value=user.uid)}
    if user.gid is not None:
        ids["run_as_group"] = message("Int64Value")(value=user.gid)
    return ids


def _signal(config: ContainerConfig) -> int:
    name = config.stop_signal.removeprefix("SIG")
    if name not in _SIGNALS:
        raise InvalidContainerError(
            f"container {config.name!r} has the unknown stop signal {config.stop_signal!r}"
        )
    # For SIGTERM, the default, the image's STOPSIGNAL applies, as with daemons that ignore the field.
    return 0 if name == "TERM" else _SIGNALS[name]

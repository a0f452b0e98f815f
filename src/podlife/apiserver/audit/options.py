"""Audit log of a server, created from its settings."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from podlife.apiserver.audit.context import Auditor
from podlife.apiserver.audit.log_backend import LogBackend
from podlife.apiserver.audit.log_file import AuditLogFile
from podlife.apiserver.audit.policy import DEFAULT_POLICY, AuditPolicy, load_policy, read_policy
from podlife.apiserver.authn import ANONYMOUS
from podlife.apiserver.settings import ApiServerSettings
from podlife.clock import Clock

_STDOUT = "-"


@dataclass(frozen=True, slots=True)
class RunningAudit:
    auditor: Auditor
    backend: LogBackend
    file: AuditLogFile | None

    async def close(self) -> None:
        await self.backend.close()
        if self.file is not None:
            self.file.close()


def policy_of(settings: ApiServerSettings) -> AuditPolicy:
    """The configured policy; raises ConfigError."""
    if settings.audit_policy_file:
        return load_policy(Path(settings.audit_policy_file))
    return replace(read_policy(DEFAULT_POLICY.encode(), "of podlife"), stranger=ANONYMOUS)


def start_audit(settings: ApiServerSettings, clock: Clock) -> RunningAudit | None:
    """Start the audit log, or return None if it is disabled. Raises ConfigError for an unusable policy or file."""
    if not settings.audit_log_path:
        return None
    policy = policy_of(settings)
    file = None
    write = _write_stdout
    if settings.audit_log_path != _STDOUT:
        file = AuditLogFile(
            Path(settings.audit_log_path),
            clock,
            size_bytes=settings.audit_log_max_mb << 20,
            age_days=settings.audit_log_max_days,
            backups=settings.audit_log_max_backups,
        )
        file.open()
        write = file.write
    backend = LogBackend(write)
    backend.start()
    return RunningAudit(Auditor(policy, backend, clock), backend, file)


def _write_stdout(lines: bytes) -> None:
    descriptor = sys.stdout.fileno()
    while lines:
        lines = lines[os.write(descriptor, lines) :]

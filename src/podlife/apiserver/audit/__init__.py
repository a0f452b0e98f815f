"""Audit log of the API server, in the form of `audit.k8s.io/v1`.

`Auditor` applies the policy to a request and follows it until it ends; `LogBackend` encodes and writes
events in its own thread. A request never waits for the log: events that do not fit into the queue, or that cannot be
written, are dropped and counted.
"""

from podlife.apiserver.audit.context import AuditContext, Auditor
from podlife.apiserver.audit.log_backend import LogBackend, start_audit
from podlife.apiserver.audit.log_file import AuditLogFile
from podlife.apiserver.audit.policy import DEFAULT_POLICY, AuditPolicy, Level, load_policy, read_policy

__all__ = [
    "DEFAULT_POLICY",
    "AuditContext",
    "AuditLogFile",
    "AuditPolicy",
    "Auditor",
    "Level",
    "LogBackend",
    "load_policy",
    "read_policy",
    "start_audit",
]

"""Audit log of the API server, in the form of `audit.k8s.io/v1`.

`Auditor` decides by a policy what is recorded of a request and follows it to its end; `LogBackend` encodes and writes
events in a thread of its own. A request never waits for the log: events that do not fit into the queue, or that the
disk refuses, are dropped and counted.
"""

from podlife.apiserver.audit.log_backend import LogBackend
from podlife.apiserver.audit.log_file import LogFile
from podlife.apiserver.audit.policy import DEFAULT_POLICY, Level, Policy, load_policy, read_policy
from podlife.apiserver.audit.trail import Auditor, Trail

__all__ = [
    "DEFAULT_POLICY",
    "Auditor",
    "Level",
    "LogBackend",
    "LogFile",
    "Policy",
    "Trail",
    "load_policy",
    "read_policy",
]

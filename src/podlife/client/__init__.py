"""A client for any Kubernetes API server: configuration and credentials, verbs, watches, adaptive flow control.

    async with Client.connect(load()) as client:
        pods = await client.list_all(PODS)

It guarantees that no request is repeated which may have been executed, that every wait has a deadline, and
that a watch loses nothing. What carries the requests is a seam: `HttpTransport`, or `InProcessTransport` into
an API server in the same process. Caches and work queues belong to others.

A name is imported from its module when it is first used, so that `import podlife.client` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podlife.client.client import Client
    from podlife.client.config import (
        BasicAuth,
        Connection,
        ExecAuth,
        Flags,
        ProviderAuth,
        TokenAuth,
        TokenFileAuth,
        in_cluster,
        load,
    )
    from podlife.client.http_transport import HttpTransport
    from podlife.client.in_process import InProcessTransport
    from podlife.client.limiter import Limiter, LimiterSettings, LimiterState
    from podlife.client.options import (
        DeleteOptions,
        ListOptions,
        LogOptions,
        PatchType,
        WatchOptions,
        WriteOptions,
    )
    from podlife.client.refs import (
        CONFIG_MAPS,
        CONTROLLER_REVISIONS,
        CRON_JOBS,
        DAEMON_SETS,
        DEPLOYMENTS,
        ENDPOINTS,
        EVENTS,
        JOBS,
        LEASES,
        NAMESPACES,
        NODES,
        PERSISTENT_VOLUME_CLAIMS,
        PERSISTENT_VOLUMES,
        POD_DISRUPTION_BUDGETS,
        PODS,
        REPLICA_SETS,
        REPLICATION_CONTROLLERS,
        SECRETS,
        SERVICE_ACCOUNTS,
        SERVICES,
        STATEFUL_SETS,
        Ref,
    )
    from podlife.client.rest_client import Reply, WithdrawnError
    from podlife.client.transport import Answer, DeadlineError, NotSentError, Transport
    from podlife.client.views import BadAnswerError, Page
    from podlife.client.watch import Bookmark, EventType, WatchEvent

__all__ = [
    "CONFIG_MAPS",
    "CONTROLLER_REVISIONS",
    "CRON_JOBS",
    "DAEMON_SETS",
    "DEPLOYMENTS",
    "ENDPOINTS",
    "EVENTS",
    "JOBS",
    "LEASES",
    "NAMESPACES",
    "NODES",
    "PERSISTENT_VOLUMES",
    "PERSISTENT_VOLUME_CLAIMS",
    "PODS",
    "POD_DISRUPTION_BUDGETS",
    "REPLICATION_CONTROLLERS",
    "REPLICA_SETS",
    "SECRETS",
    "SERVICES",
    "SERVICE_ACCOUNTS",
    "STATEFUL_SETS",
    "Answer",
    "BadAnswerError",
    "BasicAuth",
    "Bookmark",
    "Client",
    "Connection",
    "DeadlineError",
    "DeleteOptions",
    "EventType",
    "ExecAuth",
    "Flags",
    "HttpTransport",
    "InProcessTransport",
    "Limiter",
    "LimiterSettings",
    "LimiterState",
    "ListOptions",
    "LogOptions",
    "NotSentError",
    "Page",
    "PatchType",
    "ProviderAuth",
    "Ref",
    "Reply",
    "TokenAuth",
    "TokenFileAuth",
    "Transport",
    "WatchEvent",
    "WatchOptions",
    "WithdrawnError",
    "WriteOptions",
    "in_cluster",
    "load",
]

# Where to look, the cheapest first.
_MODULES = (
    "refs",
    "transport",
    "options",
    "limiter",
    "views",
    "watch",
    "rest_client",
    "client",
    "in_process",
    "config",
    "http_transport",
)


def __getattr__(name: str) -> object:
    for module_name in _MODULES if name in __all__ else ():
        module = importlib.import_module(f"podlife.client.{module_name}")
        if name in module.__all__:
            return globals().setdefault(name, getattr(module, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Names that have not been used yet too, for completion and `help`."""
    return sorted({*globals(), *__all__})

"""Client for any Kubernetes API server: configuration, credentials, verbs, watches, adaptive flow control.

    async with Client.connect(load()) as client:
        pods = await client.list_all(PODS)

Guarantees:
* A request that may have been executed is never sent again.
* Every wait has a deadline.
* A watch loses no event.

Requests are carried by a `Transport`: `HttpTransport`, or `InProcessTransport` to an API server in the same process.
Caches and work queues are in `informer` and `workqueue`.

Names are imported from their modules on first use, so `import podlife.client` is cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podlife.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from podlife.client.client import Client
    from podlife.client.config import Flags, in_cluster, load
    from podlife.client.connection import (
        BasicAuth,
        Connection,
        ExecAuth,
        ProviderAuth,
        TokenAuth,
        TokenFileAuth,
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
        CUSTOM_RESOURCE_DEFINITIONS,
        DAEMON_SETS,
        DEPLOYMENTS,
        ENDPOINT_SLICES,
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
        STORAGE_CLASSES,
        VOLUME_ATTRIBUTES_CLASSES,
        Ref,
    )
    from podlife.client.rest_client import Reply, WithdrawnError
    from podlife.client.transport import DeadlineError, NotSentError, Transport, TransportResponse
    from podlife.client.typed_writes import save, save_status
    from podlife.client.views import BadAnswerError, Page
    from podlife.client.watch import Bookmark, EventType, WatchEvent

__all__ = [
    "CONFIG_MAPS",
    "CONTROLLER_REVISIONS",
    "CRON_JOBS",
    "CUSTOM_RESOURCE_DEFINITIONS",
    "DAEMON_SETS",
    "DEPLOYMENTS",
    "ENDPOINTS",
    "ENDPOINT_SLICES",
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
    "STORAGE_CLASSES",
    "VOLUME_ATTRIBUTES_CLASSES",
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
    "TransportResponse",
    "WatchEvent",
    "WatchOptions",
    "WithdrawnError",
    "WriteOptions",
    "in_cluster",
    "load",
    "save",
    "save_status",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "podlife.client.client": ("Client",),
        "podlife.client.config": ("Flags", "in_cluster", "load"),
        "podlife.client.connection": (
            "BasicAuth",
            "Connection",
            "ExecAuth",
            "ProviderAuth",
            "TokenAuth",
            "TokenFileAuth",
        ),
        "podlife.client.http_transport": ("HttpTransport",),
        "podlife.client.in_process": ("InProcessTransport",),
        "podlife.client.limiter": ("Limiter", "LimiterSettings", "LimiterState"),
        "podlife.client.options": (
            "DeleteOptions",
            "ListOptions",
            "LogOptions",
            "PatchType",
            "WatchOptions",
            "WriteOptions",
        ),
        # Every constant is a resource.
        "podlife.client.refs": ("Ref", *(name for name in __all__ if name.isupper())),
        "podlife.client.rest_client": ("Reply", "WithdrawnError"),
        "podlife.client.transport": ("DeadlineError", "NotSentError", "Transport", "TransportResponse"),
        "podlife.client.typed_writes": ("save", "save_status"),
        "podlife.client.views": ("BadAnswerError", "Page"),
        "podlife.client.watch": ("Bookmark", "EventType", "WatchEvent"),
    },
)

"""Leader election for a daemon: its settings, and the elector made from them."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podlife.client import Client, Connection
    from podlife.clock import Clock
    from podlife.controller import LeaderElector
    from podlife.events import Recorder

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ElectionSettings:
    """The defaults are kube-controller-manager's."""

    lease_name: str
    # Empty: the pod's own namespace, or kube-system outside a cluster.
    lease_namespace: str = ""
    # Empty: HOST_UUID.
    identity: str = ""
    lease_seconds: float = 15.0
    renew_seconds: float = 10.0
    retry_seconds: float = 2.0


def lease_of(settings: ElectionSettings, connection: Connection) -> tuple[str, str]:
    """Namespace and name of the lease.

    All processes that do the same work in one cluster must agree on one lease. A pod may use that of its own namespace
    alone; outside the cluster the namespace of the current context would differ from user to user."""
    from podlife.client import TokenFileAuth

    is_pod = isinstance(connection.auth, TokenFileAuth)
    namespace = settings.lease_namespace or (connection.namespace if is_pod else "kube-system")
    return namespace, settings.lease_name


def make_elector(
    settings: ElectionSettings,
    connection: Connection,
    client: Client,
    *,
    recorder: Recorder,
    clock: Clock,
    standby_message: str,
) -> LeaderElector:
    """`standby_message` is logged when another process holds the lease."""
    from podlife.controller import LeaderElector, make_identity

    identity = settings.identity or make_identity()

    def notice(leader: str) -> None:
        if standby_message and leader != identity:
            log.info(standby_message)

    return LeaderElector(
        client,
        *lease_of(settings, connection),
        identity,
        lease_seconds=settings.lease_seconds,
        renew_seconds=settings.renew_seconds,
        retry_seconds=settings.retry_seconds,
        clock=clock,
        recorder=recorder,
        on_new_leader=notice,
    )

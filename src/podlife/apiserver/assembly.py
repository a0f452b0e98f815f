"""The API server put together, without a socket: over any store, with any clock."""

from __future__ import annotations

import random

from podlife.apiserver.admission import Admission
from podlife.apiserver.admission.cluster_ip_allocator import allocate_cluster_ips
from podlife.apiserver.admission.namespace_lifecycle import namespace_lifecycle
from podlife.apiserver.admission.node_restriction import restrict_nodes
from podlife.apiserver.admission.pods import default_priority, default_toleration_seconds
from podlife.apiserver.audit import Auditor
from podlife.apiserver.authn.authenticator import Authenticator
from podlife.apiserver.authz.node_view import StoreNodeView
from podlife.apiserver.endpoints.certificate_signing_requests import SignRequest
from podlife.apiserver.endpoints.handler import ApiHandler, NodeProxy
from podlife.apiserver.endpoints.metrics import Metrics
from podlife.apiserver.registry.request_scope import Registry
from podlife.apiserver.storage.store import Store
from podlife.clock import Clock

__all__ = ["assemble"]


def assemble(  # noqa: PLR0913 - the parts of a server, each with a default
    store: Store,
    *,
    clock: Clock,
    authenticator: Authenticator,
    node_proxy: NodeProxy | None = None,
    sign_node_request: SignRequest | None = None,
    chance: random.Random | None = None,
    not_ready_toleration_seconds: int = 300,
    unreachable_toleration_seconds: int = 300,
    auditor: Auditor | None = None,
) -> ApiHandler:
    """A handler that answers from the store. Nothing is started; the system's namespaces are not made here."""
    tolerations = default_toleration_seconds(not_ready_toleration_seconds, unreachable_toleration_seconds)
    addresses = allocate_cluster_ips(store)
    plugins = (namespace_lifecycle, default_priority, tolerations, restrict_nodes, addresses)
    registry = Registry(store, clock, Admission(plugins, store.get), chance or random.SystemRandom())
    nodes = StoreNodeView(store)
    return ApiHandler(registry, authenticator, nodes, node_proxy, Metrics(), sign_node_request, auditor)

"""Builds the API server's request handler, without a socket, over any store and any clock."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from podlife.apiserver.admission import AdmissionChain
from podlife.apiserver.admission.certificate_requester import name_requester, restrict_signers
from podlife.apiserver.admission.cluster_ip_allocator import allocate_cluster_ips
from podlife.apiserver.admission.device_access import restrict_devices
from podlife.apiserver.admission.dynamic import DynamicAdmission
from podlife.apiserver.admission.limit_ranger import enforce_limits, set_limit_defaults
from podlife.apiserver.admission.namespace_lifecycle import namespace_lifecycle
from podlife.apiserver.admission.node_restriction import restrict_nodes
from podlife.apiserver.admission.node_taint import taint_new_node
from podlife.apiserver.admission.pod_resize import validate_pod_resize
from podlife.apiserver.admission.pods import default_priority, default_toleration_seconds
from podlife.apiserver.admission.policies import PolicyDispatcher
from podlife.apiserver.admission.role_escalation import prevent_escalation
from podlife.apiserver.admission.service_account import require_account
from podlife.apiserver.admission.volumes import default_storage_class, protect_storage, restrict_resize
from podlife.apiserver.admission.webhooks import Call, CallError, ClientConfig, WebhookDispatcher
from podlife.apiserver.apiextensions.controller import serve_definitions
from podlife.apiserver.audit import Auditor
from podlife.apiserver.authn import Authenticator
from podlife.apiserver.authz import Authorizer, RbacPolicy
from podlife.apiserver.authz.node_authorizer import StoreNodeView
from podlife.apiserver.catalog import ResourceCatalog
from podlife.apiserver.endpoints import ApiHandler
from podlife.apiserver.endpoints.certificate_signing_requests import SignRequest
from podlife.apiserver.endpoints.metrics import ApiServerMetrics
from podlife.apiserver.registry import Registry
from podlife.apiserver.registry.worker_threads import offload, run_in_thread
from podlife.apiserver.service_accounts import ServiceAccountTokens
from podlife.apiserver.storage import Store
from podlife.clock import Clock

if TYPE_CHECKING:
    from podlife.apiserver.subresources.kubelet_proxy import KubeletProxy


def assemble(  # noqa: PLR0913 - the parts of a server, each with a default
    store: Store,
    *,
    clock: Clock,
    authenticator: Authenticator,
    kubelet_proxy: KubeletProxy | None = None,
    sign_node_request: SignRequest | None = None,
    chance: random.Random | None = None,
    not_ready_toleration_seconds: int = 300,
    unreachable_toleration_seconds: int = 300,
    auditor: Auditor | None = None,
    tracks_managers: bool = True,
    call_webhook: Call | None = None,
    taints_new_nodes: bool = False,
    service_accounts: ServiceAccountTokens | None = None,
    needs_accounts: bool = False,
) -> ApiHandler:
    """Return a handler that serves from `store`. Starts nothing and does not create the system namespaces.

    Without `call_webhook` every call of a webhook fails. `taints_new_nodes` needs a node lifecycle controller, which
    removes the taint. With `needs_accounts` a pod needs a service account, as by upstream's plug-in ServiceAccount:
    only where a controller creates the default ones.
    """
    chance = chance or random.SystemRandom()
    tolerations = default_toleration_seconds(not_ready_toleration_seconds, unreachable_toleration_seconds)
    addresses = allocate_cluster_ips(store)
    accounts = (require_account(chance),) if needs_accounts else ()
    pods = (*accounts, default_priority(store), tolerations)
    volumes = (default_storage_class(store), restrict_resize, protect_storage)
    authorizer = Authorizer(StoreNodeView(store), RbacPolicy(store))
    may = authorizer.authorize
    plugins = (
        namespace_lifecycle,
        set_limit_defaults(store),
        *pods,
        restrict_nodes,
        *((taint_new_node,) if taints_new_nodes else ()),
        *volumes,
        addresses,
        name_requester,
        prevent_escalation(authorizer),
    )
    catalog = ResourceCatalog()
    call_webhook = call_webhook or _unreachable
    webhooks = WebhookDispatcher(store, call_webhook, offload, catalog.equivalents, may)
    policies = PolicyDispatcher(store, catalog.equivalents, catalog.find_kind, may)
    dynamic = DynamicAdmission(store.count, webhooks, policies, run_in_thread)
    validators = (restrict_signers(may), restrict_devices(may), enforce_limits(store), validate_pod_resize)
    chain = AdmissionChain(plugins, store.get, validators)
    registry = Registry(store, clock, chain, chance, catalog, tracks_managers, dynamic, call_webhook)
    serve_definitions(registry)
    return ApiHandler(
        registry,
        authenticator,
        authorizer,
        kubelet_proxy,
        ApiServerMetrics(registry.catalog),
        sign_node_request,
        auditor,
        service_accounts=service_accounts,
        needs_accounts=needs_accounts,
    )


async def _unreachable(config: ClientConfig, body: bytes, seconds: float) -> bytes:
    raise CallError("this server calls no webhooks")

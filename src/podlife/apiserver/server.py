"""The API server as one component: `run` opens the store, binds, serves, and closes everything again.

It starts store, identities, handler and HTTP server in this order and stops them in reverse, each with a deadline:
new connections are refused, watches end in an orderly way, requests in flight finish, and the store closes last. The
data folder holds the store, `pki/`, `tokens.csv` and a kubeconfig for each of the server's own identities.
"""

from __future__ import annotations

import asyncio
import errno
import shutil
import socket
import ssl
import tempfile
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from podlife.apiserver.admission.webhooks.client import WebhookClient
from podlife.apiserver.aggregation.controller import Aggregator
from podlife.apiserver.aggregation.local_api_services import LocalApiServiceController, register_built_in
from podlife.apiserver.aggregation.proxy import RemoteApiProxy
from podlife.apiserver.apiextensions.controller import CustomResourceDefinitionController
from podlife.apiserver.assembly import assemble
from podlife.apiserver.audit import start_audit
from podlife.apiserver.authn import Authenticator, TokenFile
from podlife.apiserver.bootstrap import (
    create_kubernetes_service,
    create_system_objects,
    publish_authentication,
    publish_endpoint,
)
from podlife.apiserver.endpoints import ApiHandler
from podlife.apiserver.event_ttl import EventExpiry
from podlife.apiserver.flow_schema_status import FlowSchemaStatusController
from podlife.apiserver.http import HttpLimits, HttpServer
from podlife.apiserver.identities import Identities, prepare_identities, write_kubeconfigs
from podlife.apiserver.namespace import NamespaceController
from podlife.apiserver.policy_status import PolicyStatusController
from podlife.apiserver.role_aggregation import RoleAggregationController
from podlife.apiserver.role_reconciliation import reconcile_roles
from podlife.apiserver.service_accounts import DEFAULT_ISSUER, ServiceAccountKeys, ServiceAccountTokens
from podlife.apiserver.settings import ApiServerSettings, is_local
from podlife.apiserver.storage import MemoryStore, SqliteStore, Store
from podlife.apiserver.storage.data_dir import DataDir
from podlife.apiserver.subresources.kubelet_proxy import KubeletProxy
from podlife.apiserver.subresources.proxy import ResourceProxy
from podlife.clock import Clock, SystemClock
from podlife.errors import ConfigError
from podlife.pki import server_context

_WILDCARDS = ("0.0.0.0", "::")  # noqa: S104 - compared, not bound


@dataclass(frozen=True, slots=True)
class ServingInfo:
    """What a ready server reports about itself."""

    url: str
    folder: Path

    def kubeconfig(self, identity: str = "admin") -> Path:
        return self.folder / f"{identity}.kubeconfig"


class ApiServer:
    """One server. `run` serves until `stop` is called or its task is cancelled."""

    def __init__(
        self, settings: ApiServerSettings, *, clock: Clock | None = None, limits: HttpLimits | None = None
    ) -> None:
        self._settings = settings
        self._clock = clock or SystemClock()
        self._limits = limits
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        self._stopping.set()

    async def run(self, on_ready: Callable[[ServingInfo], None] = lambda serving: None) -> None:
        """Serve; `on_ready` is called once the address answers. Raises ConfigError if the server cannot start."""
        async with AsyncExitStack() as stack:
            folder = self._folder(stack)
            store = await self._open_store(folder)
            stack.push_async_callback(store.close)
            identities = prepare_identities(self._settings, folder, self._clock)
            tls = self._tls(identities)
            handler = await self._assemble(stack, store, identities)
            http_server = HttpServer(handler, tls=tls, limits=self._limits, identify=handler.identify)
            await self._bind(http_server)
            stack.push_async_callback(http_server.stop, seconds=self._settings.stop_seconds)
            await create_kubernetes_service(handler.registry, http_server.port)
            await publish_endpoint(handler.registry, self._advertised, http_server.port)
            if handler.service_accounts is not None:
                handler.service_accounts.server_url = _url(
                    self._advertised or self._settings.bind, http_server.port
                )
            serving = ServingInfo(_url(self._settings.bind, http_server.port), folder)
            if not self._settings.tls_cert_file:
                write_kubeconfigs(folder, serving.url, identities)
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(controller(handler.registry).run(), name=controller.__name__)
                    for controller in (
                        CustomResourceDefinitionController,
                        FlowSchemaStatusController,
                        LocalApiServiceController,
                        PolicyStatusController,
                        RoleAggregationController,
                    )
                ]
                if handler.aggregator is not None:
                    tasks.append(group.create_task(handler.aggregator.run(), name="aggregator"))
                if self._settings.event_ttl_seconds:
                    expiry = EventExpiry(handler.registry, self._settings.event_ttl_seconds)
                    tasks.append(group.create_task(expiry.run(), name="event expiry"))
                if self._settings.cleans_namespaces:
                    controller = NamespaceController(handler.registry).run()
                    tasks.append(group.create_task(controller, name="namespace controller"))
                on_ready(serving)
                await self._stopping.wait()
                for task in tasks:
                    task.cancel()

    def _folder(self, stack: AsyncExitStack) -> Path:
        folder = self._settings.data or Path(tempfile.mkdtemp(prefix="podlife-"))
        if self._settings.is_temporary or self._settings.data is None:
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
        return folder

    async def _assemble(self, stack: AsyncExitStack, store: Store, identities: Identities) -> ApiHandler:
        proxy = KubeletProxy(
            store.get, lambda: identities.ca.client_context(identities.kubelet_client_file())
        )
        stack.push_async_callback(proxy.close)
        webhooks = WebhookClient(store)
        stack.push_async_callback(webhooks.close)
        audit = start_audit(self._settings, self._clock)
        if audit is not None:
            stack.push_async_callback(audit.close)
        accounts = self._service_accounts(store, identities)
        handler = assemble(
            store,
            clock=self._clock,
            authenticator=Authenticator(TokenFile(identities.tokens_file), accounts),
            kubelet_proxy=proxy,
            sign_node_request=None if self._settings.tls_cert_file else identities.ca.sign_node_request,
            not_ready_toleration_seconds=self._settings.not_ready_toleration_seconds,
            unreachable_toleration_seconds=self._settings.unreachable_toleration_seconds,
            auditor=None if audit is None else audit.auditor,
            tracks_managers=self._settings.tracks_managers,
            call_webhook=webhooks.call,
            taints_new_nodes=True,
            service_accounts=accounts,
            needs_accounts=self._settings.needs_accounts,
        )
        if audit is not None:
            handler.metrics.others.append(audit.backend.metrics)
        remote = RemoteApiProxy(store, lambda tls: tls.load_cert_chain(identities.front_proxy_file()))
        stack.push_async_callback(remote.close)
        handler.aggregator = Aggregator(handler.registry, remote)
        handler.resource_proxy = ResourceProxy(
            store, proxy, proxies_to_loopback=_is_loopback(self._settings.bind)
        )
        stack.push_async_callback(handler.resource_proxy.close)
        await create_system_objects(handler.registry)
        await reconcile_roles(handler.registry)
        await register_built_in(handler.registry)
        if not self._settings.tls_cert_file:
            authorities = [each.authority_file for each in (identities.ca, identities.front_proxy_ca)]
        else:
            authorities = [Path(name) for name in (self._settings.client_ca_file,) if name]
        if authorities:
            await publish_authentication(handler.registry, *(each.read_text() for each in authorities))
        return handler

    def _service_accounts(self, store: Store, identities: Identities) -> ServiceAccountTokens:
        """Raises ConfigError if a given key file cannot be used."""
        given = self._settings
        own = not given.service_account_signing_key_file
        keys = ServiceAccountKeys(
            identities.tokens_key_file if own else Path(given.service_account_signing_key_file),
            [Path(name) for name in given.service_account_key_files],
            creates=own,
        )
        if not own or given.service_account_key_files or given.needs_accounts:
            _ = keys.signing
        issuer = given.service_account_issuer or ("" if self._advertised else DEFAULT_ISSUER)
        return ServiceAccountTokens(store, self._clock, keys, issuer=issuer)

    def _tls(self, identities: Identities) -> ssl.SSLContext:
        """Raises ConfigError if a given file cannot be used."""
        given = self._settings
        if not given.tls_cert_file:
            return identities.ca.server_context(identities.serving_file())
        cert, key = Path(given.tls_cert_file), Path(given.tls_private_key_file)
        client_ca = Path(given.client_ca_file) if given.client_ca_file else None
        try:
            return server_context(cert, key, client_ca)
        except OSError as error:
            files = ", ".join(map(str, filter(None, (cert, key, client_ca))))
            raise ConfigError(f"cannot use the certificates in {files}: {error}") from error

    async def _open_store(self, folder: Path) -> Store:
        if self._settings.in_memory or self._settings.data is None:
            DataDir(folder).prepare(in_memory=True)
            return MemoryStore()
        return await SqliteStore.open(folder)

    @property
    def _advertised(self) -> str:
        """Address at which pods reach this server; empty if only this machine does."""
        address = self._settings.advertise_address or self._settings.bind
        return "" if is_local(address) else address

    async def _bind(self, http_server: HttpServer) -> None:
        bind, port = self._settings.bind, self._settings.port
        try:
            await http_server.start(bind, port)
            if (also := self._settings.advertise_address) and also != bind and bind not in _WILDCARDS:
                bind, port = also, http_server.port
                await http_server.start(bind, port)
        except (OSError, OverflowError, UnicodeError) as error:
            raise ConfigError(_why_not_bound(bind, port, error)) from error


def _url(bind: str, port: int) -> str:
    """URL at which clients on this machine reach the server."""
    try:
        address = ip_address(bind)
    except ValueError:
        return f"https://{bind}:{port}"
    if address.is_unspecified:
        return f"https://127.0.0.1:{port}" if address.version == 4 else f"https://[::1]:{port}"
    return f"https://{address}:{port}" if address.version == 4 else f"https://[{address}]:{port}"


def _why_not_bound(bind: str, port: int, error: Exception) -> str:
    if isinstance(error, socket.gaierror | UnicodeError):
        return f"{bind} is neither an IP address nor a known host name: choose another with --bind"
    match getattr(error, "errno", None):
        case errno.EADDRINUSE:
            return (
                f"port {port} on {bind} is in use: choose another with --port, or any free one with --port 0"
            )
        case errno.EACCES:
            return f"port {port} may not be used by this user: choose one above 1023 with --port"
        case errno.EADDRNOTAVAIL:
            return f"{bind} is not an address of this machine: choose another with --bind"
        case _:
            return f"cannot listen on {bind}, port {port}: {error}"


def _is_loopback(bind: str) -> bool:
    try:
        return ip_address(bind).is_loopback
    except ValueError:
        return bind == "localhost"

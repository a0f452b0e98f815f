"""The two controllers. Keys are the names of namespaces.

Each follows all namespaces, and of the objects that it creates only those of its one name.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable
from typing import Any, Generic, TypeVar

import msgspec

from podlife.api.codec import Object
from podlife.api.views import Metadata, MetadataOnly
from podlife.client import CONFIG_MAPS, NAMESPACES, SERVICE_ACCOUNTS, Client, Ref
from podlife.controller import Again, Controller, ControlPlane
from podlife.errors import ApiError, ConflictError, NotFoundError
from podlife.informer import Informer
from podlife.informer.cache import HasMetadata
from podlife.podcontrol import as_namespace_terminating
from podlife.workqueue import RateLimitedQueue

T = TypeVar("T", bound=HasMetadata)
K = TypeVar("K", bound=Hashable)

_DEFAULT = "default"
_ROOT_CA = "kube-root-ca.crt"
_DESCRIPTION = "kubernetes.io/description"
# Upstream's text: it is an annotation of the ConfigMap, which users compare.
_ABOUT_ROOT_CA = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


class _NamespaceStatus(msgspec.Struct, gc=False):
    phase: str = ""


class _Namespace(msgspec.Struct, gc=False):
    metadata: Metadata
    status: _NamespaceStatus = msgspec.field(default_factory=_NamespaceStatus)


class AnnotatedMetadata(Metadata, rename="camel", gc=False):
    annotations: dict[str, str] = {}


class _ConfigMap(msgspec.Struct, gc=False):
    metadata: AnnotatedMetadata
    data: dict[str, str] = {}


class Enqueue(Generic[K]):
    """Enqueues the keys that an event is about."""

    def __init__(self, queue: RateLimitedQueue[K], keys_of: Callable[[Any], Iterable[K]]) -> None:
        self._queue = queue
        self._keys_of = keys_of

    def on_add(self, obj: HasMetadata) -> None:
        for key in self._keys_of(obj):
            self._queue.add(key)

    def on_update(self, old: HasMetadata, new: HasMetadata) -> None:
        self.on_add(new)

    def on_delete(self, obj: HasMetadata) -> None:
        self.on_add(obj)


def _namespace_of(obj: HasMetadata) -> tuple[str]:
    """Its own name, or that of the namespace it is in."""
    return (obj.metadata.namespace or obj.metadata.name,)


class ServiceAccountController:
    """Upstream's serviceaccount-controller."""

    name = "serviceaccount-controller"

    def __init__(self, plane: ControlPlane) -> None:
        self._client = plane.client
        accounts = plane.informer(
            SERVICE_ACCOUNTS, view=MetadataOnly, field_selector=f"metadata.name={_DEFAULT}"
        )
        self.queue: RateLimitedQueue[str] = RateLimitedQueue("serviceaccount")
        reconcile = _in_active_namespaces(plane, self.queue, accounts, _DEFAULT, self._ensure)
        self.controller = Controller(self.name, self.queue, reconcile)

    async def run(self) -> None:
        await self.controller.run()

    async def _ensure(self, namespace: str, account: MetadataOnly | None) -> None:
        if account is None:
            await _create(self._client, SERVICE_ACCOUNTS, {"metadata": {"name": _DEFAULT}}, namespace)


class RootCaCertPublisher:
    """Upstream's root-ca-certificate-publisher-controller; `root_ca` is PEM."""

    name = "root-ca-certificate-publisher-controller"

    def __init__(self, plane: ControlPlane, *, root_ca: str = "") -> None:
        self._client = plane.client
        self._data = {"ca.crt": root_ca}
        config_maps = plane.informer(CONFIG_MAPS, view=_ConfigMap, field_selector=f"metadata.name={_ROOT_CA}")
        self.queue: RateLimitedQueue[str] = RateLimitedQueue("root_ca_cert_publisher")
        reconcile = _in_active_namespaces(plane, self.queue, config_maps, _ROOT_CA, self._ensure)
        self.controller = Controller(self.name, self.queue, reconcile)

    async def run(self) -> None:
        await self.controller.run()

    async def _ensure(self, namespace: str, published: _ConfigMap | None) -> None:
        if published is None:
            annotations = {_DESCRIPTION: _ABOUT_ROOT_CA}
            obj = {"metadata": {"name": _ROOT_CA, "annotations": annotations}, "data": self._data}
            await _create(self._client, CONFIG_MAPS, obj, namespace)
        elif published.data != self._data or not published.metadata.annotations.get(_DESCRIPTION):
            await self._correct(published)

    async def _correct(self, published: _ConfigMap) -> None:
        """Set data and description; other annotations and labels are left alone."""
        meta = published.metadata
        unwanted = dict.fromkeys(published.data.keys() - self._data.keys())
        patch = {
            "metadata": {"uid": meta.uid, "annotations": {_DESCRIPTION: _ABOUT_ROOT_CA}},
            "data": unwanted | self._data,
            "binaryData": None,
        }
        try:
            await self._client.patch(CONFIG_MAPS, meta.name, patch, meta.namespace)
        except (NotFoundError, ConflictError):
            # Deleted, or deleted and created again: the new state arrives with its own event.
            return


def _in_active_namespaces(
    plane: ControlPlane,
    queue: RateLimitedQueue[str],
    objects: Informer[T],
    name: str,
    ensure: Callable[[str, T | None], Awaitable[None]],
) -> Callable[[str], Awaitable[Again | None]]:
    """A reconcile that calls `ensure` with each active namespace and the object of this name in it, if there is one."""
    namespaces = plane.informer(NAMESPACES, view=_Namespace)
    for informer in (namespaces, objects):
        informer.add_handler(Enqueue(queue, _namespace_of))

    async def reconcile(namespace: str) -> None:
        found = namespaces.cache.get("", namespace)
        if found is not None and found.status.phase == "Active":
            await ensure(namespace, objects.cache.get(namespace, name))

    return reconcile


async def _create(client: Client, ref: Ref, obj: Object, namespace: str) -> None:
    try:
        await client.create(ref, obj, namespace)
    except (ConflictError, NotFoundError):
        # It exists, and its event is on the way; or the namespace does not.
        return
    except ApiError as error:
        if as_namespace_terminating(error) is None:
            raise

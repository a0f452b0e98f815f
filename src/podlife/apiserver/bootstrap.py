"""Objects that every cluster has: the server creates what is missing when it starts, as kube-apiserver does."""

from __future__ import annotations

from copy import deepcopy

from podlife.api.codec import Object
from podlife.apiserver.admission.cluster_ip_allocator import API_SERVER_IP
from podlife.apiserver.authn import ADMIN
from podlife.apiserver.namespace import create_system_namespaces
from podlife.apiserver.registry import Registry, RequestScope
from podlife.apiserver.registry.create import create_object
from podlife.apiserver.storage import Key
from podlife.apiserver.strategies.flowcontrol.defaults import LEVELS, SCHEMAS
from podlife.wire import Request

_HTTPS = 443
# Upstream's name for who creates the objects of flow control.
_FLOW_CONTROL = "api-priority-and-fairness-config-producer-v1"


async def create_system_objects(registry: Registry) -> None:
    """Create what does not depend on where the server listens."""
    await create_system_namespaces(registry, ADMIN)
    for plural, objects in (("prioritylevelconfigurations", LEVELS), ("flowschemas", SCHEMAS)):
        for obj in objects:
            await _ensure(
                registry, "flowcontrol.apiserver.k8s.io", plural, deepcopy(obj), manager=_FLOW_CONTROL
            )


async def create_kubernetes_service(registry: Registry, port: int) -> None:
    """Create the Service by which pods find the API server. As upstream, an existing one is left as it is."""
    ports = [{"name": "https", "protocol": "TCP", "port": _HTTPS, "targetPort": port}]
    service = {
        "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {"clusterIP": API_SERVER_IP, "ipFamilyPolicy": "SingleStack", "ports": ports},
    }
    await _ensure(registry, "", "services", service, namespace="default")


async def _ensure(
    registry: Registry,
    group: str,
    plural: str,
    obj: Object,
    *,
    namespace: str = "",
    manager: str = "kube-apiserver",
) -> None:
    resource = registry.catalog.find(group, "v1", plural)
    assert resource is not None
    name = obj["metadata"]["name"]
    if registry.store.get(Key(resource.storage_key, namespace, name)) is not None:
        return
    # The path is not read: the audit log does not record these.
    request = Request("POST", "", headers={"User-Agent": manager})
    scope = RequestScope(registry, request, ADMIN, resource, "create", namespace, name)
    await create_object(scope, obj, dry_run=False)

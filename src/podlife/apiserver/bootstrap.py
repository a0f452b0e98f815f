"""Objects that every cluster has: the server creates what is missing when it starts, as kube-apiserver does.

No policy and no webhook is asked about them: what is stored must not keep the server from starting.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

from podlife.api.codec import Object, decode_object, encode
from podlife.apiserver.admission.cluster_ip_allocator import API_SERVER_IP
from podlife.apiserver.authn import ADMIN
from podlife.apiserver.identities import FRONT_PROXY
from podlife.apiserver.namespace import create_system_namespaces
from podlife.apiserver.registry import Registry, RequestScope
from podlife.apiserver.registry.create import create_object
from podlife.apiserver.registry.object_codec import encoder
from podlife.apiserver.registry.update import commit_change
from podlife.apiserver.storage import Delete, Key
from podlife.apiserver.strategies.flowcontrol.defaults import LEVELS, SCHEMAS
from podlife.apiserver.strategies.pod_classes import SYSTEM_CLASSES
from podlife.wire import Request

_HTTPS = 443
# Upstream's name for who creates the objects of flow control.
_FLOW_CONTROL = "api-priority-and-fairness-config-producer-v1"


async def create_system_objects(registry: Registry) -> None:
    """Create what does not depend on where the server listens."""
    await create_system_namespaces(replace(registry, dynamic_admission=None), ADMIN)
    group = "flowcontrol.apiserver.k8s.io"
    for plural, objects in (("prioritylevelconfigurations", LEVELS), ("flowschemas", SCHEMAS)):
        for obj in objects:
            await ensure_object(registry, group, plural, deepcopy(obj), manager=_FLOW_CONTROL)
    for obj in SYSTEM_CLASSES:
        await ensure_object(registry, "scheduling.k8s.io", "priorityclasses", deepcopy(obj))


async def create_kubernetes_service(registry: Registry, port: int) -> None:
    """Create the Service by which pods find the API server. As upstream, an existing one is left as it is."""
    ports = [{"name": "https", "protocol": "TCP", "port": _HTTPS, "targetPort": port}]
    service = {
        "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {"clusterIP": API_SERVER_IP, "ipFamilyPolicy": "SingleStack", "ports": ports},
    }
    await ensure_object(registry, "", "services", service, namespace="default")


async def publish_endpoint(registry: Registry, address: str, port: int) -> None:
    """Say where pods reach the API server: the Endpoints and the EndpointSlice of its Service. Without an address that
    they can reach there are none: both kinds allow no loopback address."""
    ports = [{"name": "https", "port": port, "protocol": "TCP"}]
    of_service = {"kubernetes.io/service-name": "kubernetes"}
    slice_: Object = {
        "metadata": {"name": "kubernetes", "labels": of_service},
        "addressType": "IPv6" if ":" in address else "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": ports,
    }
    endpoints: Object = {
        "metadata": {"name": "kubernetes", "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
        "subsets": [{"addresses": [{"ip": address}], "ports": ports}],
    }
    for group, plural, obj in (("", "endpoints", endpoints), ("discovery.k8s.io", "endpointslices", slice_)):
        key = Key(f"{plural}.{group}" if group else plural, "default", "kubernetes")
        # Another address is another object: the type of a slice's addresses cannot be changed.
        async with registry.store.locked(key):
            record = registry.store.get(key)
            if record is not None:
                found = decode_object(record.value)
                fields = [each for each in obj if each != "metadata"]
                if address and all(found.get(each) == obj[each] for each in fields):
                    continue
                await registry.store.commit(Delete(key, encoder(found), expected=record.revision))
        if address:
            await ensure_object(registry, group, plural, obj, namespace="default")


async def publish_authentication(registry: Registry, client_ca: str, front_proxy_ca: str = "") -> None:
    """Say in a ConfigMap how other API servers know users: by certificates of the first CA, and by headers of a proxy
    with one of the second."""
    data = {"client-ca-file": client_ca}
    if front_proxy_ca:
        data |= {
            "requestheader-allowed-names": encode([FRONT_PROXY.common_name]).decode(),
            "requestheader-client-ca-file": front_proxy_ca,
            "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
            "requestheader-group-headers": '["X-Remote-Group"]',
            "requestheader-uid-headers": '["X-Remote-Uid"]',
            "requestheader-username-headers": '["X-Remote-User"]',
        }
    key = Key("configmaps", "kube-system", "extension-apiserver-authentication")
    obj = {"metadata": {"name": key.name}, "data": data}
    await ensure_object(registry, "", "configmaps", obj, namespace=key.namespace)
    async with registry.store.locked(key):
        record = registry.store.get(key)
        if record is not None:
            old = decode_object(record.value)
            await commit_change(registry, record, {**old, "data": data}, old, dry_run=False)


async def ensure_object(
    registry: Registry,
    group: str,
    plural: str,
    obj: Object,
    *,
    namespace: str = "",
    manager: str = "kube-apiserver",
) -> None:
    """Create an object of v1 that every cluster has, if there is none of its name."""
    resource = registry.catalog.find(group, "v1", plural)
    assert resource is not None
    name = obj["metadata"]["name"]
    if registry.store.get(Key(resource.storage_key, namespace, name)) is not None:
        return
    # The path is not read: the audit log does not record these.
    request = Request("POST", "", headers={"User-Agent": manager})
    registry = replace(registry, dynamic_admission=None)
    scope = RequestScope(registry, request, ADMIN, resource, "create", namespace, name)
    await create_object(scope, obj, dry_run=False)

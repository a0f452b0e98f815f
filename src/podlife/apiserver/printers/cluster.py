"""Ingresses, the classes of pods and volumes, CSI drivers, APIServices and CertificateSigningRequests."""

from __future__ import annotations

from typing import Any

from podlife.api.codec import Object
from podlife.api.durations import human_duration
from podlife.api.volume_binding import DEFAULT_CLASS_ANNOTATIONS
from podlife.apiserver.printers.cells import age, columns, format_selector, name
from podlife.apiserver.resource import Printer

_MOST_HOSTS = 3


def _hosts(rules: list[Object]) -> str:
    shown: list[str] = []
    for index, rule in enumerate(rules):
        if len(shown) == _MOST_HOSTS:
            return f"{','.join(shown)} + {len(rules) - _MOST_HOSTS} more..." if rules[index:] else ""
        if rule.get("host"):
            shown.append(rule["host"])
    return ",".join(shown) or "*"


def _ingress(obj: Object, now: float) -> list[Any]:
    spec = obj.get("spec", {})
    entries = (obj.get("status", {}).get("loadBalancer") or {}).get("ingress") or ()
    addresses = sorted({each.get("ip") or each.get("hostname") or "" for each in entries} - {""})
    ports = "80, 443" if spec.get("tls") else "80"
    class_name, hosts = spec.get("ingressClassName", "<none>"), _hosts(spec.get("rules") or [])
    return [name(obj), class_name, hosts, ",".join(addresses), ports, age(obj, now)]


def _ingress_class(obj: Object, now: float) -> list[Any]:
    annotations = obj["metadata"].get("annotations") or {}
    is_default = annotations.get("ingressclass.kubernetes.io/is-default-class") == "true"
    spec, shown = obj.get("spec", {}), "<none>"
    if (parameters := spec.get("parameters")) is not None:
        group = f".{parameters['apiGroup']}" if "apiGroup" in parameters else ""
        shown = f"{parameters.get('kind', '')}{group}/{parameters.get('name', '')}"
    default = " (default)" if is_default else ""
    return [f"{name(obj)}{default}", spec.get("controller", ""), shown, age(obj, now)]


def _network_policy(obj: Object, now: float) -> list[Any]:
    return [name(obj), format_selector(obj.get("spec", {}).get("podSelector")), age(obj, now)]


def _ip_address(obj: Object, now: float) -> list[Any]:
    shown = "<none>"
    if (parent := obj.get("spec", {}).get("parentRef")) is not None:
        group, resource = parent.get("group", ""), parent.get("resource", "")
        parts = [(f"{resource}.{group}" if group else resource).lower()]
        parts += [parent[field] for field in ("namespace",) if parent.get(field)]
        shown = "/".join([*parts, parent.get("name", "")])
    return [name(obj), shown, age(obj, now)]


def _service_cidr(obj: Object, now: float) -> list[Any]:
    return [name(obj), ",".join(obj.get("spec", {}).get("cidrs") or ()), age(obj, now)]


def _priority_class(obj: Object, now: float) -> list[Any]:
    is_default, policy = obj.get("globalDefault", False), obj.get("preemptionPolicy", "")
    return [name(obj), obj.get("value", 0), is_default, age(obj, now), policy]


def _runtime_class(obj: Object, now: float) -> list[Any]:
    return [name(obj), obj.get("handler", ""), age(obj, now)]


def _csi_node(obj: Object, now: float) -> list[Any]:
    return [name(obj), len(obj.get("spec", {}).get("drivers") or ()), age(obj, now)]


def _storage_class(obj: Object, now: float) -> list[Any]:
    annotations = obj["metadata"].get("annotations") or {}
    is_default = any(annotations.get(each) == "true" for each in DEFAULT_CLASS_ANNOTATIONS)
    shown = f"{name(obj)} (default)" if is_default else name(obj)
    policy, mode = obj.get("reclaimPolicy", "Delete"), obj.get("volumeBindingMode", "Immediate")
    expands = obj.get("allowVolumeExpansion", False)
    return [shown, obj.get("provisioner", ""), policy, mode, expands, age(obj, now)]


def _csi_driver(obj: Object, now: float) -> list[Any]:
    spec = obj.get("spec", {})
    requests = spec.get("tokenRequests")
    audiences = "<unset>" if requests is None else ",".join(each.get("audience", "") for each in requests)
    flags = [spec.get("attachRequired", True), spec.get("podInfoOnMount", False)]
    flags += [spec.get("storageCapacity", False), audiences, spec.get("requiresRepublish", False)]
    return [name(obj), *flags, ",".join(spec.get("volumeLifecycleModes") or ()) or "<none>", age(obj, now)]


def _volume_attachment(obj: Object, now: float) -> list[Any]:
    spec = obj.get("spec", {})
    volume = spec.get("source", {}).get("persistentVolumeName", "")
    attached = obj.get("status", {}).get("attached", False)
    return [name(obj), spec.get("attacher", ""), volume, spec.get("nodeName", ""), attached, age(obj, now)]


def _volume_attributes_class(obj: Object, now: float) -> list[Any]:
    return [name(obj), obj.get("driverName", ""), age(obj, now)]


def _api_service(obj: Object, now: float) -> list[Any]:
    service = obj.get("spec", {}).get("service")
    shown = "Local" if service is None else f"{service.get('namespace', '')}/{service.get('name', '')}"
    conditions = obj.get("status", {}).get("conditions") or ()
    condition: Object = next((each for each in conditions if each.get("type") == "Available"), {})
    status, reason = condition.get("status", "Unknown"), condition.get("reason", "")
    is_plain = status == "True" or not reason
    return [name(obj), shown, status if is_plain else f"{status} ({reason})", age(obj, now)]


def _signing_request(obj: Object, now: float) -> list[Any]:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    kinds = {each.get("type") for each in status.get("conditions") or ()}
    shown = next((kind for kind in ("Denied", "Approved") if kind in kinds), "Pending")
    shown += ",Failed" * ("Failed" in kinds) + ",Issued" * bool(status.get("certificate"))
    seconds = spec.get("expirationSeconds")
    duration = "<none>" if seconds is None else human_duration(seconds)
    signer, user = spec.get("signerName") or "<none>", spec.get("username", "")
    return [name(obj), age(obj, now), signer, user, duration, shown]


def _name_and_age(obj: Object, now: float) -> list[Any]:
    return [name(obj), age(obj, now)]


def _resource_claim(obj: Object, now: float) -> list[Any]:
    status, states = obj.get("status", {}), ["deleted"] * ("deletionTimestamp" in obj["metadata"])
    if "allocation" in status:
        states += ["allocated", *["reserved"] * bool(status.get("reservedFor"))]
    return [name(obj), ",".join(states) or "pending", age(obj, now)]


def _resource_slice(obj: Object, now: float) -> list[Any]:
    spec = obj.get("spec", {})
    pool = spec.get("pool", {}).get("name", "")
    return [name(obj), spec.get("nodeName", ""), spec.get("driver", ""), pool, age(obj, now)]


CERTIFICATE_SIGNING_REQUESTS = Printer(
    columns("certificatesigningrequests.certificates.k8s.io"), _signing_request
)
INGRESSES = Printer(columns("ingresses.networking.k8s.io"), _ingress)
INGRESS_CLASSES = Printer(columns("ingressclasses.networking.k8s.io"), _ingress_class)
NETWORK_POLICIES = Printer(columns("networkpolicies.networking.k8s.io"), _network_policy)
IP_ADDRESSES = Printer(columns("ipaddresses.networking.k8s.io"), _ip_address)
SERVICE_CIDRS = Printer(columns("servicecidrs.networking.k8s.io"), _service_cidr)
PRIORITY_CLASSES = Printer(columns("priorityclasses.scheduling.k8s.io"), _priority_class)
RUNTIME_CLASSES = Printer(columns("runtimeclasses.node.k8s.io"), _runtime_class)
CSI_DRIVERS = Printer(columns("csidrivers.storage.k8s.io"), _csi_driver)
CSI_NODES = Printer(columns("csinodes.storage.k8s.io"), _csi_node)
STORAGE_CLASSES = Printer(columns("storageclasses.storage.k8s.io"), _storage_class)
VOLUME_ATTACHMENTS = Printer(columns("volumeattachments.storage.k8s.io"), _volume_attachment)
VOLUME_ATTRIBUTES_CLASSES = Printer(
    columns("volumeattributesclasses.storage.k8s.io"), _volume_attributes_class
)
API_SERVICES = Printer(columns("apiservices.apiregistration.k8s.io"), _api_service)
DEVICE_CLASSES = Printer(columns("deviceclasses.resource.k8s.io"), _name_and_age)
RESOURCE_CLAIMS = Printer(columns("resourceclaims.resource.k8s.io"), _resource_claim)
RESOURCE_CLAIM_TEMPLATES = Printer(columns("resourceclaimtemplates.resource.k8s.io"), _name_and_age)
RESOURCE_SLICES = Printer(columns("resourceslices.resource.k8s.io"), _resource_slice)

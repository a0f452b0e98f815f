"""API objects that a pod refers to: what its node may read, and what a mirror pod may not name.

Transitive references (a claim's volume) are left to the caller.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from podlife.api.codec import Object

# Volumes that may name a secret, and where.
_SECRET_FIELDS = {
    "azureFile": ("secretName",),
    "cephfs": ("secretRef", "name"),
    "cinder": ("secretRef", "name"),
    "csi": ("nodePublishSecretRef", "name"),
    "flexVolume": ("secretRef", "name"),
    "iscsi": ("secretRef", "name"),
    "rbd": ("secretRef", "name"),
    "scaleIO": ("secretRef", "name"),
    "secret": ("secretName",),
    "storageos": ("secretRef", "name"),
}
# Upstream's name for each kind of volume that depends on an API object.
_VOLUMES = {
    "configMap": "configmaps (via configmap volumes)",
    "secret": "secrets (via secret volumes)",
    "csi": "csidrivers (via CSI volumes)",
    "glusterfs": "endpoints (via glusterFS volumes)",
    "persistentVolumeClaim": "persistentvolumeclaims",
    "ephemeral": "persistentvolumeclaims (via ephemeral volumes)",
    "azureFile": "secrets (via azureFile volumes)",
}
_PROJECTED = {
    "configMap": "configmaps (via projected volumes)",
    "secret": "secrets (via projected volumes)",
    "serviceAccountToken": "serviceaccounts (via projected volumes)",
    "clusterTrustBundle": "clustertrustbundles",
    "podCertificate": "podcertificates",
}


def references(pod: Object) -> Iterator[tuple[str, str]]:
    """Resource and name of every object in the pod's namespace that it refers to."""
    spec = pod.get("spec") or {}
    if account := spec.get("serviceAccountName"):
        yield "serviceaccounts", account
    for item in spec.get("imagePullSecrets") or ():
        yield from _named("secrets", item.get("name"))
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(field) or ():
            yield from _of_container(container)
    status = pod.get("status") or {}
    claims = [*(spec.get("resourceClaims") or ()), *(status.get("resourceClaimStatuses") or ())]
    for claim in [*claims, status.get("extendedResourceClaimStatus") or {}]:
        yield from _named("resourceclaims", claim.get("resourceClaimName"))
    for volume in spec.get("volumes") or ():
        yield from _of_volume(volume, (pod.get("metadata") or {}).get("name", ""))


def find_reference(pod: Object) -> str:
    """The first kind of API object that the pod depends on, as upstream names it; empty for none."""
    spec = pod.get("spec") or {}
    named = {resource for resource, _ in references(pod)}
    for resource in ("serviceaccounts", "secrets", "configmaps"):
        if resource in named:
            return resource
    if spec.get("resourceClaims"):
        return "resourceclaims"
    for volume in spec.get("volumes") or ():
        if kind := next((_VOLUMES[field] for field in _VOLUMES if volume.get(field) is not None), ""):
            return kind
        for source in (volume.get("projected") or {}).get("sources") or ():
            if kind := next((_PROJECTED[field] for field in _PROJECTED if source.get(field) is not None), ""):
                return kind
    return ""


def _named(resource: str, name: Any) -> Iterator[tuple[str, str]]:
    if name:
        yield resource, name


def _of_container(container: Object) -> Iterator[tuple[str, str]]:
    for source in container.get("envFrom") or ():
        yield from _named("secrets", (source.get("secretRef") or {}).get("name"))
        yield from _named("configmaps", (source.get("configMapRef") or {}).get("name"))
    for variable in container.get("env") or ():
        source = variable.get("valueFrom") or {}
        yield from _named("secrets", (source.get("secretKeyRef") or {}).get("name"))
        yield from _named("configmaps", (source.get("configMapKeyRef") or {}).get("name"))


def _of_volume(volume: Object, pod_name: str) -> Iterator[tuple[str, str]]:
    for field, path in _SECRET_FIELDS.items():
        value: Any = volume.get(field)
        for step in path:
            value = (value or {}).get(step)
        yield from _named("secrets", value)
    yield from _named("configmaps", (volume.get("configMap") or {}).get("name"))
    yield from _named("persistentvolumeclaims", (volume.get("persistentVolumeClaim") or {}).get("claimName"))
    if volume.get("ephemeral") is not None:
        yield "persistentvolumeclaims", f"{pod_name}-{volume.get('name')}"
    for source in (volume.get("projected") or {}).get("sources") or ():
        yield from _named("secrets", (source.get("secret") or {}).get("name"))
        yield from _named("configmaps", (source.get("configMap") or {}).get("name"))

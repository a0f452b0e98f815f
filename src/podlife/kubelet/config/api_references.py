"""References in a pod spec that only the API server can resolve: a static pod must not have them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

# Volumes that are made of a secret, and those that may name one.
_SECRETS = frozenset({"secret", "azureFile"})
_WITH_SECRET = ("cephfs", "cinder", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos")
# What else a volume of the kind refers to, in a kubelet's words.
_VOLUMES = {
    "csi": "csidrivers (via CSI volumes)",
    "glusterfs": "endpoints (via glusterFS volumes)",
    "persistentVolumeClaim": "persistentvolumeclaims",
    "ephemeral": "persistentvolumeclaims (via ephemeral volumes)",
}
_PROJECTIONS = {
    "serviceAccountToken": "serviceaccounts (via projected volumes)",
    "clusterTrustBundle": "clustertrustbundles",
    "podCertificate": "podcertificates",
}


def api_reference(spec: Mapping[str, Any]) -> str:
    """What the pod refers to, "" where it needs nothing of the API server."""
    return next(_found(spec), "")


def _found(spec: Mapping[str, Any]) -> Iterator[str]:
    volumes = spec.get("volumes") or ()
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    projections = [
        each for volume in volumes for each in (volume.get("projected") or {}).get("sources") or ()
    ]
    if spec.get("serviceAccountName"):
        yield "serviceaccounts"
    if (
        spec.get("imagePullSecrets")
        or any(_names(each, "secret") for each in containers)
        or any(_has_secret(each) for each in volumes)
        or any("secret" in each for each in projections)
    ):
        yield "secrets"
    if any(_names(each, "configMap") for each in containers) or any(
        "configMap" in each for each in (*volumes, *projections)
    ):
        yield "configmaps"
    if spec.get("resourceClaims"):
        yield "resourceclaims"
    for volume in volumes:
        yield from (said for kind, said in _VOLUMES.items() if kind in volume)
    for projection in projections:
        yield from (said for kind, said in _PROJECTIONS.items() if kind in projection)


def _names(container: Mapping[str, Any], kind: str) -> bool:
    """Whether its environment comes from an object of the kind."""
    return any(f"{kind}Ref" in each for each in container.get("envFrom") or ()) or any(
        f"{kind}KeyRef" in (each.get("valueFrom") or {}) for each in container.get("env") or ()
    )


def _has_secret(volume: Mapping[str, Any]) -> bool:
    return (
        not _SECRETS.isdisjoint(volume)
        or any("secretRef" in (volume.get(kind) or {}) for kind in _WITH_SECRET)
        or "nodePublishSecretRef" in (volume.get("csi") or {})
    )

"""A static pod from the text of a file: parsed, defaulted as the API server would, and bound to this node. Pure.

Its UID is a digest of the manifest's content (not its formatting), the node and the file name: the same file is the
same pod, even after a restart, and a changed manifest is another pod. Manifests that reference API objects are
rejected.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from podlife.api.codec import Object, decode_object
from podlife.api.defaults import default_pod
from podlife.api.names import check_dns_label, check_dns_subdomain
from podlife.api.schema import DecodeError, check
from podlife.api.yaml_documents import yaml_to_json
from podlife.errors import ApiError, PodlifeError

SOURCE = "kubernetes.io/config.source"
SEEN = "kubernetes.io/config.seen"
HASH = "kubernetes.io/config.hash"
MIRROR = "kubernetes.io/config.mirror"

# Set by the server; present in a file that was exported from a cluster.
_SERVER_FIELDS = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generateName",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
)
# Volumes backed by a secret, and those that may reference one.
_SECRETS = frozenset({"secret", "azureFile"})
_WITH_SECRET = ("cephfs", "cinder", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos")
# Other references of a volume, in the kubelet's words.
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
# The UID becomes part of paths.
_UID = re.compile(r"[0-9A-Za-z-]{1,63}")
_TOLERATE_ALL = {"operator": "Exists", "effect": "NoExecute"}
# Far more than a pod of a hundred containers has; parses in a fraction of a second.
_MAX_VALUES = 10_000
_encode = msgspec.json.Encoder(order="sorted").encode


class ManifestError(PodlifeError):
    """The file does not contain a pod that this node can run; the message says why."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """`warnings` are unknown fields of the file, which were dropped."""

    pod: Object
    warnings: tuple[str, ...] = ()


def read_manifest(data: bytes, source: str, node_name: str) -> Manifest:
    """Raises `ManifestError`."""
    pod = _decode(data)
    warnings = _check_shape(pod)
    metadata = pod["metadata"]
    for name in _SERVER_FIELDS:
        metadata.pop(name, None)
    pod.pop("status", None)
    try:
        default_pod(pod)
    except ApiError as error:
        raise ManifestError(error.message) from None
    if problem := next(_problems(pod, node_name), None):
        raise ManifestError(problem)
    return Manifest(_static_pod(pod, source, node_name), warnings)


def _decode(data: bytes) -> Object:
    if not data.strip():
        raise ManifestError("is empty")
    try:
        # Try JSON first: YAML rejects tabs and a few other characters that JSON allows.
        return decode_object(data)
    except ValueError:
        pass
    try:
        return decode_object(yaml_to_json(data, most_values=_MAX_VALUES))
    except ValueError as error:
        reason = str(error).replace('in "<byte string>", ', "at ")
        raise ManifestError(f"cannot be read: {reason}") from None


def _check_shape(pod: Object) -> tuple[str, ...]:
    version, kind = pod.get("apiVersion"), pod.get("kind")
    if (version, kind) != ("v1", "Pod"):
        raise ManifestError(f"holds {kind or 'no kind'} of {version or 'no apiVersion'}, not a Pod of v1")
    try:
        unknown = check("v1", "Pod", pod)
    except DecodeError as error:
        raise ManifestError(str(error)) from None
    if not pod.get("metadata", {}).get("name"):
        raise ManifestError("name is needed for the pod: set metadata.name")
    return tuple(unknown)


def _problems(pod: Object, node_name: str) -> Iterator[str]:
    metadata, spec = pod["metadata"], pod["spec"]
    name = _static_pod_name(metadata["name"], node_name)
    yield from (f"metadata.name: {name!r}: {each}" for each in check_dns_subdomain(name))
    namespace = metadata.get("namespace") or "default"
    yield from (f"metadata.namespace: {namespace!r}: {each}" for each in check_dns_label(namespace))
    if not _UID.fullmatch(metadata.get("uid") or "none"):
        yield f"metadata.uid: {metadata['uid']!r} cannot name a folder: use letters, digits and -, or leave it out"
    if MIRROR in (metadata.get("annotations") or {}):
        yield f"metadata.annotations: {MIRROR} is set by the node alone: take it out"
    if not spec.get("containers"):
        yield "spec.containers: a pod needs at least one container"
    if spec.get("ephemeralContainers"):
        yield "spec.ephemeralContainers: cannot be set on create"
    yield from _names_problems((*(spec.get("initContainers") or ()), *(spec.get("containers") or ())))
    if reference := api_reference(spec):
        yield f"static pods may not reference {reference}"


def _names_problems(containers: Iterable[Object]) -> Iterator[str]:
    seen: set[str] = set()
    for container in containers:
        name = container["name"]
        yield from (f"name of a container: {name!r}: {each}" for each in check_dns_label(name))
        if name in seen:
            yield f"two containers are named {name!r}"
        seen.add(name)


def _static_pod_name(name: str, node_name: str) -> str:
    return f"{name}-{node_name.lower()}"


def _static_pod(pod: Object, source: str, node_name: str) -> Object:
    metadata, spec = pod["metadata"], pod["spec"]
    uid = metadata.get("uid") or _digest(pod, source, node_name)
    annotations = {**(metadata.get("annotations") or {}), HASH: uid, SOURCE: "file"}
    tolerations = [each for each in spec.get("tolerations") or () if not _tolerates_all(each)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **metadata,
            "name": _static_pod_name(metadata["name"], node_name),
            "namespace": metadata.get("namespace") or "default",
            "uid": uid,
            "annotations": annotations,
        },
        "spec": {**spec, "nodeName": node_name, "tolerations": [*tolerations, dict(_TOLERATE_ALL)]},
        "status": {"phase": "Pending"},
    }


def _tolerates_all(toleration: dict[str, Any]) -> bool:
    return {name: value for name, value in toleration.items() if value} == _TOLERATE_ALL


def _digest(pod: Object, source: str, node_name: str) -> str:
    parts = (_encode(pod), f"host:{node_name}".encode(), f"file:{source}".encode())
    # Length prefixes separate the parts unambiguously.
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(b"%d:" % len(part) + part)
    return digest.hexdigest()


def api_reference(spec: Mapping[str, Any]) -> str:
    """The kind of API object that the pod references; "" if none."""
    return next(_api_references(spec), "")


def _api_references(spec: Mapping[str, Any]) -> Iterator[str]:
    volumes = spec.get("volumes") or ()
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    projections = [
        each for volume in volumes for each in (volume.get("projected") or {}).get("sources") or ()
    ]
    if spec.get("serviceAccountName"):
        yield "serviceaccounts"
    if (
        spec.get("imagePullSecrets")
        or any(_env_refers_to(each, "secret") for each in containers)
        or any(_has_secret(each) for each in volumes)
        or any("secret" in each for each in projections)
    ):
        yield "secrets"
    if any(_env_refers_to(each, "configMap") for each in containers) or any(
        "configMap" in each for each in (*volumes, *projections)
    ):
        yield "configmaps"
    if spec.get("resourceClaims"):
        yield "resourceclaims"
    for volume in volumes:
        yield from (reference for kind, reference in _VOLUMES.items() if kind in volume)
    for projection in projections:
        yield from (reference for kind, reference in _PROJECTIONS.items() if kind in projection)


def _env_refers_to(container: Mapping[str, Any], kind: str) -> bool:
    """Whether its environment references an object of this kind."""
    return any(f"{kind}Ref" in each for each in container.get("envFrom") or ()) or any(
        f"{kind}KeyRef" in (each.get("valueFrom") or {}) for each in container.get("env") or ()
    )


def _has_secret(volume: Mapping[str, Any]) -> bool:
    return (
        not _SECRETS.isdisjoint(volume)
        or any("secretRef" in (volume.get(kind) or {}) for kind in _WITH_SECRET)
        or "nodePublishSecretRef" in (volume.get("csi") or {})
    )

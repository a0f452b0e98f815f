"""Resolves a pod's claim to a folder of the node.

Supported are persistent volumes that are a folder of the node: hostPath and local. All others need a driver, and none
runs here. Binding claims and scheduling to the right node is up to other components.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podlife.api.codec import Object
from podlife.api.names import check_dns_subdomain
from podlife.api.node_requirement import NodeRequirement
from podlife.client import Client
from podlife.client.refs import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, Ref
from podlife.errors import NotFoundError, PodlifeError
from podlife.kubelet.interfaces import VolumeError
from podlife.kubelet.pod_fields import Pod
from podlife.kubelet.volumemanager.host_path import check_host_path
from podlife.kubelet.volumemanager.layout import SetUpError

_PROTECTION = "kubernetes.io/pvc-protection"
# Fields of a persistent volume that are not its source.
_COMMON = {
    "accessModes",
    "capacity",
    "claimRef",
    "mountOptions",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeAttributesClassName",
    "volumeMode",
}


class _ClaimError(PodlifeError):
    """Why a claim cannot be used, at least for now."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """A persistent volume in a folder of the node."""

    path: str
    readonly: bool
    # hostPath or local.
    kind: str
    source: Mapping[str, Any]

    def check(self) -> None:
        """Raises `SetUpError`."""
        if self.kind == "hostPath":
            check_host_path(self.source)
            return
        check_host_path({"path": self.path})
        if not Path(self.path).is_dir():
            raise SetUpError(f"local volume path {self.path} is not a directory of this node")


class Claims:
    def __init__(self, client: Client, node: Callable[[], Object | None]) -> None:
        self._client = client
        self._node = node

    async def resolve(self, pod: Pod, volume: Mapping[str, Any]) -> Claimed:
        """Raises `VolumeError`."""
        source = volume.get("persistentVolumeClaim") or {}
        metadata = pod["metadata"]
        is_ephemeral = volume.get("ephemeral") is not None
        claim_name = f"{metadata['name']}-{volume['name']}" if is_ephemeral else source.get("claimName") or ""
        namespace = metadata["namespace"]
        try:
            claim = await self._claim(namespace, claim_name)
            if is_ephemeral:
                _check_owner(claim, pod)
            found = await self._volume(claim)
        except _ClaimError as error:
            name = volume["name"]
            raise VolumeError(
                f"Unable to attach or mount volumes: unmounted volumes=[{name}], unattached volumes=[], "
                f"failed to process volumes=[{name}]: error processing PVC {namespace}/{claim_name}: {error}"
            ) from None
        return self._claimed(found, readonly=bool(source.get("readOnly")))

    async def _claim(self, namespace: str, name: str) -> Object:
        claim = await self._get(
            PERSISTENT_VOLUME_CLAIMS, name, namespace, "failed to fetch PVC from API server"
        )
        metadata, spec = claim["metadata"], claim.get("spec") or {}
        is_protected = _PROTECTION in (metadata.get("finalizers") or ())
        if metadata.get("deletionTimestamp") is not None and not is_protected:
            raise _ClaimError("PVC is being deleted")
        if (claim.get("status") or {}).get("phase") != "Bound":
            raise _ClaimError("PVC is not bound")
        if not spec.get("volumeName"):
            raise _ClaimError("PVC has empty pvc.Spec.VolumeName")
        return claim

    async def _volume(self, claim: Object) -> Object:
        name, uid = claim["spec"]["volumeName"], claim["metadata"]["uid"]
        found = await self._get(PERSISTENT_VOLUMES, name, "", f"failed to fetch PV {name} from API server")
        bound_to = found["spec"].get("claimRef")
        if bound_to is None:
            raise _ClaimError(
                f"found PV object {name} but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim"
            )
        if bound_to.get("uid") != uid:
            raise _ClaimError(
                f"found PV object {name} but its pv.Spec.ClaimRef.UID {bound_to.get('uid')} "
                f"does not point to claim.UID {uid}"
            )
        return found

    async def _get(self, ref: Ref, name: str, namespace: str, failed: str) -> Object:
        try:
            if check_dns_subdomain(name):
                raise NotFoundError(f'{ref.plural} "{name}" not found')
            found: Object = await self._client.get(ref, name, namespace)
        except PodlifeError as error:
            raise _ClaimError(f"{failed}: {error}") from None
        return found

    def _claimed(self, found: Object, *, readonly: bool) -> Claimed:
        name, spec = found["metadata"]["name"], found["spec"]
        if spec.get("volumeMode") == "Block":
            raise VolumeError(f'volume "{name}" is a block device: this node does not support those')
        for kind in ("hostPath", "local"):
            if (source := spec.get(kind)) is not None:
                self._check_node(name, spec)
                return Claimed(str(source.get("path") or ""), readonly, kind, source)
        kinds = ", ".join(sorted(spec.keys() - _COMMON)) or "none"
        raise VolumeError(
            f'MountVolume.FindPluginBySpec failed for volume "{name}" : no volume plugin matched: '
            f"of persistent volumes this node supports hostPath and local, not {kinds}"
        )

    def _check_node(self, name: str, spec: Mapping[str, Any]) -> None:
        required = (spec.get("nodeAffinity") or {}).get("required")
        node = self._node()
        if required is None or node is None:
            return
        wanted = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        metadata = node["metadata"]
        requirement = NodeRequirement({"affinity": wanted})
        if not requirement.matches(metadata["name"], metadata.get("labels") or {}):
            raise VolumeError(
                f'MountVolume.NodeAffinity check failed for volume "{name}" : no matching NodeSelectorTerms'
            )


def _check_owner(claim: Object, pod: Pod) -> None:
    owners = claim["metadata"].get("ownerReferences") or ()
    if not any(each.get("controller") and each.get("uid") == pod["metadata"]["uid"] for each in owners):
        names = claim["metadata"], pod["metadata"]
        mine, pods = (f"{each['namespace']}/{each['name']}" for each in names)
        raise _ClaimError(f"PVC {mine} was not created for pod {pods} (pod is not owner)")

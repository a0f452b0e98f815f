"""Provisioner whose volumes are directories of a node: `ROOT/NODE/VOLUME`, for nodes on this machine.

It provisions claims of classes with its name once the scheduler has chosen a node, and removes directory and volume
when a volume with reclaim policy Delete is released. A path is made of names that the API server has checked and never
read from an object: a volume whose path is another one is refused, so nothing outside the root can be removed.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from pathlib import Path

import msgspec

from podlife.api.codec import Object
from podlife.api.names import check_dns_subdomain
from podlife.api.volume_binding import (
    DEFAULT_CLASS_ANNOTATIONS,
    PROVISIONED_BY,
    SELECTED_NODE,
    STORAGE_PROVISIONER,
    Claim,
    StorageClass,
    Volume,
    VolumeMetadata,
    claims_by_class,
    volumes_by_claim,
)
from podlife.client import NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES, DeleteOptions
from podlife.controller import Again, Controller, ControlPlane, Enqueue
from podlife.errors import AlreadyExistsError, ConflictError, NotFoundError, PodlifeError
from podlife.informer.indexes import Key
from podlife.linux.removal import remove_tree
from podlife.volumes.volume_cache import reference
from podlife.workqueue import RateLimitedQueue

log = logging.getLogger(__name__)

PROVISIONER = "podlife.dev/local-path"
CLASS_NAME = "local-path"
_ROOT = "/var/lib/podlife/local-path"
_HOSTNAME = "kubernetes.io/hostname"
_ACCESS_MODES = {"ReadWriteOnce", "ReadWriteOncePod"}
_CATCH_UP_SECONDS = 0.1


class _ClaimRefusedError(PodlifeError):
    """The claim asks for something that a directory is not."""


class _NodeGoneError(_ClaimRefusedError):
    """The scheduler must choose another node."""


class _NodeOfVolume(msgspec.Struct):
    metadata: VolumeMetadata


class LocalPathProvisioner:
    """`root` and its parents are created. Only this user can enter it: nodes reach volumes by mounting them."""

    name = "local-path-provisioner"

    def __init__(self, plane: ControlPlane, *, root: str | Path = _ROOT) -> None:
        self._root = Path(root)
        self._client = plane.client
        self._recorder = plane.recorder(PROVISIONER)
        self.queue: RateLimitedQueue[Key] = RateLimitedQueue("local_path")
        self._claims = plane.informer(PERSISTENT_VOLUME_CLAIMS, view=Claim, indexers=claims_by_class)
        self._volumes = plane.informer(PERSISTENT_VOLUMES, view=Volume, indexers=volumes_by_claim)
        self._classes = plane.informer(STORAGE_CLASSES, view=StorageClass)
        self._nodes = plane.informer(NODES, view=_NodeOfVolume)
        for informer in (self._claims, self._volumes):
            informer.add_handler(Enqueue(self.queue))
        self.controller = Controller(self.name, self.queue, self.reconcile)

    async def run(self) -> None:
        """Create the default class, unless there is one of its name, and work until cancelled."""
        try:
            await asyncio.to_thread(_close_to_others, self._root)
        except OSError as error:
            log.warning("cannot close %s to other users: %s", self._root, error)
        meta = {"name": CLASS_NAME, "annotations": {DEFAULT_CLASS_ANNOTATIONS[0]: "true"}}
        obj = {"metadata": meta, "provisioner": PROVISIONER, "volumeBindingMode": "WaitForFirstConsumer"}
        with suppress(AlreadyExistsError):
            await self._client.create(STORAGE_CLASSES, obj)
        await self.controller.run()

    async def reconcile(self, key: Key) -> Again | None:
        """Raises the server's errors and OSError."""
        if not all(each.is_live for each in (self._claims, self._volumes, self._classes, self._nodes)):
            return Again(_CATCH_UP_SECONDS)
        if not key[0]:
            if (volume := self._volumes.cache.get(*key)) is not None:
                await self._reclaim(volume)
            return None
        claim = self._claims.cache.get(*key)
        if claim is not None and not claim.spec.volume_name and claim.metadata.deletion_timestamp is None:
            await self._provision(claim)
        return None

    async def _provision(self, claim: Claim) -> None:
        storage_class = self._classes.cache.get("", claim.class_name)
        is_asked = claim.metadata.annotations.get(STORAGE_PROVISIONER) == PROVISIONER
        name = f"pvc-{claim.metadata.uid}"
        # Anyone who may write claims can write the annotation: the class counts too.
        if not is_asked or storage_class is None or storage_class.provisioner != PROVISIONER:
            return
        if self._volumes.cache.get("", name) is not None:
            return
        about = reference(PERSISTENT_VOLUME_CLAIMS, claim)
        try:
            volume = self._volume(claim, storage_class, name)
        except _ClaimRefusedError as error:
            message = f'failed to provision volume with StorageClass "{claim.class_name}": {error}'
            self._recorder.event(about, "Warning", "ProvisioningFailed", message)
            if isinstance(error, _NodeGoneError):
                await self._choose_again(claim)
            return
        await asyncio.to_thread(self._create_directory, Path(volume["spec"]["hostPath"]["path"]))
        with suppress(AlreadyExistsError):
            await self._client.create(PERSISTENT_VOLUMES, volume)
        self._recorder.event(
            about, "Normal", "ProvisioningSucceeded", f"Successfully provisioned volume {name}"
        )

    async def _choose_again(self, claim: Claim) -> None:
        meta = claim.metadata
        identity = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        patch = {"metadata": identity | {"annotations": {SELECTED_NODE: None}}}
        with suppress(NotFoundError, ConflictError):
            await self._client.patch(PERSISTENT_VOLUME_CLAIMS, meta.name, patch, meta.namespace)

    def _volume(self, claim: Claim, storage_class: StorageClass, name: str) -> Object:
        node_name = claim.metadata.annotations.get(SELECTED_NODE, "")
        node = self._nodes.cache.get("", node_name)
        if unsupported := set(claim.spec.access_modes) - _ACCESS_MODES:
            raise _ClaimRefusedError(
                f"access mode {min(unsupported)} is not supported, only ReadWriteOnce[Pod]"
            )
        if claim.spec.volume_mode != "Filesystem" or claim.spec.data_source_ref or claim.spec.selector:
            raise _ClaimRefusedError("block devices, data sources and selectors are not supported")
        if not node_name:
            raise _ClaimRefusedError("no node was selected: volumeBindingMode must be WaitForFirstConsumer")
        if node is None:
            raise _NodeGoneError(f'node "{node_name}" not found')
        host = node.metadata.labels.get(_HOSTNAME, node_name)
        expression = {"key": _HOSTNAME, "operator": "In", "values": [host]}
        meta = claim.metadata
        names = {"namespace": meta.namespace, "name": meta.name, "uid": meta.uid}
        return {
            "metadata": {"name": name, "annotations": {PROVISIONED_BY: PROVISIONER}},
            "spec": {
                "accessModes": list(claim.spec.access_modes),
                "capacity": {"storage": claim.spec.resources.requests["storage"]},
                "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **names},
                "hostPath": {"path": str(self._path(node_name, name)), "type": "DirectoryOrCreate"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
                "persistentVolumeReclaimPolicy": storage_class.reclaim_policy,
                "storageClassName": claim.class_name,
                "volumeMode": "Filesystem",
            },
        }

    def _path(self, node_name: str, name: str) -> Path:
        for each in (node_name, name):
            if check_dns_subdomain(each):
                raise PodlifeError(f"invalid name of a directory: {each!r}")
        return self._root / node_name / name

    def _create_directory(self, path: Path) -> None:
        self._root.mkdir(parents=True, exist_ok=True)
        _close_to_others(self._root)
        path.parent.mkdir(exist_ok=True)
        path.mkdir(exist_ok=True)
        # The user of a container is not known here. Others on this machine are kept out by the root.
        path.chmod(0o777)

    async def _reclaim(self, volume: Volume) -> None:
        meta, spec = volume.metadata, volume.spec
        is_own = meta.annotations.get(PROVISIONED_BY) == PROVISIONER
        is_wanted = spec.persistent_volume_reclaim_policy != "Delete" or volume.status.phase != "Released"
        if not is_own or is_wanted or meta.deletion_timestamp is not None:
            return
        path = Path((spec.host_path or {}).get("path", ""))
        try:
            if path != self._path(path.parent.name, meta.name):
                raise PodlifeError(f"path {str(path)!r} is not one of this provisioner")
            await asyncio.to_thread(remove_tree, path)
        except Exception as error:
            about = reference(PERSISTENT_VOLUMES, volume)
            self._recorder.event(about, "Warning", "VolumeFailedDelete", str(error))
            raise
        with suppress(NotFoundError, ConflictError):
            options = DeleteOptions(uid=meta.uid)
            await self._client.delete(PERSISTENT_VOLUMES, meta.name, options=options)


def _close_to_others(root: Path) -> None:
    with suppress(FileNotFoundError):
        root.chmod(0o700)

"""Controllers of persistent volumes: binding, protection of what is in use, claims of ephemeral volumes, and a
provisioner whose volumes are directories of a node.

    plane.add(PersistentVolumeBinder(plane))

All but the provisioner behave as kube-controller-manager's controllers of the same names and work on any API server.
Mounting is left to kubelets, the choice of a node to the scheduler.
"""

from podlife.volumes.binder import PersistentVolumeBinder
from podlife.volumes.ephemeral import EphemeralVolumeController
from podlife.volumes.local_path import LocalPathProvisioner
from podlife.volumes.protection import (
    ClaimProtectionController,
    VolumeAttributesClassProtectionController,
    VolumeProtectionController,
)

__all__ = [
    "ClaimProtectionController",
    "EphemeralVolumeController",
    "LocalPathProvisioner",
    "PersistentVolumeBinder",
    "VolumeAttributesClassProtectionController",
    "VolumeProtectionController",
]

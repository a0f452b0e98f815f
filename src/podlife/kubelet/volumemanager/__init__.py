"""The volumes of the pods of a node: made ready, kept up to date, shown to containers, and removed.

Guarantees:
- A reader of a config map never sees half an update.
- No name, path or link given by a user leads out of a pod's own directory or volume.
- What belongs to the node is never removed.

When pods are mounted and unmounted is left to the kubelet, mounting into the container to the runtime.
"""

from __future__ import annotations

from podlife.kubelet.volumemanager.volume_manager import VolumeManager, VolumeSettings, context_of_status

__all__ = ["VolumeManager", "VolumeSettings", "context_of_status"]

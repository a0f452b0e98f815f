"""The volumes of a node's pods: set up, kept up to date, mounted into containers, and removed.

Guarantees:
- A reader of a config map never sees a partial update.
- No name, path or symlink of a user leads out of a pod's directory or volume.
- Files of the node are never removed.

The kubelet decides when pods are mounted and unmounted; the runtime mounts into the container.
"""

from __future__ import annotations

from podlife.kubelet.volumemanager.layout import release_memory
from podlife.kubelet.volumemanager.volume_manager import VolumeManager, VolumeSettings, context_of_status

__all__ = ["VolumeManager", "VolumeSettings", "context_of_status", "release_memory"]

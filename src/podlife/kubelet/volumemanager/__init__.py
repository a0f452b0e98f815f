"""The volumes of the pods of a node: made ready, kept up to date, shown to containers, and removed.

`NodeVolumes` is the whole of it. Guaranteed: a reader of a config map never sees half an update; no name, path or link
of a user's leads out of a pod's own folder or volume; what belongs to the node is never removed. Left to others: when
pods are mounted and unmounted, and mounting in the container's own view, which is the runtime's.
"""

from __future__ import annotations

from podlife.kubelet.volumemanager.volume_manager import NodeVolumes, VolumeSettings, surroundings_of_status

__all__ = ["NodeVolumes", "VolumeSettings", "surroundings_of_status"]

"""The pod collector as one controller of many."""

from __future__ import annotations

from podlife.controller import ControlPlane
from podlife.daemons.catalog import POD_GC
from podlife.daemons.gc import Collecting
from podlife.podgc import Settings

__all__ = ["PodGarbageCollector"]


class PodGarbageCollector(Collecting):
    """It has caches of its own, since it keeps less of a pod than the others do."""

    name = POD_GC

    def __init__(self, plane: ControlPlane, *, threshold: int, quarantine_seconds: float) -> None:
        settings = Settings(threshold=threshold, quarantine_seconds=quarantine_seconds)
        super().__init__(plane.client, settings, plane.clock, plane.recorder("podlife-gc"))

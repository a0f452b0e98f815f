"""Garbage collector for owners and dependents of all resources of a server.

    plane.add(OwnerGarbageCollector(plane))

An object whose owners are all gone is deleted (background). An owner that is deleted in the foreground is removed
after the dependents that block it. One that is deleted with `Orphan` leaves its dependents without their reference to
it.
"""

from podlife.ownergc.garbage_collector import IGNORED, OwnerGarbageCollector

__all__ = ["IGNORED", "OwnerGarbageCollector"]

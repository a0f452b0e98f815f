"""The garbage collector of owners and dependents, for every resource that a server has.

    plane.add(OwnerGarbageCollector(plane))

An object whose owners are all gone is deleted (background); an owner that is deleted in the foreground goes after the
dependents that block it; one that is deleted with `Orphan` leaves its dependents behind, without their reference to it.
"""

from podlife.ownergc.garbage_collector import IGNORED, OwnerGarbageCollector

__all__ = ["IGNORED", "OwnerGarbageCollector"]

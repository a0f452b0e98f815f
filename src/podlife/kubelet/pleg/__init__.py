"""The pod lifecycle event generator: observes the runtime, fills the pod cache, and emits an event per change.

`events` compares two observations and is pure; `GenericPLEG` decides when to list and when to read one pod.
"""

from podlife.kubelet.pleg.events import PodLifecycleEvent, PodLifecycleEventType
from podlife.kubelet.pleg.generic import GenericPLEG
from podlife.kubelet.pleg.pod_cache import PodCache

__all__ = ["GenericPLEG", "PodCache", "PodLifecycleEvent", "PodLifecycleEventType"]

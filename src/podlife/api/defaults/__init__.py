"""kube-apiserver's defaulting of pods: for a server that stores them, and for a node that reads them from files.
Objects must have passed the schema check."""

from podlife.api.defaults.pods import default_container, default_pod, default_pod_spec
from podlife.api.defaults.volumes import default_claim_spec, default_volume, default_volume_source

__all__ = [
    "default_claim_spec",
    "default_container",
    "default_pod",
    "default_pod_spec",
    "default_volume",
    "default_volume_source",
]

"""Whether the node takes a pod: the kubelet's own check of resources, ports, affinity, taints and sysctls (ST-18).

`predicates` decides and is pure; `Admitter` remembers which pods have a place.
"""

from __future__ import annotations

from podlife.kubelet.admission.admitter import Admitter
from podlife.kubelet.admission.predicates import AdmissionFailure, in_order_of_admission, rejected_status
from podlife.kubelet.admission.sysctls import sysctls_of

__all__ = [
    "AdmissionFailure",
    "Admitter",
    "in_order_of_admission",
    "rejected_status",
    "sysctls_of",
]

"""Out-of-service controller: adds and removes the out-of-service taint, with safeguards. Nodes that are certainly
down release their pods and volumes, so that a StatefulSet fails over without an operator.

`OutOfServiceController` reads and acts; `decision` decides, pure; `fence_checks` confirm that a machine is down. The
controller is off by default and does nothing without a fence check. The taint eviction controller and the pod garbage
collector, here or in kube-controller-manager, delete the pods; the attach-detach controller detaches the volumes.
"""

from podlife.nodehealth.out_of_service.controller import OutOfServiceController
from podlife.nodehealth.out_of_service.fence_checks import (
    CommandCheck,
    FenceAnswer,
    FenceCheck,
    FenceResult,
    FenceSubject,
    ProviderGoneCheck,
    WebhookCheck,
)
from podlife.nodehealth.out_of_service.settings import OutOfServiceSettings, Portion

__all__ = [
    "CommandCheck",
    "FenceAnswer",
    "FenceCheck",
    "FenceResult",
    "FenceSubject",
    "OutOfServiceController",
    "OutOfServiceSettings",
    "Portion",
    "ProviderGoneCheck",
    "WebhookCheck",
]

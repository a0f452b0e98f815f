"""The out-of-service taint, set and taken off by itself, guarded: nodes that are dead for certain give up their pods
and volumes, so that a StatefulSet fails over with nobody awake.

`OutOfServiceController` looks and acts; `decision` decides, pure; `fencing` asks whether a machine is dead. Off unless
somebody runs it, and nothing without a fence check. What happens to the pods is for the taint eviction controller and
the pod collector, here or in kube-controller-manager; what happens to volumes for the attach-detach controller.
"""

from podlife.nodehealth.out_of_service.controller import OutOfServiceController
from podlife.nodehealth.out_of_service.facts import Answer, Result
from podlife.nodehealth.out_of_service.fence_checks import (
    Check,
    CommandCheck,
    ProviderGoneCheck,
    Subject,
    WebhookCheck,
)
from podlife.nodehealth.out_of_service.settings import OutOfServiceSettings, Portion

__all__ = [
    "Answer",
    "Check",
    "CommandCheck",
    "OutOfServiceController",
    "OutOfServiceSettings",
    "Portion",
    "ProviderGoneCheck",
    "Result",
    "Subject",
    "WebhookCheck",
]

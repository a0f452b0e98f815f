"""Fence checks: confirm that a machine is down.

A check receives a `FenceSubject` and answers within its timeout. A check that hangs, fails or answers anything else
is not a confirmation, and never raises. How many confirmations are required is decided in `decision`.
"""

from podlife.nodehealth.out_of_service.fence_checks.check import (
    FenceAnswer,
    FenceCheck,
    FenceResult,
    FenceSubject,
    FenceVerdict,
)
from podlife.nodehealth.out_of_service.fence_checks.command import CommandCheck, ProviderGoneCheck
from podlife.nodehealth.out_of_service.fence_checks.webhook import WebhookCheck

__all__ = [
    "CommandCheck",
    "FenceAnswer",
    "FenceCheck",
    "FenceResult",
    "FenceSubject",
    "FenceVerdict",
    "ProviderGoneCheck",
    "WebhookCheck",
]

"""Fence checks: who is asked whether a machine is dead.

Each is given a `Subject` and answers within its time. Whatever goes wrong with it, it hangs, fails or answers something
else, is not a confirmation, and never an exception. How many have to confirm it is for the decision.
"""

from podlife.nodehealth.out_of_service.fence_checks.check import Check, Subject
from podlife.nodehealth.out_of_service.fence_checks.command import CommandCheck, ProviderGoneCheck
from podlife.nodehealth.out_of_service.fence_checks.webhook import WebhookCheck

__all__ = ["Check", "CommandCheck", "ProviderGoneCheck", "Subject", "WebhookCheck"]

"""Why pods are collected."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why a pod is collected, in the order in which a pass checks (GC-05); upstream's metric labels (GC-110)."""

    TERMINATED = "terminated"
    OUT_OF_SERVICE = "out-of-service"
    ORPHANED = "orphaned"
    UNSCHEDULED = "unscheduled"


class RuleReason(StrEnum):
    """Why a policy rule releases a pod."""

    # It ended longer ago than the rule allows.
    EXPIRED = "expired"
    # Its group has more pods than the rule keeps, and it is among the oldest.
    SURPLUS = "surplus"
    # It was deleted and still exists too long after its grace period.
    STUCK_TERMINATING = "stuck-terminating"


Cause = Reason | RuleReason

"""The Lease object of client-go's leader election, and who may acquire it. Pure.

Times in a Lease are informative: no clock but one's own is trusted. A holder is alive as long as the Lease changes,
and each observer measures how long it has not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime

from podlife.api.codec import Object, format_micro_time, parse_time
from podlife.client import LEASES
from podlife.clock import add_seconds


@dataclass(frozen=True, slots=True)
class LeaseObservation:
    """A Lease's spec, and when (by our own clock) it was first seen so."""

    spec: Object
    at: float


def observe(seen: LeaseObservation | None, lease: Object, now: float) -> LeaseObservation:
    """The observation after reading the lease: an unchanged lease keeps its age."""
    spec = lease.get("spec") or {}
    return seen if seen is not None and seen.spec == spec else LeaseObservation(spec, now)


def holder_of(spec: Object) -> str:
    return str(spec.get("holderIdentity") or "")


def is_free(seen: LeaseObservation, identity: str, now: float, lease_seconds: float) -> bool:
    """Whether `identity` may write itself into the lease: it is nobody's, its own, or has not changed for as
    long as its holder has promised to renew it within. A holder that promised nothing gets our own time."""
    holder = holder_of(seen.spec)
    return holder in ("", identity) or seen.at + promised_seconds(seen.spec, lease_seconds) <= now


def promised_seconds(spec: Object, lease_seconds: float) -> float:
    """Within which time its holder has promised to renew it; ours, where it promised nothing."""
    return float(spec.get("leaseDurationSeconds") or lease_seconds)


def make_lease(namespace: str, name: str, spec: Object) -> Object:
    return {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def claim(old: Object | None, identity: str, lease_seconds: float, now: datetime) -> Object:
    """The spec with which `identity` takes the lease; if it is the holder already, a renewal."""
    is_mine = old is not None and holder_of(old) == identity
    transitions = 0 if old is None else int(old.get("leaseTransitions") or 0) + (not is_mine)
    moment = format_micro_time(now)
    mine = {
        **(old or {}),
        "holderIdentity": identity,
        # Whole seconds, as the API has it; more rather than less, since others count on it.
        "leaseDurationSeconds": math.ceil(lease_seconds),
        # An int32, and the lease must be taken all the same.
        "leaseTransitions": min(transitions, 2**31 - 1),
    }
    return renew(mine, now) if is_mine else {**mine, "acquireTime": moment, "renewTime": moment}


def renew(spec: Object, now: datetime) -> Object:
    """The spec with a new time, even if our clock stands still: others see that we live by the change alone."""
    moment = format_micro_time(now)
    if (last := spec.get("renewTime") or "") >= moment:
        moment = format_micro_time(add_seconds(parse_time(last), 1e-6))
    return {**spec, "renewTime": moment}


def release(spec: Object, now: datetime) -> Object:
    """The spec of a released lease, which any candidate may acquire immediately."""
    moment = format_micro_time(now)
    nobody = {"holderIdentity": "", "leaseDurationSeconds": 1, "acquireTime": moment, "renewTime": moment}
    return {**spec, **nobody}

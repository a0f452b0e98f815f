"""The order in which pods are deleted, and the order in which logs are read. Pure.

Criteria and their order are upstream's. With a reference time, ages are compared by their power of two, and within
one by UID: among pods of similar age the choice is random and not always the youngest. As upstream, the order is not
transitive in rare cases; the same input always gives the same result.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from podlife.podcontrol.pod_state import is_ready, ready_since
from podlife.podcontrol.views import OwnedPod

P = TypeVar("P", bound=OwnedPod)

POD_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"

# Any other phase ranks like the first (RK-03).
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
# As strconv parses it, after upstream's check of the first character.
_COST = re.compile(r"0|[1-9][0-9]*|-[0-9]+")
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class _Facts(Generic[P]):
    """The compared fields of a pod, computed once."""

    pod: P
    # Compared before the times: smaller is deleted first.
    before: tuple[int, ...]
    ready_at: datetime | None
    restarts: tuple[int, int]
    created_at: datetime | None


def deletion_order(pods: Iterable[P]) -> list[P]:
    """The pods in deletion order (RK-01 to RK-05)."""
    return _sorted([_facts(pod, _stage(pod)) for pod in pods], None)


def deletion_order_with_ranks(
    pods: Iterable[P], ranks: Sequence[int], now: datetime | None, *, use_deletion_cost: bool = True
) -> list[P]:
    """With a rank for each pod, the higher deleted first, and deletion costs, which take precedence (RK-10 to RK-22).
    `now` is the reference for ages; None compares them exactly. Raises ValueError if ranks and pods differ in
    number."""
    facts = []
    for pod, rank in zip(pods, ranks, strict=True):
        cost = deletion_cost(pod.metadata.annotations) if use_deletion_cost else 0
        facts.append(_facts(pod, (*_stage(pod), cost, -rank)))
    return _sorted(facts, now)


def logging_order(pods: Iterable[P]) -> list[P]:
    """The pods, the best one to read logs from first (RK-30, RK-31)."""
    facts = [_facts(pod, ()) for pod in pods]
    return [each.pod for each in sorted(facts, key=functools.cmp_to_key(_compare_for_logs))]


def deletion_cost(annotations: Mapping[str, str]) -> int:
    """The value of the annotation; 0 if it is missing or not a 32-bit integer (RK-11)."""
    text = annotations.get(POD_DELETION_COST, "")
    if _COST.fullmatch(text) is None:
        return 0
    sign, digits = ("-", text[1:]) if text[0] == "-" else ("", text)
    digits = digits.lstrip("0") or "0"
    # Ten digits hold 32 bits, and Python refuses to parse thousands.
    cost = int(sign + digits) if len(digits) <= 10 else 2**31
    return cost if -(2**31) <= cost < 2**31 else 0


def _sorted(facts: list[_Facts[P]], now: datetime | None) -> list[P]:
    compare = functools.partial(_compare, now=now)
    return [each.pod for each in sorted(facts, key=functools.cmp_to_key(compare))]


def _stage(pod: OwnedPod) -> tuple[int, int, int]:
    return (int(bool(pod.spec.node_name)), _PHASES.get(pod.status.phase, 0), int(is_ready(pod)))


def _facts(pod: P, before: tuple[int, ...]) -> _Facts[P]:
    return _Facts(pod, before, ready_since(pod), _restarts(pod), pod.metadata.creation_timestamp)


def _restarts(pod: OwnedPod) -> tuple[int, int]:
    """Maximum restarts of regular containers and of sidecars; plain init containers do not count (RK-05)."""
    sidecars = {each.name for each in pod.spec.init_containers if each.restart_policy == "Always"}
    regular = (each.restart_count for each in pod.status.container_statuses)
    beside = (each.restart_count for each in pod.status.init_container_statuses if each.name in sidecars)
    return max(regular, default=0), max(beside, default=0)


def _compare(one: _Facts[P], other: _Facts[P], now: datetime | None) -> int:
    if one.before != other.before:
        return -1 if one.before < other.before else 1
    if one.ready_at != other.ready_at:
        return _compare_ages(one, other, (one.ready_at, other.ready_at), now)
    if one.restarts != other.restarts:
        return -1 if one.restarts > other.restarts else 1
    if one.created_at != other.created_at:
        return _compare_ages(one, other, (one.created_at, other.created_at), now)
    return 0


def _compare_ages(
    one: _Facts[P], other: _Facts[P], times: tuple[datetime | None, datetime | None], now: datetime | None
) -> int:
    first, second = times
    if now is None or first is None or second is None:
        return -1 if _is_later_or_none(first, second) else 1
    difference = _age_rank(first, now) - _age_rank(second, now)
    if difference:
        return difference
    uids = one.pod.metadata.uid, other.pod.metadata.uid
    return 0 if uids[0] == uids[1] else -1 if uids[0] < uids[1] else 1


def _is_later_or_none(first: datetime | None, second: datetime | None) -> bool:
    if first is None or second is None:
        return first is None
    return first > second


def _age_rank(moment: datetime, now: datetime) -> int:
    """The power of two of the age in nanoseconds; -1 for a time in the future (RK-12)."""
    nanoseconds = (now - moment) // _MICROSECOND * 1000
    return nanoseconds.bit_length() - 1 if nanoseconds > 0 else -1


def _compare_for_logs(one: _Facts[P], other: _Facts[P]) -> int:
    (scheduled, phase, ready), (other_scheduled, other_phase, other_ready) = (
        _stage(one.pod),
        _stage(other.pod),
    )
    if scheduled != other_scheduled:
        return other_scheduled - scheduled
    if one.pod.status.phase != other.pod.status.phase:
        # Different phases of equal rank compare as equal (RK-31).
        return other_phase - phase
    if ready != other_ready:
        return other_ready - ready
    if one.ready_at != other.ready_at:
        return -1 if _is_later_or_none(other.ready_at, one.ready_at) else 1
    if one.restarts != other.restarts:
        return -1 if one.restarts > other.restarts else 1
    if one.created_at != other.created_at:
        return -1 if _is_later_or_none(other.created_at, one.created_at) else 1
    return 0

"""The normal form in which statuses are stored and compared (SM-03 to SM-05). Pure.

Times have whole seconds, container statuses a fixed order, termination messages a size limit. Two statuses are equal if
they differ only in fields the kubelet does not write, or in how they express absence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from podlife.api.codec import Object, format_time, parse_time
from podlife.kubelet.constants import TERMINATION_MESSAGES_BYTES
from podlife.kubelet.pod_fields import Pod, condition_of, containers_of, init_containers_of
from podlife.kubelet.status.conditions import is_written_by_kubelet

# Written by other components.
FOREIGN = ("resourceClaimStatuses", "extendedResourceClaimStatus", "nodeAllocatableResourceClaimStatuses")
# Written by other components, unless the kubelet sets them.
KEPT = ("qosClass", "nominatedNodeName")
_LISTS = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_TIMES = frozenset(("startedAt", "finishedAt", "lastTransitionTime", "lastProbeTime", "startTime"))
# Scalar types, which most values of a status have.
_PLAIN = frozenset((str, int, bool, float, type(None)))


def with_transition_times(
    conditions: Iterable[Mapping[str, Any]], old_status: Mapping[str, Any], now: datetime
) -> list[Object]:
    """A condition keeps its time while its status stays the same (SM-03). Other writers' conditions are unchanged."""
    result = []
    for condition in conditions:
        if not is_written_by_kubelet(condition["type"]):
            result.append(dict(condition))
            continue
        old = condition_of(old_status, condition["type"])
        is_kept = old is not None and old.get("status") == condition.get("status")
        time = old.get("lastTransitionTime") if old is not None and is_kept else format_time(now)
        result.append({**condition, "lastTransitionTime": time})
    return result


def normalized(pod: Pod, status: Mapping[str, Any]) -> Object:
    """An equivalent status in normal form."""
    spec = pod["spec"]
    count = (
        len(containers_of(pod)) + len(init_containers_of(pod)) + len(spec.get("ephemeralContainers") or ())
    )
    bound = TERMINATION_MESSAGES_BYTES // max(count, 1)
    result = _with_whole_seconds(status)
    if result.get("conditions"):
        result["conditions"] = [_with_whole_seconds(each) for each in result["conditions"]]
    for key in _LISTS:
        if result.get(key):
            result[key] = [_container(each, bound) for each in result[key]]
            result[key].sort(key=lambda each: str(each["name"]))
    if result.get("initContainerStatuses"):
        positions = {each["name"]: position for position, each in enumerate(init_containers_of(pod))}
        result["initContainerStatuses"].sort(key=lambda each: positions.get(each["name"], len(positions)))
    return result


def _container(status: Mapping[str, Any], bound: int) -> Object:
    """Only `state` and `lastState` of a container contain times."""
    result = dict(status)
    for which in ("state", "lastState"):
        if state := result.get(which):
            result[which] = {name: _detail(each, bound) for name, each in state.items()}
    return result


def _detail(state: Mapping[str, Any] | None, bound: int) -> Object | None:
    if state is None:
        return None
    result = _with_whole_seconds(state)
    # Only termination messages can be long.
    if result.get("message") and "exitCode" in result:
        result["message"] = cut_message(result["message"], bound)
    return result


def _with_whole_seconds(value: Mapping[str, Any]) -> Object:
    return {key: _without_fraction(each) if key in _TIMES else each for key, each in value.items()}


def _without_fraction(time: str | None) -> str | None:
    """Times of other writers that cannot be parsed stay unchanged."""
    if not time or len(time) == len("2006-01-02T15:04:05Z"):
        return time
    try:
        return format_time(parse_time(time))
    except ValueError:
        return time


def cut_message(message: str, bound: int) -> str:
    """At most `bound` bytes, without splitting a character."""
    return message.encode("utf-8", "replace")[:bound].decode("utf-8", "ignore")


def has_same_meaning(one: Any, other: Any) -> bool:
    """Whether two API values are equivalent: a missing field equals an empty one."""
    # Fast path: mostly nothing has changed.
    return bool(one == other or _canonical(one) == _canonical(other))


def _canonical(value: Any) -> Any:
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Mapping):
        canonical = {name: _canonical(each) for name, each in value.items()}
        # An empty state (such as `waiting`) is meaningful, and so is `started: false`.
        return {
            name: each
            for name, each in canonical.items()
            if each or name in ("waiting", "running", "terminated") or (name == "started" and each is False)
        }
    if isinstance(value, list | tuple):
        return [_canonical(each) for each in value]
    return value


def is_same_by_kubelet(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether all fields that the kubelet writes are equal (SM-04)."""
    if _own_conditions(old) != _own_conditions(new):
        return False
    ignored = ("conditions", *FOREIGN, *KEPT)
    return has_same_meaning(
        {key: value for key, value in old.items() if key not in ignored},
        {key: value for key, value in new.items() if key not in ignored},
    )


def _own_conditions(status: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    return {
        each["type"]: (each.get("status"), each.get("reason") or "", each.get("message") or "")
        for each in status.get("conditions") or ()
        if is_written_by_kubelet(each["type"])
    }

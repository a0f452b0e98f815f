"""The normal form in which statuses are kept and compared (SM-03 to SM-05). Pure.

Times have whole seconds, container statuses a fixed order, termination messages a limit. Two statuses are equal when
they differ only in what the node does not write, or in how they express absence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from podlife.api.codec import Object, format_time, parse_time
from podlife.kubelet.constants import TERMINATION_MESSAGES_BYTES
from podlife.kubelet.pod_fields import Pod, condition_of, containers_of, init_containers_of
from podlife.kubelet.status.conditions import is_written_by_kubelet

# Written by others into the same status.
FOREIGN = ("resourceClaimStatuses", "extendedResourceClaimStatus", "nodeAllocatableResourceClaimStatuses")
# Written by others, unless the node has something to say.
KEPT = ("qosClass", "nominatedNodeName")
_LISTS = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_TIMES = frozenset(("startedAt", "finishedAt", "lastTransitionTime", "lastProbeTime", "startTime"))
# What is nothing but itself, which most values of a status are.
_PLAIN = frozenset((str, int, bool, float, type(None)))


def with_transition_times(
    conditions: Iterable[Mapping[str, Any]], old_status: Mapping[str, Any], now: datetime
) -> list[Object]:
    """A condition whose value stays keeps its time (SM-03). Those of others are left as they are."""
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
    """Another status that says the same."""
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
        places = {each["name"]: place for place, each in enumerate(init_containers_of(pod))}
        result["initContainerStatuses"].sort(key=lambda each: places.get(each["name"], len(places)))
    return result


def _container(status: Mapping[str, Any], bound: int) -> Object:
    """Of a container times stand in what it does and did, and nowhere else."""
    result = dict(status)
    for which in ("state", "lastState"):
        if state := result.get(which):
            result[which] = {name: _detail(each, bound) for name, each in state.items()}
    return result


def _detail(state: Mapping[str, Any] | None, bound: int) -> Object | None:
    if state is None:
        return None
    result = _with_whole_seconds(state)
    # Only the end of a container has a message without a bound of its own.
    if result.get("message") and "exitCode" in result:
        result["message"] = cut_message(result["message"], bound)
    return result


def _with_whole_seconds(value: Mapping[str, Any]) -> Object:
    return {key: _without_fraction(each) if key in _TIMES else each for key, each in value.items()}


def _without_fraction(time: str | None) -> str | None:
    """A time that other components wrote and that cannot be read stays as it is."""
    if not time or len(time) == len("2006-01-02T15:04:05Z"):
        return time
    try:
        return format_time(parse_time(time))
    except ValueError:
        return time


def cut_message(message: str, bound: int) -> str:
    """At most that many bytes, and no letter by halves."""
    return message.encode("utf-8", "replace")[:bound].decode("utf-8", "ignore")


def has_same_meaning(one: Any, other: Any) -> bool:
    """Whether two values of the API say the same: a field left out is one with nothing in it."""
    # Mostly nothing has changed, and that is found out much faster.
    return bool(one == other or _told(one) == _told(other))


def _told(value: Any) -> Any:
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Mapping):
        told = {name: _told(each) for name, each in value.items()}
        # That a container waits says something, even without a reason; so does that it has not started.
        return {
            name: each
            for name, each in told.items()
            if each or name in ("waiting", "running", "terminated") or (name == "started" and each is False)
        }
    if isinstance(value, list | tuple):
        return [_told(each) for each in value]
    return value


def is_same_by_kubelet(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether nothing has changed of what a node writes (SM-04)."""
    if _conditions_told(old) != _conditions_told(new):
        return False
    left_out = ("conditions", *FOREIGN, *KEPT)
    return has_same_meaning(
        {key: value for key, value in old.items() if key not in left_out},
        {key: value for key, value in new.items() if key not in left_out},
    )


def _conditions_told(status: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    return {
        each["type"]: (each.get("status"), each.get("reason") or "", each.get("message") or "")
        for each in status.get("conditions") or ()
        if is_written_by_kubelet(each["type"])
    }

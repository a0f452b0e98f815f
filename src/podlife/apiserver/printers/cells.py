"""Cells that several kinds share: ages and durations, labels and selectors, containers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from podlife.api.codec import Object
from podlife.api.selectors import label_selector_from_dict

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY_HOURS = 24
_YEAR_HOURS = 365 * _DAY_HOURS


def epoch(time: str) -> float:
    """An RFC 3339 time as seconds since the epoch."""
    return datetime.fromisoformat(time).timestamp()


def human_duration(seconds: float) -> str:
    """Upstream's short form, which keeps two or three significant figures: `90s`, `5m10s`, `3h`, `2y30d`.

    Slightly negative durations are attributed to clock skew and shown as zero.
    """
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 0:
        return "0s"
    if whole < 2 * _MINUTE:
        return f"{whole}s"
    if whole < 10 * _MINUTE:
        return _two_units(whole, _MINUTE, "m", "s")
    if whole < 3 * _HOUR:
        return f"{whole // _MINUTE}m"
    if whole < 8 * _HOUR:
        return _two_units(whole // _MINUTE, 60, "h", "m")
    return _many_hours(whole // _HOUR)


def _many_hours(hours: int) -> str:
    if hours < 2 * _DAY_HOURS:
        return f"{hours}h"
    if hours < 8 * _DAY_HOURS:
        return _two_units(hours, _DAY_HOURS, "d", "h")
    if hours < 2 * _YEAR_HOURS:
        return f"{hours // _DAY_HOURS}d"
    if hours < 8 * _YEAR_HOURS:
        return _two_units(hours // _DAY_HOURS, 365, "y", "d")
    return f"{hours // _YEAR_HOURS}y"


def _two_units(amount: int, size: int, large: str, small: str) -> str:
    whole, rest = divmod(amount, size)
    return f"{whole}{large}{rest}{small}" if rest else f"{whole}{large}"


def since(time: str | None, now: float) -> str:
    """How long ago a time was, as upstream shows it."""
    return human_duration(now - epoch(time)) if time else "<unknown>"


def age(obj: Object, now: float) -> str:
    return since(obj["metadata"].get("creationTimestamp"), now)


def format_labels(labels: Mapping[str, str] | None) -> str:
    if not labels:
        return "<none>"
    return ",".join(sorted(f"{key}={value}" for key, value in labels.items()))


def format_selector(selector: Object | None, *, empty: str = "<none>", broken: str = "<error>") -> str:
    """Format a `metav1.LabelSelector`; the text for an empty or a broken one differs by kind."""
    try:
        return str(label_selector_from_dict(selector)) or empty
    except ValueError:
        return broken


def names_and_images(pod_spec: Object) -> list[str]:
    """Two cells: the names of the containers and their images."""
    containers: Sequence[Object] = pod_spec.get("containers", ())
    return [
        ",".join(container.get("name", "") for container in containers),
        ",".join(container.get("image", "") for container in containers),
    ]


def condition_status(obj: Object, condition_type: str) -> str | None:
    """Status of the first condition of this type, or None if there is none."""
    for condition in obj.get("status", {}).get("conditions", ()):
        if condition.get("type") == condition_type:
            status: str = condition.get("status", "")
            return status
    return None

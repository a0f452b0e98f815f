"""Cells that several kinds share: ages and durations, labels and selectors, containers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from podlife.api.codec import Object
from podlife.api.durations import human_duration
from podlife.api.selectors import label_selector_from_dict


def epoch(time: str) -> float:
    """An RFC 3339 time as seconds since the epoch."""
    return datetime.fromisoformat(time).timestamp()


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

"""What people write on namespaces to stop the collector, or to let it go on after it has stopped by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from podlife.api.codec import format_time, parse_time
from podlife.podgc.policy.model import STOP

__all__ = ["EVERYWHERE", "FORCE_UNTIL", "Marks", "force_command", "marks_of", "unstop_command"]

FORCE_UNTIL = "podlife.dev/gc-force-until"
"""On a namespace: until this RFC 3339 time no share of it is too much; on kube-system: no share of anything. A value
that cannot be read forces nothing."""

EVERYWHERE = "kube-system"
"""The namespace whose marks hold for the whole cluster."""

_FORCE_FOR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Marks:
    """By namespace: why nothing is collected there, until when shares are not looked at, and what was to say so and
    cannot be read."""

    stops: Mapping[str, str] = field(default_factory=dict)
    forced_until: Mapping[str, datetime] = field(default_factory=dict)
    unreadable: Mapping[str, str] = field(default_factory=dict)

    def stop_of(self, namespace: str) -> tuple[str, str] | None:
        """Which namespace's mark stops it, and why."""
        for each in (EVERYWHERE, namespace):
            if each in self.stops:
                return each, self.stops[each]
        return None

    def is_forced(self, namespace: str, now: datetime) -> bool:
        """With an empty name, the whole cluster."""
        named = (self.forced_until.get(each) for each in (EVERYWHERE, namespace))
        return any(until is not None and now < until for until in named)


def marks_of(annotations: Mapping[str, Mapping[str, str]]) -> Marks:
    """Of the annotations of every namespace, by its name."""
    stops: dict[str, str] = {}
    forced: dict[str, datetime] = {}
    unreadable: dict[str, str] = {}
    for namespace, texts in annotations.items():
        if STOP in texts:
            stops[namespace] = texts[STOP]
        if (text := texts.get(FORCE_UNTIL)) is None:
            continue
        try:
            forced[namespace] = parse_time(text)
        except ValueError:
            unreadable[namespace] = text
    return Marks(stops, forced, unreadable)


def force_command(namespace: str, now: datetime) -> str:
    """What a person types so that a stop is lifted for an hour; with an empty name that of the whole cluster."""
    until = format_time(now + _FORCE_FOR)
    return f"kubectl annotate namespace {namespace or EVERYWHERE} {FORCE_UNTIL}={until} --overwrite"


def unstop_command(namespace: str) -> str:
    return f"kubectl annotate namespace {namespace} {STOP}-"

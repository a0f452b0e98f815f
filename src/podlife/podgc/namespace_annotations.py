"""Annotations on namespaces that stop the collector, or lift a stop of the share guards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from podlife.api.codec import format_time, parse_time
from podlife.podgc.policy.model import STOP
from podlife.podgc.views import Namespace

FORCE_UNTIL = "podlife.dev/gc-force-until"
"""On a namespace: an RFC 3339 time until which its share guard is lifted; on kube-system: all share guards. An invalid
value has no effect."""

EVERYWHERE = "kube-system"
"""The namespace whose annotations apply to the whole cluster."""

_FORCE_FOR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class GuardAnnotations:
    """By namespace: the reason of a stop, until when the share guard is lifted, and invalid values of FORCE_UNTIL."""

    stops: Mapping[str, str] = field(default_factory=dict)
    forced_until: Mapping[str, datetime] = field(default_factory=dict)
    unreadable: Mapping[str, str] = field(default_factory=dict)

    def stop_of(self, namespace: str) -> tuple[str, str] | None:
        """The namespace with the annotation that stops it, and the reason."""
        for each in (EVERYWHERE, namespace):
            if each in self.stops:
                return each, self.stops[each]
        return None

    def is_forced(self, namespace: str, now: datetime) -> bool:
        """With an empty name, the whole cluster."""
        named = (self.forced_until.get(each) for each in (EVERYWHERE, namespace))
        return any(until is not None and now < until for until in named)


def annotations_of(namespaces: Iterable[Namespace]) -> GuardAnnotations:
    stops: dict[str, str] = {}
    forced: dict[str, datetime] = {}
    unreadable: dict[str, str] = {}
    for each in namespaces:
        namespace, texts = each.metadata.name, each.metadata.annotations
        if STOP in texts:
            stops[namespace] = texts[STOP]
        if (text := texts.get(FORCE_UNTIL)) is None:
            continue
        try:
            forced[namespace] = parse_time(text)
        except ValueError:
            unreadable[namespace] = text
    return GuardAnnotations(stops, forced, unreadable)


def force_command(namespace: str, now: datetime) -> str:
    """The command that lifts a share guard for an hour; with an empty name, for the whole cluster."""
    until = format_time(now + _FORCE_FOR)
    return f"kubectl annotate namespace {namespace or EVERYWHERE} {FORCE_UNTIL}={until} --overwrite"


def unstop_command(namespace: str) -> str:
    return f"kubectl annotate namespace {namespace} {STOP}-"

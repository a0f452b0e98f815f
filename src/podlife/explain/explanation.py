"""The result of a diagnosis: stage, causes, upcoming actions and remedies.

Plain data, the same for a terminal and for programs (`as_dict`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from podlife.api.codec import format_time


@dataclass(frozen=True, slots=True)
class Remedy:
    """A command for a shell. What only a person can know stands in it as `<WORD>`."""

    command: str
    risk: str


@dataclass(frozen=True, slots=True)
class UpcomingAction:
    """Who will act by itself, on what, and when; without `at` not before something else happens. With `is_from_now`
    the time is a length from now: the next look says a later one."""

    who: str
    what: str
    at: datetime | None = None
    is_from_now: bool = False


@dataclass(frozen=True, slots=True)
class Cause:
    """`is_stuck` is False for what only takes its time, as it should. The first remedy is the one to try first."""

    name: str
    text: str
    since: datetime | None = None
    remedies: tuple[Remedy, ...] = ()
    upcoming: tuple[UpcomingAction, ...] = ()
    is_stuck: bool = True


@dataclass(frozen=True, slots=True)
class Happening:
    """`kind` sorts it for a drawing: created scheduled started ended restarted unhealthy evicted delete prestop term
    kill condition taint event warning."""

    at: datetime
    what: str
    who: str = ""
    kind: str = "event"


@dataclass(frozen=True, slots=True)
class Explanation:
    """`unread` is what could not be looked at, and may have been the cause."""

    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    stage: str = ""
    deletion: str = ""
    causes: tuple[Cause, ...] = ()
    timeline: tuple[Happening, ...] = ()
    upcoming: tuple[UpcomingAction, ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def is_stuck(self) -> bool:
        return any(cause.is_stuck for cause in self.causes)


def as_dict(found: Explanation) -> dict[str, Any]:
    return {
        "kind": found.kind,
        "namespace": found.namespace,
        "name": found.name,
        "uid": found.uid,
        "stage": found.stage,
        "stuck": found.is_stuck,
        "deletion": found.deletion,
        "causes": [_cause(cause) for cause in found.causes],
        "upcoming": [_upcoming(each) for each in found.upcoming],
        "timeline": [
            {"at": format_time(each.at), "who": each.who, "what": each.what} for each in found.timeline
        ],
        "unread": list(found.unread),
    }


def _cause(cause: Cause) -> dict[str, Any]:
    return {
        "cause": cause.name,
        "stuck": cause.is_stuck,
        "since": None if cause.since is None else format_time(cause.since),
        "text": cause.text,
        "commands": [{"command": each.command, "risk": each.risk} for each in cause.remedies],
        "upcoming": [_upcoming(each) for each in cause.upcoming],
    }


def _upcoming(each: UpcomingAction) -> dict[str, Any]:
    return {"who": each.who, "what": each.what, "at": None if each.at is None else format_time(each.at)}

"""One life as the page draws it: its states over time, what happened, and what will.

Pure and bounded: at most `MOST_MARKS` marks, `MOST_SEGMENTS` states and `MOST_PREDICTIONS` predictions. A prediction
that is not made any more has happened, is missed (its time has passed and it has not happened) or is withdrawn.
All times are milliseconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from sys import intern

import msgspec

from podlife.api.excerpt import excerpt
from podlife.explain import Happening, UpcomingAction

MOST_MARKS, MOST_SEGMENTS, MOST_PREDICTIONS = 60, 60, 20
_MOST_TEXT = 300
# How late an actor may be before its prediction counts as missed; one that was due at once has a collector's period.
_SLACK_MS, _AT_ONCE_MS = 2_000, 30_000
# Times that differ by less are the same.
_DRIFT_MS = 1_500

# Within a second, which is what Kubernetes' times have.
_ORDER = {
    "created": 0,
    "delete": 2,
    "prestop": 3,
    "term": 4,
    "kill": 5,
    "ended": 6,
    "restarted": 7,
    "gone": 8,
}

STATES = {
    "pod": frozenset(
        ("pending", "init", "starting", "unready", "ready", "terminating", "held", "succeeded", "failed")
    ),
    "node": frozenset(("ready", "not-ready", "unknown", "silent")),
}
OUTCOMES = frozenset(("due", "happened", "missed", "withdrawn"))

Mark = tuple[int, str, str, str]
Segment = tuple[int, str]


def milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def brief(text: str) -> str:
    """Bounded; repeated texts are held once."""
    return intern(text if len(text) <= _MOST_TEXT else excerpt(text, _MOST_TEXT))


class Prediction(msgspec.Struct, gc=False):
    """Shown from `since` to `until`; `at` is when it is expected at the latest, None for not before something else."""

    since: int
    who: str
    what: str
    at: int | None = None
    until: int | None = None
    state: str = "due"
    # Since when it was shown as missed, even if it has happened after that.
    missed: int | None = None

    @property
    def missed_at(self) -> int | None:
        if self.at is None:
            return None
        return self.at + (_SLACK_MS if self.at > self.since else _AT_ONCE_MS) + 1


class Owner(msgspec.Struct, frozen=True, gc=False):
    kind: str
    name: str


class Life(msgspec.Struct, kw_only=True):
    uid: str
    kind: str
    ns: str = ""
    name: str = ""
    start: int = msgspec.field(default=0, name="from")
    to: int | None = None
    segs: list[Segment] = msgspec.field(default_factory=list)
    marks: list[Mark] = msgspec.field(default_factory=list)
    next: list[Prediction] = msgspec.field(default_factory=list)
    stage: str = ""
    waits: str = ""
    # The cause for which it is stuck from that time on, or "".
    troubles: list[Segment] = msgspec.field(default_factory=list, name="stuck")

    @property
    def state(self) -> str:
        return self.segs[-1][1] if self.segs else ""

    @property
    def stuck(self) -> str:
        return self.troubles[-1][1] if self.troubles else ""

    def get_stuck(self, cause: str, at: int) -> None:
        """Is stuck for this cause from `at` on; for none with ""."""
        if self.stuck != cause:
            self.troubles = [*self.troubles[1 - MOST_SEGMENTS :], (at, cause)]

    def enter(self, state: str, at: int) -> None:
        """Is in this state from `at` on; a time before the last change counts as that."""
        if self.state == state:
            return
        self.segs.append((max(at, self.segs[-1][0]) if self.segs else at, state))
        if len(self.segs) > MOST_SEGMENTS:
            # The first stays: the bar begins with it.
            del self.segs[1]

    def mark(self, happenings: Iterable[Happening]) -> bool:
        """Whether some of them are new."""
        found = [(milliseconds(each.at), each.kind, brief(each.what), brief(each.who)) for each in happenings]
        # By time and text: of a pod that is gone it is not known any more whether a container has a preStop hook.
        known = {(at, what, who) for at, _, what, who in self.marks}
        fresh = [mark for mark in dict.fromkeys(found) if (mark[0], mark[2], mark[3]) not in known]
        if not fresh:
            return False
        self.marks = sorted((*self.marks, *fresh), key=lambda mark: (mark[0], _ORDER.get(mark[1], 1)))
        if len(self.marks) > MOST_MARKS:
            self.marks = [self.marks[0], *self.marks[1 - MOST_MARKS :]]
        return True


class PodLife(Life, kw_only=True):
    node: str = ""
    owner: Owner | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    ready: str = ""
    restarts: int = 0
    deleted: int | None = None
    grace: int | None = None


class NodeLife(Life, kw_only=True):
    taints: list[str] = msgspec.field(default_factory=list)
    conditions: dict[str, str] = msgspec.field(default_factory=dict)
    cordoned: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """What decides whether a prediction has come true."""

    is_gone: bool = False
    is_deleted: bool = False
    has_ended: bool = False
    is_running: bool = False
    is_node_ready: bool = True
    is_node_tainted: bool = False


# By the first word of what an actor does, as `explain` says it. A kill before its time is not one: it ended by itself.
# Only an agent that is there ends a pod.
_OUTCOMES: dict[str, Callable[[Facts, bool], bool]] = {
    "deletes": lambda facts, is_due: facts.is_gone or facts.is_deleted,
    "kills": lambda facts, is_due: is_due and facts.is_node_ready and (facts.is_gone or not facts.is_running),
    "ends": lambda facts, is_due: facts.is_node_ready and (facts.is_gone or facts.has_ended),
    "starts": lambda facts, is_due: facts.is_running,
    "tries": lambda facts, is_due: facts.is_running,
    "marks": lambda facts, is_due: not facts.is_node_ready,
    "taints": lambda facts, is_due: facts.is_node_tainted,
    "makes": lambda facts, is_due: facts.is_node_ready,
}


def foresee(life: Life, coming: Sequence[UpcomingAction], facts: Facts, now: int) -> None:
    """Bring the predictions of a life up to date with what is coming."""
    wanted = {(each.who, brief(each.what)): each for each in coming}
    for known in life.next:
        if known.until is not None:
            continue
        key = (known.who, known.what)
        if key not in wanted:
            _close(known, facts, now)
        elif _is_same(known, wanted[key], now):
            del wanted[key]
            is_missed = known.missed_at is not None and now >= known.missed_at
            known.state, known.missed = ("missed", known.missed or now) if is_missed else ("due", None)
        else:
            # Another time: the record keeps what was predicted before. A start that has failed again has happened.
            has_happened = known.what.startswith("starts") and (known.at or now) < now
            known.state, known.until = "happened" if has_happened else "withdrawn", now
    for (who, what), each in wanted.items():
        life.next.append(Prediction(now, intern(who), what, _at(each)))
    _trim(life.next)


def _at(coming: UpcomingAction) -> int | None:
    return None if coming.at is None else milliseconds(coming.at)


def _is_same(known: Prediction, coming: UpcomingAction, now: int) -> bool:
    at = _at(coming)
    if at is None or known.at is None:
        return at == known.at
    # A time from now on moves along with every look: then the first one counts.
    moved = at - known.at - (now - known.since if coming.is_from_now else 0)
    return abs(moved) < _DRIFT_MS or (at <= now and known.at <= now)


def _close(known: Prediction, facts: Facts, now: int) -> None:
    is_due = known.at is not None and now >= known.at - _SLACK_MS // 2
    decide = _OUTCOMES.get(known.what.partition(" ")[0])
    has_happened = is_due if decide is None else decide(facts, is_due)
    # Past the grace period `explain` predicts no kill any more, though it is still to come. Of others the reason
    # is gone.
    is_awaited = not has_happened and is_due and known.what.startswith("kills")
    if is_awaited and (facts.is_gone or now >= (known.missed_at or now)):
        known.state, known.missed = "missed", known.missed or now
    elif not is_awaited:
        known.state = "happened" if has_happened else "withdrawn"
    if not is_awaited or facts.is_gone:
        known.until = now


def next_time(life: Life, now: int) -> int | None:
    """When an open prediction is due or becomes missed."""
    opened = [each for each in life.next if each.until is None]
    times = [at for each in opened for at in (each.at, each.missed_at) if at is not None and at > now]
    return min(times, default=None)


def _trim(predictions: list[Prediction]) -> None:
    """Drop the oldest, closed ones first."""
    while len(predictions) > MOST_PREDICTIONS:
        closed = next((each for each in predictions if each.until is not None), predictions[0])
        predictions.remove(closed)

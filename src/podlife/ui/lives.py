"""The lives of all pods and nodes of a cluster. Pure: what was seen and the time go in, `Life` records come out.

A life is computed again when its object changes, when the state of its node changes that matters to it, when a
prediction falls due, and at the few ages at which `explain` judges differently; not when nothing can have changed.
A pod created again under its name is another life. Ended lives are kept for a while.
"""

from __future__ import annotations

import heapq
from collections.abc import Container
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice

from msgspec import Raw, to_builtins

from podlife.api.codec import Object
from podlife.api.views import MetadataOnly
from podlife.explain import (
    ActionRules,
    ClusterSnapshot,
    Explanation,
    Happening,
    UpcomingAction,
    hooked,
    told_by,
)
from podlife.explain.objects import moment, text, updated
from podlife.ui.ended import EndedLives
from podlife.ui.heartbeats import Heartbeats
from podlife.ui.life import Life, NodeLife, PodLife, foresee, milliseconds, next_time
from podlife.ui.portraits import (
    conditions_of,
    draw_node,
    draw_pod,
    node_facts,
    pod_facts,
    unseen_kill,
    what_pods_depend_on,
)
from podlife.ui.views import SeenEvent, SeenJob, SeenLease, SeenNode, SeenPod

# Events that `explain` reads; the others are marks and nothing else.
_MOST_EVENTS = 8
# Ages of a state at which `explain` loses its patience.
_PATIENCE_MS = (16_000, 31_000)
# Events dated later than this are not believed: they would displace what really happened.
_CLOCK_SKEW_SECONDS = 60.0
_ENDED = ("succeeded", "failed", "terminating", "held")


@dataclass(slots=True)
class _Entry:
    """A life that goes on, and what it is computed from."""

    life: Life
    seen: SeenPod | SeenNode
    # When its object last changed.
    seen_at: int
    events: list[Object] = field(default_factory=list)
    wake_at: int = 0


class Lives:
    """`can_see_nodes` is false when nodes may not be read: then nothing is concluded from their absence."""

    def __init__(self, rules: ActionRules | None = None) -> None:
        self.rules = rules or ActionRules()
        self.can_see_nodes = True
        self._entries: dict[str, _Entry] = {}
        self._ended = EndedLives()
        self._nodes: dict[str, Object] = {}
        self._node_uids: dict[str, str] = {}
        self._on_node: dict[str, set[str]] = {}
        self._heartbeats = Heartbeats()
        self._replica_sets: dict[str, Object] = {}
        # Those that expire, and the pods of all.
        self._jobs: dict[str, Object] = {}
        self._of_job: dict[str, set[str]] = {}
        # In the order in which they are computed.
        self._dirty: dict[str, None] = {}
        self._changed: dict[str, None] = {}
        self._forgotten: list[str] = []
        # How often a pod has ended, was deleted or is gone.
        self.ends = 0
        self._alarms: list[tuple[int, str]] = []

    # What was seen

    def put_pod(self, pod: SeenPod, now: datetime) -> None:
        uid, named = pod.metadata.uid, pod.metadata
        if uid in self._ended:
            return
        entry = self._entries.get(uid)
        if entry is None:
            start = _created(named.creation_timestamp, now)
            life = PodLife(uid=uid, kind="pod", ns=named.namespace, name=named.name, start=start)
            entry = self._entries[uid] = _Entry(life, pod, milliseconds(now))
            if job := _job_of(pod):
                self._of_job.setdefault(job, set()).add(uid)
        before = entry.seen.metadata
        if (
            uid in self._dirty
            and before.deletion_grace_period_seconds
            and not named.deletion_grace_period_seconds
        ):
            # The node's own DELETE follows at once, and hides that a container was killed after the one before.
            self._compute(entry, self._world(now))
        is_first_delete = bool(named.deletion_timestamp and not before.deletion_timestamp)
        entry.seen, entry.seen_at = pod, milliseconds(now)
        if is_first_delete:
            # Not coalesced with what follows: the node's own DELETE, moments later, has no grace period.
            self._compute(entry, self._world(now))
        self._dirty[uid] = None

    def put_node(self, node: SeenNode, now: datetime) -> None:
        name, uid = node.metadata.name, node.metadata.uid
        old, new = self._nodes.get(name), node.as_object()
        self._nodes[name], self._node_uids[name] = new, uid
        is_other = old is None or what_pods_depend_on(old) != what_pods_depend_on(new)
        if uid not in self._entries:
            life = NodeLife(
                uid=uid, kind="node", name=name, start=_created(node.metadata.creation_timestamp, now)
            )
            self._entries[uid] = _Entry(life, node, milliseconds(now))
            self._dirty[uid] = None
        entry = self._entries[uid]
        entry.seen = node
        if old is None or is_other or conditions_of(old) != conditions_of(new):
            entry.seen_at = milliseconds(now)
            self._dirty[uid] = None
        if is_other:
            self._touch_pods_on(name)

    def put_lease(self, lease: SeenLease, now: datetime) -> None:
        name = lease.metadata.name
        is_first = name not in self._heartbeats.leases
        self._heartbeats.leases[name] = {"spec": {"renewTime": lease.spec.renew_time}}
        if name in self._heartbeats.silent:
            self._note_silence(name, milliseconds(now))
        elif is_first and (uid := self._node_uids.get(name)) is not None:
            self._dirty[uid] = None

    def listen(self, *, hears: bool, now: datetime) -> None:
        """Whether leases are heard: only then nodes become silent."""
        if self._heartbeats.listen(hears=hears, now=milliseconds(now)):
            self._dirty |= dict.fromkeys(self._node_uids.values())

    def put_event(self, seen: SeenEvent, now: datetime) -> None:
        """Of a pod or node that is known. Events of a node carry its name as UID."""
        event = seen.as_object()
        about = event.get("involvedObject") or {}
        uid = text(about, "uid")
        if text(about, "kind") == "Node":
            uid = self._node_uids.get(text(about, "name"), uid)
        life = self.get(uid)
        # An event counts only in its own namespace: otherwise a user who may create events in one of them could change
        # what is shown of another.
        home = "default" if text(about, "kind") == "Node" else text(about, "namespace")
        happened_at = updated(event)
        if (
            life is None
            or seen.metadata.namespace != home
            or (life.kind == "pod" and (home, text(about, "name")) != (life.ns, life.name))
            or happened_at is None
            or (happened_at - now).total_seconds() > _CLOCK_SKEW_SECONDS
        ):
            return
        entry = self._entries.get(uid)
        hooks: frozenset[str] = frozenset()
        if entry is not None and text(event, "reason") == "Killing":
            hooks = hooked(entry.seen.as_object())
        # A watch that begins again tells all events again.
        if not life.mark(told_by((event,), hooks)):
            return
        self._changed[uid] = None
        if entry is None:
            self._ended.put(life)
        elif text(event, "type") == "Warning":
            events = sorted((*entry.events, event), key=lambda each: updated(each) or now)
            entry.events = events[-_MOST_EVENTS:]
            self._dirty[uid] = None

    def put_replica_set(self, found: MetadataOnly, now: datetime) -> None:
        owners = to_builtins(found.metadata.owner_references)
        self._replica_sets[found.metadata.uid] = {"metadata": {"ownerReferences": owners}}

    def put_job(self, job: SeenJob, now: datetime) -> None:
        uid, found = job.metadata.uid, {"spec": to_builtins(job.spec), "status": to_builtins(job.status)}
        if found != self._jobs.get(uid) and (job.expires or uid in self._jobs):
            self._jobs[uid] = found
            self._dirty |= dict.fromkeys(self._of_job.get(uid, ()))

    def drop_job(self, job: SeenJob, now: datetime) -> None:
        # Its pods go after it, as was predicted: until then it is remembered.
        if job.metadata.uid not in self._of_job:
            self._jobs.pop(job.metadata.uid, None)

    def drop_replica_set(self, found: MetadataOnly, now: datetime) -> None:
        self._replica_sets.pop(found.metadata.uid, None)

    def drop_pod(self, pod: SeenPod, now: datetime) -> None:
        entry = self._entries.get(pod.metadata.uid)
        if entry is not None:
            entry.seen = pod
            self._end(entry, now)

    def drop_node(self, node: SeenNode, now: datetime) -> None:
        name, uid = node.metadata.name, node.metadata.uid
        entry = self._entries.get(uid)
        if entry is not None:
            self._end(entry, now)
        if self._node_uids.get(name) == uid:
            del self._nodes[name], self._node_uids[name]
            self._heartbeats.drop(name)
            self._touch_pods_on(name)

    def drop_others(self, view: type[SeenPod | SeenNode], known: Container[str], now: datetime) -> None:
        """All of a kind that are not among the known UIDs are gone: a watch that began again has missed their end."""
        for uid, entry in list(self._entries.items()):
            if isinstance(entry.seen, view) and uid not in known:
                self.drop_pod(entry.seen, now) if isinstance(entry.seen, SeenPod) else self.drop_node(
                    entry.seen, now
                )

    def touch(self, *states: str) -> None:
        """Compute lives in these states again: the rules that decide about them have changed."""
        self._dirty |= {uid: None for uid, entry in self._entries.items() if entry.life.state in states}

    # What comes out

    def settle(self, now: datetime, most: int) -> int:
        """Compute up to `most` lives that may have changed. How many are left."""
        self._ring(milliseconds(now))
        world = self._world(now)
        for uid in list(islice(self._dirty, most)):
            del self._dirty[uid]
            entry = self._entries.get(uid)
            if entry is not None:
                self._compute(entry, world)
        self._forgotten += self._ended.forget_old(milliseconds(now))
        return len(self._dirty)

    @property
    def uids(self) -> list[str]:
        return [*self._ended.uids, *self._entries]

    def get(self, uid: str) -> Life | None:
        entry = self._entries.get(uid)
        return self._ended.get(uid) if entry is None else entry.life

    def record(self, uid: str) -> Life | Raw | None:
        """The life, to be encoded; None for one that was never computed, and is not shown yet."""
        entry = self._entries.get(uid)
        if entry is None:
            return self._ended.record(uid)
        return entry.life if entry.life.segs else None

    def take_changed(self) -> list[str]:
        """UIDs of lives that have changed since the last call, each once."""
        found, self._changed = list(self._changed), {}
        return found

    def take_forgotten(self) -> list[str]:
        found, self._forgotten = self._forgotten, []
        return found

    # How it is computed

    def _world(self, now: datetime) -> ClusterSnapshot:
        nodes = self._nodes if self.can_see_nodes else None
        return ClusterSnapshot(
            now,
            self.rules,
            nodes=nodes,
            leases=self._heartbeats.leases,
            replica_sets=self._replica_sets,
            jobs=self._jobs,
            silent=self._heartbeats.silent,
        )

    def _compute(self, entry: _Entry, world: ClusterSnapshot, *, is_gone: bool = False) -> None:
        life, now, obj = entry.life, milliseconds(world.now), entry.seen.as_object()
        if entry.events:
            world = replace(world, events={life.uid: entry.events})
        if isinstance(life, PodLife):
            before, state = life.node, life.state
            found, facts = draw_pod(life, obj, world, entry.seen_at), pod_facts(obj, world)
            if before != life.node:
                self._on_node.setdefault(life.node, set()).add(life.uid)
            self.ends += life.state != state and life.state in _ENDED
        else:
            assert isinstance(life, NodeLife)
            self._heartbeats.look(life.name, now)
            found, facts = draw_node(life, obj, world, entry.seen_at), node_facts(obj)
        if is_gone:
            foresee(life, (), replace(facts, is_gone=True), now)
        else:
            foresee(life, _coming(found), facts, now)
            self._set_alarm(entry, now)
        self._changed[life.uid] = None

    def _end(self, entry: _Entry, now: datetime) -> None:
        """Gone, with all that its last state tells."""
        life = entry.life
        world = self._world(now)
        self._compute(entry, world, is_gone=True)
        if isinstance(life, PodLife):
            life.mark(unseen_kill(life, entry.seen.as_object(), world))
        life.mark((Happening(now, "gone", kind="gone"),))
        life.to, life.stage, life.waits = max(milliseconds(now), life.start), "gone", ""
        life.get_stuck("", life.to)
        if isinstance(life, PodLife) and isinstance(entry.seen, SeenPod):
            _take_out(self._on_node, life.node, life.uid)
            _take_out(self._of_job, job := _job_of(entry.seen), life.uid)
            if job not in self._of_job:
                self._jobs.pop(job, None)
        self.ends += 1
        self._dirty.pop(life.uid, None)
        del self._entries[life.uid]
        self._ended.put(life)

    def _touch_pods_on(self, node: str) -> None:
        self._dirty |= dict.fromkeys(self._on_node.get(node, ()))

    # Time

    def _set_alarm(self, entry: _Entry, now: int) -> None:
        life = entry.life
        at = next_time(life, now)
        times = [] if at is None else [at]
        if isinstance(life, NodeLife):
            silent_at = self._heartbeats.silent_at(life.name)
            times += [] if silent_at is None else [silent_at]
        elif isinstance(life, PodLife) and life.state != "ready":
            since = life.segs[-1][0]
            ends = since if life.deleted is None else life.deleted + 1000 * (life.grace or 0)
            times += [start + age for start in (since, ends) for age in _PATIENCE_MS]
        soonest = min((each for each in times if each > now), default=0)
        if soonest and soonest != entry.wake_at:
            heapq.heappush(self._alarms, (soonest, life.uid))
        entry.wake_at = soonest

    def _ring(self, now: int) -> None:
        while self._alarms and self._alarms[0][0] <= now:
            at, uid = heapq.heappop(self._alarms)
            entry = self._entries.get(uid)
            if entry is None or entry.wake_at != at:
                continue
            entry.wake_at = 0
            is_foreseen = next_time(entry.life, at - 1) == at
            if isinstance(entry.life, NodeLife) and not is_foreseen:
                # Leases are renewed all the time: only a node that has become silent is computed again.
                if not self._note_silence(entry.life.name, now):
                    self._set_alarm(entry, now)
            else:
                self._dirty[uid] = None

    def _note_silence(self, name: str, now: int) -> bool:
        """Whether the node has become silent or is heard again; then its pods are judged again."""
        uid = self._node_uids.get(name)
        if uid is None or self._heartbeats.is_silent(name, now) == (name in self._heartbeats.silent):
            return False
        self._dirty[uid] = None
        self._entries[uid].seen_at = now
        self._touch_pods_on(name)
        return True


def _job_of(pod: SeenPod) -> str:
    """The UID of the Job that controls it."""
    owners = pod.metadata.owner_references
    return next((each.uid for each in owners if each.controller and each.kind == "Job"), "")


def _take_out(sets: dict[str, set[str]], key: str, uid: str) -> None:
    if (others := sets.get(key)) is not None:
        others.discard(uid)
        if not others:
            del sets[key]


def _created(timestamp: str, now: datetime) -> int:
    at = moment(timestamp)
    return milliseconds(now if at is None else at)


def _coming(found: Explanation) -> list[UpcomingAction]:
    every = (*(each for cause in found.causes for each in cause.upcoming), *found.upcoming)
    return list(dict.fromkeys(every))

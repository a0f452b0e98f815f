"""Guards are never exceeded, whatever is asked in whatever order: deletions that fail, are slow, span passes.

The machine keeps a ledger of its own of what the server has really done, and when: somewhere between the moment a pod
was let go and its answer. Every bound is held against that ledger.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from podlife.podgc.guards.budget import DeletionBudget, Moment
from podlife.podgc.namespace_annotations import EVERYWHERE, GuardAnnotations
from podlife.podgc.plan import CLUSTER, Guard
from podlife.podgc.policy.model import Guards, Window
from podlife.podgc.views import Pod, PodMetadata

START = datetime(2030, 1, 1, tzinfo=UTC)
PLACES = ("a", "b", "c")
# The first half of every hour, as the machine sees it; two windows because one cannot say so.
WINDOWS = tuple(
    Window(start=datetime(1, 1, 1, hour).time(), end=datetime(1, 1, 1, hour, 30).time()) for hour in range(24)
)

shares = st.sampled_from((0.1, 0.25, 0.29, 0.5))
# One bound alone shows what all of them together would hide.
guards = st.one_of(
    st.builds(Guards, per_minute=st.integers(1, 6)),
    st.builds(Guards, per_pass=st.integers(1, 8)),
    st.builds(Guards, share_of_namespace=shares, share_at_least=st.integers(0, 3)),
    st.builds(Guards, share_of_cluster=shares, share_at_least=st.integers(0, 3)),
    st.builds(
        Guards,
        per_minute=st.integers(1, 6),
        per_pass=st.integers(1, 8),
        share_of_namespace=shares,
        share_of_cluster=shares,
        windows=st.sampled_from(((), WINDOWS)),
        is_observing=st.booleans(),
    ),
)
MARKED = (*PLACES, EVERYWHERE)
stops = st.just(dict[str, str]()) | st.dictionaries(st.sampled_from(MARKED), st.just("why"), max_size=1)
forces = st.just(dict[str, int]()) | st.dictionaries(
    st.sampled_from(MARKED), st.sampled_from((0, 30, 300)), max_size=1
)


@dataclass(frozen=True)
class Deletion:
    """One that was let go."""

    uid: str
    place: str


class Guarding(RuleBasedStateMachine):
    @initialize(guards=guards, pods=st.fixed_dictionaries({place: st.integers(0, 40) for place in PLACES}))
    def begin(self, guards: Guards, pods: dict[str, int]) -> None:
        self.guards = guards
        self.book = DeletionBudget(guards)
        self.at = 0.0
        self.marks = GuardAnnotations()
        self.count = 0
        # Let go and not done; done and not answered; not done and not answered.
        self.sent: list[Deletion] = []
        self.done: list[Deletion] = []
        self.unclear: list[Deletion] = []
        self.done_at: list[float] = []
        # Stops that were found and not lifted since: nobody may be let go there.
        self.stopped: set[str] = set()
        self.begin_pass(pods)

    @property
    def moment(self) -> Moment:
        return Moment(self.at, START + timedelta(seconds=self.at))

    @rule(pods=st.fixed_dictionaries({place: st.integers(0, 40) for place in PLACES}))
    def begin_pass(self, pods: dict[str, int]) -> None:
        self.pods = pods
        self.in_pass: Counter[str] = Counter()
        self.carried = Counter(deletion.place for deletion in (*self.sent, *self.done))
        self.forced: set[str] = set()
        self.book.begin_pass(pods)

    @rule(seconds=st.sampled_from((0.0, 0.1, 1.0, 20.0, 59.9, 60.0, 61.0, 1800.0)))
    def wait(self, seconds: float) -> None:
        self.at += seconds

    @rule(stops=stops, forced=forces)
    def mark(self, stops: dict[str, str], forced: dict[str, int]) -> None:
        until = {place: self.moment.now + timedelta(seconds=seconds) for place, seconds in forced.items()}
        self.marks = GuardAnnotations(stops, until)
        self.book.set_annotations(self.marks)

    @rule(wanted=st.dictionaries(st.sampled_from(PLACES), st.integers(0, 30)))
    def judge(self, wanted: dict[str, int]) -> None:
        self.book.judge(wanted, self.moment)
        if not self.is_open():
            return
        counts = {place: number for place, number in wanted.items() if not self.is_stopped(place)}
        counts[CLUSTER] = sum(counts.values())
        for place in (*PLACES, CLUSTER):
            number = counts.get(place, 0)
            if self.is_forced(place) or not number:
                self.stopped.discard(place)
            elif self.in_pass_of(place) + number > self.most(place):
                # By the pods that are really gone alone; the book counts those under way too, and may stop sooner.
                self.stopped.add(place)

    @rule(place=st.sampled_from(PLACES), count=st.integers(1, 12))
    def ask(self, place: str, count: int) -> None:
        """For pods that nobody has asked for yet, and for those whose deletion had no answer."""
        for _ in range(count):
            self.count += 1
            self.ask_for(self.unclear.pop() if self.unclear else Deletion(f"uid-{self.count}", place))

    def ask_for(self, deletion: Deletion) -> None:
        pod = Pod(PodMetadata(name=deletion.uid, namespace=deletion.place, uid=deletion.uid))
        refusal = self.book.admit(pod, self.moment)
        if refusal is not None:
            self.check_refusal(refusal.guard, deletion.place)
            return
        assert not self.guards.is_observing
        assert self.is_open()
        assert not self.is_stopped(deletion.place)
        for where in (deletion.place, CLUSTER):
            assert self.is_forced(where) or where not in self.stopped
            if self.is_forced(where):
                self.forced.add(where)
        self.sent.append(deletion)

    def check_refusal(self, guard: Guard, place: str) -> None:
        if guard is Guard.WINDOW:
            assert not self.is_open()
        if guard is Guard.STOP:
            assert self.is_stopped(place)
        if guard is Guard.OBSERVING:
            assert self.guards.is_observing
        if guard is Guard.NAMESPACE_SHARE:
            assert not self.is_forced(place)
            self.stopped.add(place)
        if guard is Guard.CLUSTER_SHARE:
            assert not self.is_forced(CLUSTER)
            self.stopped.add(CLUSTER)

    @rule(place=st.sampled_from(PLACES), count=st.integers(1, 12))
    def some_go_without_trouble(self, place: str, count: int) -> None:
        self.ask(place, count)
        self.the_server_does(count)
        self.answers_come(count)

    @rule(count=st.integers(1, 12))
    def the_server_does(self, count: int) -> None:
        """The answers are still on their way."""
        for deletion in take(self.sent, count):
            self.done_at.append(self.at)
            self.in_pass[deletion.place] += 1
            self.done.append(deletion)

    @rule(count=st.integers(1, 12))
    def answers_come(self, count: int) -> None:
        for deletion in take(self.done, count):
            self.book.note_deleted(deletion.uid, self.moment)

    @rule(count=st.integers(1, 12))
    def some_fail(self, count: int) -> None:
        for deletion in take(self.sent, count):
            self.book.note_not_deleted(deletion.uid)

    @rule(count=st.integers(1, 3))
    def some_have_no_answer(self, count: int) -> None:
        """They were not done, but nobody says so."""
        for deletion in take(self.sent, count):
            self.book.note_deleted(deletion.uid, self.moment)
            self.unclear.append(deletion)

    @rule()
    def what_waits_for_the_minute_goes_when_it_was_told(self) -> None:
        room_at = self.book.next_room_at(self.moment)
        if self.book.under_way == 0 and room_at > self.at:
            just_before = Moment(math.nextafter(room_at, 0), self.moment.now)
            assert self.book.room(just_before) == 0
            self.at = room_at
            assert self.book.room(self.moment) > 0

    # The bounds

    @invariant()
    def no_minute_has_too_many(self) -> None:
        most = self.guards.per_minute
        if most is not None:
            for first, later in zip(self.done_at, self.done_at[most:], strict=False):
                assert later >= first + 60.0

    @invariant()
    def no_pass_has_too_many(self) -> None:
        if self.guards.per_pass is not None:
            assert self.in_pass.total() <= self.guards.per_pass

    @invariant()
    def no_share_is_exceeded_but_by_force(self) -> None:
        for place in (*PLACES, CLUSTER):
            # What was under way when the pass began was let go by what there was before.
            carried = self.carried[place] if place else self.carried.total()
            if place not in self.forced:
                assert self.in_pass_of(place) <= max(self.most(place), carried)

    # What the machine knows by itself

    def in_pass_of(self, place: str) -> int:
        return self.in_pass[place] if place else self.in_pass.total()

    def most(self, place: str) -> float:
        share = self.guards.share_of_namespace if place else self.guards.share_of_cluster
        if share is None:
            return math.inf
        pods = self.pods[place] if place else sum(self.pods.values())
        return max(self.guards.share_at_least, round(share * 100) * pods // 100)

    def is_open(self) -> bool:
        return not self.guards.windows or self.moment.now.minute < 30

    def is_stopped(self, place: str) -> bool:
        return bool({place, EVERYWHERE} & set(self.marks.stops))

    def is_forced(self, place: str) -> bool:
        named = (self.marks.forced_until.get(each) for each in (place, EVERYWHERE))
        return any(until is not None and self.moment.now < until for until in named)


def take(deletions: list[Deletion], count: int) -> list[Deletion]:
    taken = deletions[:count]
    del deletions[:count]
    return taken


TestGuarding = Guarding.TestCase
TestGuarding.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)

"""The cache of an informer against a naive model of the server it follows.

The model keeps every state that the server was ever in. Whatever the way between them does (gaps, lists that break
off, events that come twice, bookmarks that come late, objects that cannot be read), the cache holds a state of the
server, a handler that believes what it is told holds the same, and the indexes say what a full scan would say.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from podlife.api.views import Metadata
from podlife.client import Bookmark, EventType, WatchEvent
from podlife.informer import Added, Cache, Deleted, Updated
from podlife.informer.cache import Notification

NAMES = ("a", "b", "c", "d")
OWNERS = ("x", "y", "z")


class Thing(msgspec.Struct, frozen=True):
    metadata: Metadata
    owners: frozenset[str]


State = dict[str, Thing]


class Server:
    """All that has happened: `states[n]` is what there was after the first `n` events."""

    def __init__(self) -> None:
        self.events: list[WatchEvent[Thing]] = []
        self.states: list[State] = [{}]
        self._uids = 0

    @property
    def revision(self) -> int:
        return len(self.events)

    def put(self, name: str, owners: frozenset[str]) -> None:
        known = self.states[-1].get(name)
        if known is None:
            self._uids += 1
        type_ = EventType.ADDED if known is None else EventType.MODIFIED
        self._happen(type_, name, str(self._uids) if known is None else known.metadata.uid, owners)

    def delete(self, name: str) -> None:
        known = self.states[-1].get(name)
        if known is not None:
            self._happen(EventType.DELETED, name, known.metadata.uid, known.owners)

    def _happen(self, type_: EventType, name: str, uid: str, owners: frozenset[str]) -> None:
        version = str(self.revision + 1)
        obj = Thing(Metadata(name=name, namespace="ns", uid=uid, resource_version=version), owners)
        state = dict(self.states[-1])
        if type_ is EventType.DELETED:
            del state[name]
        else:
            state[name] = obj
        self.events.append(WatchEvent(type_, obj, version))
        self.states.append(state)


class Mirror:
    """A handler that believes what it is told, and notices when that cannot be."""

    def __init__(self) -> None:
        self.state: State = {}

    def take(self, notifications: Sequence[Notification[Thing]]) -> None:
        for note in notifications:
            if isinstance(note, Added):
                assert note.object.metadata.name not in self.state, "added twice"
                self.state[note.object.metadata.name] = note.object
            elif isinstance(note, Updated):
                assert self.state[note.old.metadata.name] is note.old, "the old state is another one"
                assert note.old.metadata.uid == note.new.metadata.uid, "an update to another object"
                assert note.old != note.new, "an update that is none"
                self.state[note.new.metadata.name] = note.new
            else:
                assert isinstance(note, Deleted)
                gone = self.state.pop(note.object.metadata.name)
                assert gone.metadata.uid == note.object.metadata.uid, "another object was deleted"


class Following(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.server = Server()
        self.cache: Cache[Thing] = Cache(
            {"owner": lambda thing: thing.owners, "name": lambda thing: [thing.metadata.name]}
        )
        self.mirror = Mirror()
        # Up to which event the cache has been told.
        self.position = 0
        # Names whose state the cache could not read: it may hold an older one.
        self.unread: set[str] = set()
        self.relist([])

    @rule(name=st.sampled_from(NAMES), owners=st.frozensets(st.sampled_from(OWNERS)))
    def put(self, name: str, owners: frozenset[str]) -> None:
        self.server.put(name, owners)

    @rule(name=st.sampled_from(NAMES))
    def delete(self, name: str) -> None:
        self.server.delete(name)

    @rule(name=st.sampled_from(NAMES), owners=st.frozensets(st.sampled_from(OWNERS)))
    def replace(self, name: str, owners: frozenset[str]) -> None:
        self.server.delete(name)
        self.server.put(name, owners)

    @precondition(lambda self: self.position < self.server.revision)
    @rule(can_be_read=st.booleans())
    def hear(self, can_be_read: bool) -> None:
        event = self.server.events[self.position]
        self.position += 1
        metadata = event.object.metadata
        if can_be_read:
            self.mirror.take(self.cache.apply(event))
            self.unread.discard(metadata.name)
        elif event.type is EventType.DELETED:
            self.mirror.take(self.cache.drop(metadata.namespace, metadata.name, metadata.resource_version))
            self.unread.discard(metadata.name)
        else:
            self.cache.keep(metadata.namespace, metadata.name)
            self.unread.add(metadata.name)

    @precondition(lambda self: self.position > 0 and not self.unread)
    @rule(data=st.data())
    def hear_again(self, data: st.DataObject) -> None:
        start = data.draw(st.integers(0, self.position - 1))
        for event in self.server.events[start : self.position]:
            assert not self.cache.apply(event)

    @rule(data=st.data())
    def pass_a_bookmark(self, data: st.DataObject) -> None:
        revision = data.draw(st.integers(0, self.position))
        is_synced = data.draw(st.booleans())
        assert not self.cache.apply(Bookmark(str(revision), is_synced))

    @rule(data=st.data())
    def lose_a_list(self, data: st.DataObject) -> None:
        """A list that breaks off, and one that does not: the gap before it has swallowed events."""
        state = self.server.states[-1]
        self.cache.begin_list()
        for name in data.draw(st.lists(st.sampled_from(NAMES), unique=True)):
            if name in state:
                self.mirror.take(self.cache.apply(WatchEvent(EventType.ADDED, state[name], "")))
        self.agree()
        self.relist(data.draw(st.lists(st.sampled_from(NAMES), max_size=2)))

    @rule(unread=st.lists(st.sampled_from(NAMES), max_size=2))
    def relist(self, unread: list[str]) -> None:
        state = self.server.states[-1]
        before = {name: self.cache.get("ns", name) for name in unread if name in state}
        self.cache.begin_list()
        self.unread = set()
        for name, thing in state.items():
            if name in unread:
                self.cache.keep("ns", name)
                self.unread.add(name)
            else:
                self.mirror.take(self.cache.apply(WatchEvent(EventType.ADDED, thing, "")))
        self.position = self.server.revision
        self.mirror.take(self.cache.apply(Bookmark(str(self.position), is_synced=True)))
        for name, known in before.items():
            assert self.cache.get("ns", name) is known, "what cannot be read was not kept"

    @invariant()
    def agree(self) -> None:
        held = {thing.metadata.name: thing for thing in self.cache.list()}
        assert self.mirror.state == held
        for owner in OWNERS:
            assert {thing.metadata.name for thing in self.cache.by_index("owner", owner)} == {
                name for name, thing in held.items() if owner in thing.owners
            }
        for name in NAMES:
            assert self.cache.by_index("name", name) == tuple(held[name] for _ in (0,) if name in held)

    @invariant()
    def hold_a_state_of_the_server(self) -> None:
        expected = self.server.states[self.position]
        held = {thing.metadata.name: thing for thing in self.cache.list()}
        for name in set(NAMES) - self.unread:
            assert held.get(name) == expected.get(name)
        # What cannot be read may be known from before, but what has gone is never held.
        assert held.keys() <= expected.keys() | self.unread

    def teardown(self) -> None:
        while self.position < self.server.revision:
            self.hear(can_be_read=True)
        self.hold_a_state_of_the_server()


TestFollowing = Following.TestCase
TestFollowing.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)

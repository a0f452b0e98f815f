"""Every store against a naive model: a dictionary for each revision and the list of everything that happened."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from podlife.apiserver.storage import (
    CompactedError,
    Delete,
    Event,
    HistoryLimits,
    Key,
    MemoryStore,
    MismatchError,
    Put,
    SqliteStore,
    Store,
    Subscription,
)
from podlife.apiserver.storage.maintenance import check
from tests.unit.apiserver.storage.stores import value

LIMITS = HistoryLimits(seconds=100, events=20, value_bytes=2_000)
KEYS = [
    Key(resource, namespace, name)
    for resource in ("pods", "leases")
    for namespace in ("a", "a-b")
    for name in "xy"
] + [Key("nodes", "", "n")]
RESOURCES = ("pods", "leases", "nodes")

# key, is it a delete, how far the expectation is off, how large the value is
changes = st.tuples(
    st.sampled_from(KEYS), st.booleans(), st.sampled_from([0, 0, 0, 0, 1, -1]), st.sampled_from([1, 10, 300])
)


@dataclass
class Happening:
    kind: str
    key: Key
    revision: int
    value: bytes
    previous: int


@dataclass
class Model:
    standing: dict[Key, tuple[int, bytes]] = field(default_factory=dict)
    at: dict[int, dict[Key, tuple[int, bytes]]] = field(default_factory=lambda: {0: {}})
    log: list[Happening] = field(default_factory=list)
    revision: int = 0

    def expected(self, key: Key) -> int:
        return self.standing.get(key, (0, b""))[0]

    def apply(self, key: Key, *, is_delete: bool, value: bytes) -> None:
        previous = self.expected(key)
        self.revision += 1
        kind = "DELETED" if is_delete else "MODIFIED" if previous else "ADDED"
        self.log.append(Happening(kind, key, self.revision, value, previous))
        if is_delete:
            del self.standing[key]
        else:
            self.standing[key] = (self.revision, value)
        self.at[self.revision] = dict(self.standing)


class StoreMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="podlife-store-"))
        self.runner = asyncio.Runner()
        self.loop = self.runner.get_loop()
        real_time, self.ahead = self.loop.time, 0.0
        self.loop.time = lambda: real_time() + self.ahead  # type: ignore[method-assign]
        self.model = Model()
        self.subscriptions: list[tuple[str, int, Subscription]] = []
        # Small steps, so that the file is compacted in the length of a test.
        self.patch = patch("podlife.apiserver.storage.writer.COMPACT_REVISIONS", 3)
        self.patch.start()
        self.store = self.runner.run(self.open())

    async def open(self) -> Store:
        return MemoryStore(LIMITS)

    async def oldest(self) -> int:
        return self.store.oldest

    def teardown(self) -> None:
        self.runner.run(self.store.close())
        self.runner.close()
        self.patch.stop()
        shutil.rmtree(self.folder)

    @rule(wanted=st.lists(changes, min_size=1, max_size=4))
    def commit(self, wanted: list[tuple[Key, bool, int, int]]) -> None:
        holds = True
        standing = {key: bool(self.model.expected(key)) for key in KEYS}
        made: list[Put | Delete] = []
        for key, is_delete, off, size in wanted:
            expected = self.model.expected(key) + off
            holds = holds and off == 0 and not (is_delete and not standing[key])
            standing[key] = not is_delete
            change = Delete if is_delete else Put
            made.append(change(key, value(size), expected))
        if not holds:
            with pytest.raises(MismatchError):
                self.runner.run(self.store.commit(*made))
            return
        records = self.runner.run(self.store.commit(*made))
        for record, (key, is_delete, _, size) in zip(records, wanted, strict=True):
            self.model.apply(key, is_delete=is_delete, value=value(size)(self.model.revision + 1))
            assert (record.key, record.revision) == (key, self.model.revision)

    @rule(size=st.integers(1, 5))
    def commit_to_every_key_at_once(self, size: int) -> None:
        async def put(key: Key) -> int:
            change = Put(key, value(size), self.model.expected(key))
            return (await self.store.commit(change))[0].revision

        async def put_all() -> list[int]:
            return await asyncio.gather(*(put(key) for key in KEYS))

        for _, key in sorted(zip(self.runner.run(put_all()), KEYS, strict=True)):
            self.model.apply(key, is_delete=False, value=value(size)(self.model.revision + 1))

    @rule(resource=st.sampled_from(RESOURCES), namespace=st.sampled_from(["", "a", "a-b"]), data=st.data())
    def list_at_some_revision(self, resource: str, namespace: str, data: st.DataObject) -> None:
        async def read(revision: int) -> list[tuple[Key, int, bytes]]:
            records = self.store.list(resource, namespace, revision=revision)
            return [(record.key, record.revision, record.value) for record in records]

        revision = data.draw(st.integers(0, self.model.revision))
        if revision < self.runner.run(self.oldest()):
            with pytest.raises(CompactedError):
                self.runner.run(read(revision))
            return
        wanted = sorted(
            (key.path, (key, *stood))
            for key, stood in self.model.at[revision].items()
            if key.resource == resource and namespace in ("", key.namespace)
        )
        assert self.runner.run(read(revision)) == [stood for _, stood in wanted]

    @rule(resource=st.sampled_from(RESOURCES), data=st.data())
    def subscribe(self, resource: str, data: st.DataObject) -> None:
        async def start() -> Subscription:
            return self.store.subscribe(resource, since=since)

        since = data.draw(st.integers(0, self.model.revision))
        if since < self.runner.run(self.oldest()):
            with pytest.raises(CompactedError):
                self.runner.run(start())
            return
        self.subscriptions.append((resource, since, self.runner.run(start())))

    @precondition(lambda self: self.subscriptions)
    @rule(data=st.data())
    def read_all_that_is_new(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.subscriptions) - 1))
        resource, since, subscription = self.subscriptions.pop(index)
        news = [each for each in self.model.log if each.key.resource == resource and each.revision > since]
        oldest = self.runner.run(self.oldest())
        if news and news[0].revision <= oldest:
            with pytest.raises(CompactedError):
                self.runner.run(subscription.next())
            return
        events: list[Event] = []
        while len(events) < len(news):
            events.extend(self.runner.run(subscription.next()).events)
        assert [
            Happening(
                event.type.value,
                event.record.key,
                event.revision,
                event.record.value,
                event.previous.revision if event.previous else 0,
            )
            for event in events
        ] == news
        assert subscription.revision == self.model.revision
        self.subscriptions.append((resource, self.model.revision, subscription))

    @rule(seconds=st.sampled_from([0.5, 30.0, 60.0, 101.0]))
    def let_time_pass(self, seconds: float) -> None:
        self.ahead += seconds

    @invariant()
    def the_store_shows_what_stands(self) -> None:
        assert self.store.revision == self.model.revision
        for key in KEYS:
            record = self.store.get(key)
            found = None if record is None else (record.revision, record.value)
            assert found == self.model.standing.get(key)
        for resource in RESOURCES:
            assert self.store.count(resource) == sum(key.resource == resource for key in self.model.standing)

    @invariant()
    def history_is_bounded(self) -> None:
        kept = self.model.log[self.runner.run(self.oldest()) :]
        assert len(kept) <= LIMITS.events
        assert sum(len(each.value) for each in kept) <= LIMITS.value_bytes


class SqliteMachine(StoreMachine):
    async def open(self) -> Store:
        return await SqliteStore.open(self.folder / "data", limits=LIMITS)

    @rule()
    def open_again(self) -> None:
        self.subscriptions.clear()
        self.runner.run(self.store.close())
        assert check(self.folder / "data").problems == ()
        self.store = self.runner.run(self.open())


TestMemoryStore = StoreMachine.TestCase
TestMemoryStore.settings = settings(max_examples=60, stateful_step_count=40)
TestSqliteStore = SqliteMachine.TestCase
TestSqliteStore.settings = settings(max_examples=40, stateful_step_count=40)

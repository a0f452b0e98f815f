"""What an informer brings: the state of the server, in full and in order, to everybody who asks."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from podlife.aio import spawn
from podlife.api.views import MetadataOnly
from podlife.client import NAMESPACES
from podlife.errors import ConflictError
from podlife.informer import Informer
from podlife.testing import virtual_time
from tests.component.informer.world import Notes, World, ignore, run_informer, started, value
from tests.kit.wait import until


def names(informer: Informer[Any]) -> set[str]:
    return {obj.metadata.name for obj in informer.cache.list() if "marker" not in obj.metadata.name}


@pytest.mark.parametrize("is_streamed", [True, False])
@virtual_time
async def test_what_is_there_is_told_and_then_every_change_in_order(is_streamed: bool) -> None:
    world, informer, notes = await started("a", "b", streams_list=is_streamed)
    async with run_informer(informer):
        assert sorted(notes.take()) == ["+a", "+b"]
        await world.put("c", "1")
        await world.put("a", "2")
        await world.delete("b")
        await world.put("c", "3")
        await world.caught_up(informer)
        assert notes.take() == ["+c 1", "~a 2", "-b", "~c 3"]
        assert names(informer) == {"a", "c"}
        assert value(informer, "c") == "3"
        assert informer.cache.get("default", "b") is None
        assert informer.stats.lists == 1
    assert ("sendInitialEvents" in world.line.requests[-1].query.raw) is is_streamed


@virtual_time
async def test_it_has_synced_only_when_every_handler_was_told_of_the_whole_list() -> None:
    world = await World.start(*"abcde")
    informer = world.informer()
    synced: list[bool] = []

    class Watching(Notes):
        def on_add(self, obj: Any) -> None:
            synced.append(informer.has_synced)

    informer.add_handler(Watching())
    assert not informer.has_synced
    async with run_informer(informer):
        assert informer.has_synced
    assert synced == [False] * 5


@virtual_time
async def test_an_empty_list_is_a_list_too() -> None:
    world = await World.start()
    informer = world.informer()
    async with run_informer(informer):
        assert informer.has_synced
        assert len(informer.cache) == 0


@virtual_time
async def test_a_handler_that_comes_late_gets_what_there_is_and_then_everything() -> None:
    world = await World.start("a", "b")
    informer, early, late = world.informer(), Notes(), Notes()
    informer.add_handler(early)
    async with run_informer(informer):
        await world.put("a", "2")
        await world.caught_up(informer)
        informer.add_handler(late)
        assert sorted(late.take()) == ["+a 2", "+b"]
        early.take()
        await world.delete("b")
        await world.put("d")
        await world.caught_up(informer)
        assert late.take() == early.take() == ["-b", "+d"]


@virtual_time
async def test_a_handler_that_is_added_by_another_is_told_of_nothing_twice() -> None:
    world = await World.start("a")
    informer, late = world.informer(), Notes()

    class Adding(Notes):
        def on_add(self, obj: Any) -> None:
            informer.add_handler(late)

    informer.add_handler(Adding())
    async with run_informer(informer):
        assert late.take() == ["+a"]


@virtual_time
async def test_the_cache_agrees_with_what_a_handler_is_told() -> None:
    world = await World.start("a")
    informer = world.informer(indexers={"value": lambda obj: [obj.data["v"]] if obj.data else []})
    seen: list[tuple[Any, ...]] = []

    class Comparing(Notes):
        def on_update(self, old: Any, new: Any) -> None:
            seen.append(
                (
                    informer.cache.get("default", "a") is new,
                    informer.cache.by_index("value", old.data["v"]),
                    informer.cache.by_index("value", new.data["v"]),
                )
            )

        def on_delete(self, obj: Any) -> None:
            seen.append((informer.cache.get("default", "a"), informer.cache.by_index("value", "2")))

    informer.add_handler(Comparing())
    async with run_informer(informer):
        new = await world.put("a", "2")
        await world.caught_up(informer)
        (held,) = informer.cache.by_index("value", "2")
        assert held.metadata.resource_version == new["metadata"]["resourceVersion"]
        await world.delete("a")
        await world.caught_up(informer)
    assert seen == [(True, (), (held,)), (None, ())]


@pytest.mark.parametrize("selection", [{"label_selector": "name=b"}, {"field_selector": "metadata.name=b"}])
@virtual_time
async def test_only_what_is_selected_is_followed(selection: dict[str, Any]) -> None:
    world, informer, notes = await started(**selection)
    async with run_informer(informer):
        await world.put("a", "1")
        await world.put("b")
        await world.put("b", "2")
        await world.put("b", "2", namespace="kube-system")
        await until(lambda: len(notes.all) == 2)
        assert notes.take() == ["+b", "~b 2"]


@virtual_time
async def test_all_namespaces_and_what_has_none_can_be_followed() -> None:
    world = await World.start("a")
    await world.put("a", namespace="kube-system")
    everywhere = world.informer(namespace="")
    namespaces = Informer(world.client, NAMESPACES, view=MetadataOnly)
    async with run_informer(everywhere), run_informer(namespaces):
        assert len(everywhere.cache) == 2
        assert everywhere.cache.get("kube-system", "a") is not None
        assert namespaces.cache.get("", "default") is not None


@virtual_time
async def test_a_resync_tells_of_everything_again_without_a_list() -> None:
    _, informer, notes = await started("a", "b", resync_seconds=600)
    async with run_informer(informer):
        await asyncio.sleep(599)
        assert sorted(notes.take()) == ["+a", "+b"]
        await asyncio.sleep(2)
        assert notes.take() == ["=a", "=b"]
        await asyncio.sleep(600)
        assert notes.take() == ["=a", "=b"]
        assert (informer.stats.lists, informer.stats.resyncs) == (1, 2)


@virtual_time
async def test_an_object_that_changes_in_the_middle_of_a_resync_is_not_told_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Others have a turn after each object, as they have after every few hundred of a long resync.
    monkeypatch.setattr("podlife.informer.informer._BATCH", 1)
    first, *others, last = [f"m-{number:03}" for number in range(500)]
    world, informer, notes = await started(first, *others, last, resync_seconds=10)

    class Changing(Notes):
        def on_update(self, old: Any, new: Any) -> None:
            if new.metadata.name == first:
                changes.append(spawn(world.put(last, "new"), name="change", on_failure=ignore))

    changes: list[asyncio.Task[Any]] = []
    informer.add_handler(Changing())
    async with run_informer(informer):
        notes.take()
        await until(lambda: f"~{last} new" in notes.all)
        await asyncio.sleep(1)
        told = notes.take()
    assert told.index(f"~{last} new") < told.index(f"={others[-1]}"), "it changed after the resync"
    assert [note for note in told if last in note] == [f"~{last} new"]


@pytest.mark.parametrize("error", [ZeroDivisionError("oops"), ConflictError("looks like an answer")])
@pytest.mark.parametrize("moment", ["on_add", "on_update", "on_delete"])
@virtual_time
async def test_a_handler_that_fails_ends_the_informer_with_its_reason(
    moment: str, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    world = await World.start("a")

    class Failing(Notes):
        pass

    def fail(*_: Any) -> None:
        raise error

    setattr(Failing, moment, fail)
    informer = world.informer()
    informer.add_handler(Failing())
    async with run_informer(informer, seconds=0) as task:
        await asyncio.sleep(1)
        await world.put("a", "2")
        await world.delete("a")
        with pytest.raises(type(error)) as raised:
            await task
        assert raised.value is error
    [line] = [each.getMessage() for each in caplog.records if "handler" in each.getMessage()]
    assert "Failing failed on " in line
    assert "/a (UID " in line
    assert not informer.is_live
    assert world.line.streams == []


@virtual_time
async def test_a_handler_that_fails_on_a_resync_ends_the_informer_too() -> None:
    world = await World.start("a")

    class Failing(Notes):
        def on_update(self, old: Any, new: Any) -> None:
            raise ZeroDivisionError

    informer = world.informer(resync_seconds=10)
    informer.add_handler(Failing())
    async with run_informer(informer) as task:
        with pytest.raises(ZeroDivisionError):
            await task
    assert world.line.streams == []


@virtual_time
async def test_an_indexer_that_fails_ends_the_informer_with_its_reason() -> None:
    world = await World.start("a")
    informer = world.informer(indexers={"broken": lambda obj: obj.nothing})
    async with run_informer(informer, seconds=0) as task:
        with pytest.raises(AttributeError, match="nothing"):
            await task
        assert not await informer.wait_for_sync(seconds=60), "an informer that has ended never syncs"
        assert asyncio.get_running_loop().time() == 0


@virtual_time
async def test_a_late_handler_that_fails_is_its_callers_to_know_and_nobody_elses() -> None:
    world = await World.start("a")

    class Failing(Notes):
        def on_add(self, obj: Any) -> None:
            raise ZeroDivisionError

    informer, notes = world.informer(), Notes()
    async with run_informer(informer):
        with pytest.raises(ZeroDivisionError):
            informer.add_handler(Failing())
        informer.add_handler(notes)
        await world.put("b")
        await world.caught_up(informer)
        assert notes.take() == ["+a", "+b"]


@virtual_time
async def test_a_long_list_and_a_long_resync_do_not_hold_up_the_others() -> None:
    world = await World.start(*(f"m-{number}" for number in range(1500)))
    informer = world.informer(resync_seconds=10)
    loop = asyncio.get_running_loop()
    # How many were told of each time that somebody else had a turn.
    turns = [0]
    told = 0

    class Counting(Notes):
        def on_add(self, obj: Any) -> None:
            nonlocal told
            told += 1
            if told % 100 == 1:
                loop.call_soon(lambda: turns.append(told))

        def on_update(self, old: Any, new: Any) -> None:
            self.on_add(new)

    informer.add_handler(Counting())
    async with run_informer(informer):
        assert told == 1500
        await until(lambda: told == 3000)
    assert max(later - turn for turn, later in pairwise([*turns, 3000])) <= 600


@virtual_time
async def test_who_cancels_it_gets_everything_back() -> None:
    world = await World.start("a")
    informer = world.informer(resync_seconds=10)
    async with run_informer(informer) as task:
        assert len(world.line.streams) == 1
    assert task.cancelled()
    assert world.line.streams == []
    assert (informer.has_synced, informer.is_live) == (True, False)


@virtual_time
async def test_an_informer_runs_once() -> None:
    world = await World.start()
    informer = world.informer()
    async with run_informer(informer):
        with pytest.raises(RuntimeError, match="configmaps"):
            await informer.run()
        assert informer.is_live

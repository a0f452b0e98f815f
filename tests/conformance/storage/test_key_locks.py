"""What every store promises of `locked`: one holder at a time, in order, and no way to get stuck."""

from __future__ import annotations

import asyncio

from podlife.apiserver.storage import Key, Put, Store
from tests.conformance.storage.storage_kit import expected, held, pass_turns, pod, start, text


async def hold(store: Store, keys: tuple[Key, ...], log: list[str], name: str, go: asyncio.Event) -> None:
    async with store.locked(*keys):
        log.append(name)
        await go.wait()


async def test_holders_of_one_key_follow_each_other_in_the_order_they_came(store: Store) -> None:
    log: list[str] = []
    gates = [asyncio.Event() for _ in range(3)]
    tasks = []
    for i, gate in enumerate(gates):
        tasks.append(start(hold(store, (pod("a"),), log, f"{i}", gate)))
        await pass_turns(1)
    assert log == ["0"]
    gates[0].set()
    await pass_turns()
    assert log == ["0", "1"]
    gates[1].set()
    gates[2].set()
    await asyncio.gather(*tasks)
    assert log == ["0", "1", "2"]


async def test_different_keys_do_not_wait_for_each_other(store: Store) -> None:
    async with store.locked(pod("a")), store.locked(pod("b")):
        pass


async def test_a_read_a_decision_and_a_commit_under_the_lock_lose_no_update(store: Store) -> None:
    async def increment() -> None:
        async with store.locked(pod("a")):
            record = store.get(pod("a"))
            count = 0 if record is None else int(record.value.split(b"@")[0])
            await store.commit(Put(pod("a"), text(str(count + 1)), expected(store, pod("a"))))

    await asyncio.gather(*(increment() for _ in range(50)))
    assert held(store, pod("a")).value == b"50@50"


async def test_several_keys_taken_in_any_order_never_wait_in_a_circle(store: Store) -> None:
    keys = [pod("a"), pod("b"), pod("c")]

    async def take(*chosen: Key) -> None:
        for _ in range(20):
            async with store.locked(*chosen):
                await asyncio.sleep(0)

    async with asyncio.timeout(60):
        await asyncio.gather(
            take(*keys), take(*reversed(keys)), take(keys[1], keys[0]), take(keys[2], keys[0])
        )


async def test_a_key_named_twice_is_taken_once(store: Store) -> None:
    async with asyncio.timeout(60):
        async with store.locked(pod("a"), pod("a")):
            pass
        async with store.locked(pod("a")):
            pass


async def test_whoever_gives_up_waiting_leaves_the_queue(store: Store) -> None:
    log: list[str] = []
    go = asyncio.Event()
    tasks = []
    for name in ("first", "gives up", "last"):
        tasks.append(start(hold(store, (pod("a"),), log, name, go)))
        await pass_turns(1)
    tasks[1].cancel()
    await pass_turns()
    go.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert log == ["first", "last"]


async def test_whoever_gives_up_in_the_moment_of_its_turn_hands_the_key_on(store: Store) -> None:
    log: list[str] = []
    go = asyncio.Event()
    go.set()
    async with store.locked(pod("a")):
        loser = start(hold(store, (pod("a"),), log, "loser", go))
        await pass_turns(1)
        last = start(hold(store, (pod("a"),), log, "last", go))
        await pass_turns(1)
    # The key has changed hands, and the one who got it has not had its turn yet.
    loser.cancel()
    async with asyncio.timeout(60):
        await asyncio.gather(loser, last, return_exceptions=True)
    assert loser.cancelled()
    assert log == ["last"]


async def test_whoever_gives_up_with_some_of_its_keys_lets_go_of_them(store: Store) -> None:
    log: list[str] = []
    go = asyncio.Event()
    holder = start(hold(store, (pod("b"),), log, "holder", go))
    await pass_turns(1)
    both = start(hold(store, (pod("a"), pod("b")), log, "both", go))
    await pass_turns(1)
    both.cancel()
    await asyncio.gather(both, return_exceptions=True)
    async with asyncio.timeout(60), store.locked(pod("a")):
        pass
    go.set()
    await holder


async def test_an_error_inside_lets_go_of_the_key(store: Store) -> None:
    try:
        async with store.locked(pod("a")):
            raise ValueError("inside")
    except ValueError:
        pass
    async with asyncio.timeout(60), store.locked(pod("a")):
        pass

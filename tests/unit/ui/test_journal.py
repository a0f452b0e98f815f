"""The journal of a stream: what a reader that was cut off can go on from."""

from __future__ import annotations

import asyncio

from podlife.ui.journal import Journal


def published(journal: Journal, count: int) -> Journal:
    for number in range(count):
        journal.publish("lives", b"[%d]" % number)
    return journal


def numbers(journal: Journal, after: int) -> list[int] | None:
    frames = journal.since(after)
    return None if frames is None else [frame.number for frame in frames]


async def test_frames_after_a_number_are_given_in_order() -> None:
    journal = published(Journal(), 4)
    assert numbers(journal, 2) == [3, 4]
    assert numbers(journal, 4) == []
    assert numbers(journal, 0) == [1, 2, 3, 4]


async def test_a_reader_that_fell_out_is_told() -> None:
    journal = published(Journal(most_frames=3), 5)
    assert numbers(journal, 2) == [3, 4, 5]
    assert numbers(journal, 1) is None
    assert numbers(published(Journal(most_bytes=7), 5), 2) is None


async def test_a_frame_beyond_the_bound_stays_until_the_next_one_so_that_readers_get_it() -> None:
    journal = Journal(most_bytes=10)
    journal.publish("lives", b"x" * 100)
    assert numbers(journal, 0) == [1]
    journal.publish("lives", b"x")
    assert numbers(journal, 0) is None
    assert numbers(journal, 1) == [2]


async def test_an_id_of_the_future_of_another_process_or_no_id_at_all_starts_again() -> None:
    journal = published(Journal(), 3)
    assert journal.number_of(journal.id_of(2)) == 2
    for id_ in (
        "",
        "x",
        Journal().id_of(2),
        journal.id_of(4),
        journal.id_of(2) + "0" * 5000,
        journal.id_of(-1),
    ):
        assert journal.number_of(id_) is None


async def test_a_waiting_reader_wakes_up_with_the_next_frame() -> None:
    journal = Journal()
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        waiting = group.create_task(journal.wait())
        await asyncio.sleep(0)
        assert not waiting.done()
        journal.publish("status", b"{}")

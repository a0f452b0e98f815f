"""Twice the list takes twice the time, for every list and map of the schema: no check compares all with all.

Measured in CPU time of this process, at sizes where the square would be unmistakable; no other process, no socket.
"""

from __future__ import annotations

import time

import pytest

from podlife.apiserver.endpoints import ApiHandler
from podlife.wire import Peer, Query, Request
from tests.fuzz.hostile import Place, body, places
from tests.kit import embedded

FEW, MANY = 300, 2_400
# Eight times the elements: eight times the time where it grows with them, sixty-four times where with their square.
MOST_GROWTH = 24
# What is faster than this says nothing: a collection of garbage takes as long.
NOISE_SECONDS = 0.15
ADMIN = Peer("admin", ("system:masters",))
VARIANTS = ["equal", "different", "together", "full equal", "full different"]


async def seconds_for(
    handler: ApiHandler, place: Place, variant: str, elements: int, *, times: int = 1
) -> float:
    """The least of several times: a collection of garbage, or the first of its kind, takes longer."""
    data = body(place, variant, elements=elements)
    request = Request("POST", place.seed.collection, Query("dryRun=All"), {}, data, ADMIN)
    measured = []
    for _ in range(times):
        began = time.process_time()
        answer = await handler(request)
        measured.append(time.process_time() - began)
        assert answer.status in (201, 413, 422), answer
    return min(measured)


def places_for(variant: str) -> list[Place]:
    """Places where no earlier variant makes the same body: all scalars of an element may be one, and `together` fills
    every list of an object, whichever of them the place names."""
    earlier = VARIANTS[: VARIANTS.index(variant)]
    found = places()
    if variant == "together":
        found = list({(repr(place.seed), place.way[:-1]): place for place in found}.values())
    return [
        place for place in found if _small(place, variant) not in [_small(place, each) for each in earlier]
    ]


def _small(place: Place, variant: str) -> bytes:
    """Elements are made one like the other: bodies that are equal with two are equal with any number."""
    return body(place, variant, elements=2)


@pytest.mark.parametrize("variant", VARIANTS)
async def test_the_time_of_a_request_grows_with_its_lists(variant: str) -> None:
    handler = await embedded.start()
    found: dict[str, str] = {}
    for place in places_for(variant):
        many = await seconds_for(handler, place, variant, MANY)
        if many < NOISE_SECONDS:
            continue
        few = await seconds_for(handler, place, variant, FEW, times=3)
        if many > MOST_GROWTH * few:
            many = await seconds_for(handler, place, variant, MANY, times=3)
        if many > MOST_GROWTH * few:
            found[repr(place)] = f"{FEW} elements {few:.3f} s, {MANY} elements {many:.3f} s"
    assert found == {}

"""Parts of the HTTP server that need no socket."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.apiserver.http.bodies import SLICE_BYTES, headers_of, slices
from podlife.apiserver.http.server import _peer_of
from podlife.wire import Peer, Response

SUBJECT = ((("organizationName", "a"),), (("organizationName", "b"),), (("commonName", "me"),))


@pytest.mark.parametrize(
    ("certificate", "peer"),
    [
        ({"subject": SUBJECT}, Peer("me", ("a", "b"))),
        ({"subject": SUBJECT[:1]}, None),
        ({"subject": ()}, None),
        ({}, None),
        (None, None),
    ],
)
def test_a_peer_is_its_subject_and_needs_a_name(
    certificate: dict[str, Any] | None, peer: Peer | None
) -> None:
    assert _peer_of(certificate) == peer


@pytest.mark.parametrize(
    "sizes",
    [
        [],
        [0],
        [1],
        [SLICE_BYTES],
        [SLICE_BYTES + 1],
        [600_000] * 3,
        [2] * 300_000,
        [5_000_000, 1, 0, 700_000],
    ],
    ids=lambda sizes: f"{len(sizes)} of {sum(sizes)}",
)
def test_slices_add_up_to_the_pieces_and_are_of_one_size(sizes: list[int]) -> None:
    pieces = [bytes([number % 251]) * size for number, size in enumerate(sizes)]
    parts = list(slices(pieces))
    assert b"".join(parts) == b"".join(pieces)
    assert all(len(part) == SLICE_BYTES for part in parts[:-1])
    assert all(0 < len(part) <= SLICE_BYTES for part in parts)


def test_answers_are_not_cached_unless_they_say_otherwise() -> None:
    assert headers_of(Response())["Cache-Control"] == "no-cache, private"
    assert headers_of(Response(headers={"cache-control": "public"}))["Cache-Control"] == "public"

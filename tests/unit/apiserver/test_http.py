"""The parts of the face that need no socket."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.apiserver.http import _peer_of
from podlife.apiserver.http_bodies import _slices, headers_of
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


@pytest.mark.parametrize(("count", "size"), [(0, 1), (1, 1), (3, 600_000), (1_000_000, 2), (5, 524_288)])
def test_slices_add_up_to_the_pieces_and_are_of_a_useful_size(count: int, size: int) -> None:
    pieces = [bytes([number % 256]) * size for number in range(count)]
    parts = list(_slices(pieces))
    assert b"".join(parts) == b"".join(pieces)
    assert all(len(part) >= 524_288 for part in parts[:-1])
    assert all(len(part) < 524_288 + size for part in parts)


def test_answers_are_not_cached_unless_they_say_otherwise() -> None:
    assert headers_of(Response())["Cache-Control"] == "no-cache, private"
    assert headers_of(Response(headers={"cache-control": "public"}))["Cache-Control"] == "public"

"""An entry comes back as it was written; whatever else is there is told as damaged."""

from __future__ import annotations

import gzip
import io
import os
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podlife.podgc.archive import step as joining_module
from podlife.podgc.archive.entry import (
    DamagedError,
    Entry,
    Header,
    Log,
    decode_entry,
    encode_entry,
    read_header,
)
from podlife.podgc.archive.step import joined_events, joined_logs
from tests.unit.podgc.archive.entries import make_entry

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(), JSON, max_size=4)
LOGS = st.builds(
    Log,
    container=st.text(),
    kind=st.sampled_from(["init", "main", "ephemeral"]),
    is_previous=st.booleans(),
    text=st.text(),
    is_cut=st.booleans(),
    problem=st.text(),
)
MOMENTS = st.datetimes(min_value=datetime(1971, 1, 1), timezones=st.just(UTC))
HEADERS = st.builds(
    Header, namespace=st.text(), name=st.text(), uid=st.text(), archived_at=MOMENTS, why=st.text()
)


@given(HEADERS, OBJECTS, st.lists(OBJECTS, max_size=3), st.lists(LOGS, max_size=3))
def test_whatever_is_in_an_entry_comes_back(
    header: Header, pod: dict[str, object], events: list[dict[str, object]], logs: list[Log]
) -> None:
    entry = Entry(header, pod, tuple(events), tuple(logs))
    data = encode_entry(entry)
    assert decode_entry(data) == entry
    assert read_header(io.BytesIO(data)) == header


def test_the_header_is_read_without_the_rest() -> None:
    data = encode_entry(make_entry(log_bytes=500_000))
    assert read_header(io.BytesIO(data[:4096])).name == "web"


def test_a_header_with_any_byte_changed_is_damaged_and_never_shown() -> None:
    entry = make_entry(log_bytes=2000)
    data = encode_entry(entry)
    refused = 0
    for place in range(len(data)):
        changed = data[:place] + bytes([data[place] ^ 0x01]) + data[place + 1 :]
        try:
            assert read_header(io.BytesIO(changed)) == entry.header, f"byte {place}"
        except DamagedError:
            refused += 1
    assert refused > 100


def test_the_header_of_an_entry_that_an_earlier_version_wrote_is_read() -> None:
    entry = make_entry(log_bytes=500_000)
    together = gzip.compress(gzip.decompress(encode_entry(entry)), mtime=0)
    assert read_header(io.BytesIO(together[:4096])) == entry.header
    assert decode_entry(together) == entry


@given(st.data())
def test_an_entry_that_was_cut_short_or_changed_is_damaged_and_never_half_an_entry(
    data: st.DataObject,
) -> None:
    whole = encode_entry(make_entry(log_bytes=2000))
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(DamagedError):
        decode_entry(whole[:cut])
    # But for the ten bytes before each of its two parts: those say little, and gzip does not look at all of them.
    second = whole.index(b"\x1f\x8b\x08", 10)
    place = data.draw(st.integers(10, second - 1) | st.integers(second + 10, len(whole) - 1))
    changed = whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :]
    with pytest.raises(DamagedError):
        decode_entry(changed)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "first line is not the header"),
        (b"nothing of ours\n", "first line is not the header"),
        (
            b'{"namespace":"a","name":"b","uid":"c","archivedAt":"2030-01-01T00:00:00Z","format":"x/9"}\n',
            "'x/9'",
        ),
        (b'{"namespace":"a","name":"b","uid":"c","archivedAt":"2030-01-01T00:00:00Z"}\n', "no pod in it"),
        (
            b'{"namespace":"a","name":"b","uid":"c","archivedAt":"2030-01-01T00:00:00Z"}\n[]\n',
            "cannot be read",
        ),
        (
            b'{"namespace":"a","name":"b","uid":"c","archivedAt":"2030-01-01T00:00:00Z"}\n{"pod":'
            + b"[" * 5000,
            "cannot",
        ),
    ],
)
def test_what_is_no_entry_is_told_in_words(content: bytes, why: str) -> None:
    with pytest.raises(DamagedError, match=why):
        decode_entry(gzip.compress(content))


def test_a_file_made_to_fill_the_memory_is_not_unpacked() -> None:
    header = encode_entry(make_entry())
    bomb = gzip.compress(bytes(70 << 20), compresslevel=1)
    with pytest.raises(DamagedError, match="larger than any entry"):
        decode_entry(header + bomb)


def test_noise_is_no_entry() -> None:
    for _ in range(20):
        with pytest.raises(DamagedError):
            decode_entry(os.urandom(200))


# A pod that is archived again: nothing is lost, nothing is there twice, and it does not grow for ever


def event(number: int, count: int = 1) -> dict[str, Any]:
    return {"metadata": {"uid": f"e-{number}"}, "count": count}


def test_a_log_that_cannot_be_had_any_more_is_as_it_was() -> None:
    old = (Log(container="a", text="1"), Log(container="b", text="2"), Log(container="gone", text="3"))
    new = (
        Log(container="a", problem="404"),
        Log(container="b", text="4"),
        Log(container="a", is_previous=True, problem="404"),
    )
    assert joined_logs(old, new) == (old[0], new[1], new[2], old[2])


def test_a_log_that_never_was_there_has_the_reason_of_now() -> None:
    assert joined_logs((Log(container="a", problem="old"),), (Log(container="a", problem="new"),)) == (
        Log(container="a", problem="new"),
    )


def test_each_event_is_there_once_as_it_is_now() -> None:
    assert joined_events([event(1), event(2)], [event(2, 7), event(3)]) == [event(1), event(2, 7), event(3)]
    nameless = {"reason": "Killing"}
    assert joined_events([nameless], [nameless]) == [nameless]


def test_of_too_many_events_or_too_large_ones_the_latest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = [event(number) for number in range(499)], [event(number) for number in range(1000, 1010)]
    found = joined_events(old, new)
    assert (len(found), found[-10:]) == (500, new)
    monkeypatch.setattr(joining_module, "MAX_EVENT_BYTES", 200)
    found = joined_events(old, new)
    assert 0 < len(found) < 10
    assert found == new[-len(found) :]

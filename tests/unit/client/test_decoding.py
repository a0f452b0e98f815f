"""Objects that cannot be read as they are, and the lines of a stream.

kube-apiserver takes ten thousand levels, and letters that are none, where any JSON may stand (ControllerRevisions). One
tenant's object must not keep everybody's list or watch from being read.
"""

from __future__ import annotations

import json
import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podlife.api.views import MetadataOnly
from podlife.client import BadAnswerError
from podlife.client.views import decode_page
from podlife.client.watch import LineSplitter, WatchEvent, decode_line
from podlife.workloads.controller_revisions import ControllerRevision

DEEP = '{"x":' + "[" * 9000 + '{"]": "[\\"]"}' + "]" * 9000 + "}"


def revision(name: str, data: str = '{"x":[1]}') -> str:
    metadata = json.dumps(
        {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": "7"}
    )
    return f'{{"data":{data},"metadata":{metadata},"revision":3}}'


def page(*items: str) -> bytes:
    return f'{{"kind":"L","metadata":{{"resourceVersion":"9"}},"items":[{",".join(items)}]}}'.encode()


def test_one_object_too_deep_in_a_list_is_told_of_and_the_others_are_read() -> None:
    misfits: list[BadAnswerError] = []
    read = decode_page(
        page(revision("a"), revision("deep", DEEP), revision("b")), ControllerRevision, "GET", misfits.append
    )
    assert [(each.metadata.name, each.revision, each.data) for each in read.items] == [
        ("a", 3, {"x": [1]}),
        ("b", 3, {"x": [1]}),
    ]
    assert [(each.namespace, each.name, each.resource_version) for each in misfits] == [
        ("default", "deep", "7")
    ]
    assert read.resource_version == "9"
    assert len(str(misfits[0])) < 300


def test_who_does_not_look_at_what_is_too_deep_reads_the_object() -> None:
    read = decode_page(page(revision("deep", DEEP)), MetadataOnly, "GET")
    assert [each.metadata.name for each in read.items] == ["deep"]


@pytest.mark.parametrize("type_", ["MODIFIED", "DELETED"])
def test_event_of_an_object_too_deep_is_a_misfit_and_no_broken_stream(type_: str) -> None:
    line = f'{{"type":"{type_}","object":{revision("deep", DEEP)}}}'.encode()
    with pytest.raises(BadAnswerError) as raised:
        decode_line(line, ControllerRevision)
    assert (raised.value.name, raised.value.resource_version) == ("deep", "7")
    assert raised.value.is_deleted is (type_ == "DELETED")
    event = decode_line(line, MetadataOnly)
    assert event.resource_version == "7"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (rb"\ud800", "\ufffd"),
        (rb"\uDFFF and \\ud800", "\ufffd and \\ud800"),
        (rb"\ud83d\ude00 \ude00\ud83d", "\U0001f600 \ufffd\ufffd"),
        (rb"\ud800\ud83d\ude00", "\ufffd\U0001f600"),
        (b"\xff", "\ufffd"),
    ],
)
def test_letters_that_are_none_are_read_as_go_reads_them(written: bytes, read: str) -> None:
    """kube-apiserver passes them on as they were written."""
    item = revision("odd", '{"x":"HERE"}').encode().replace(b"HERE", written)
    items = page(revision("a"), "HERE", revision("b")).replace(b"HERE", item)
    found = decode_page(items, ControllerRevision, "GET")
    assert [each.data for each in found.items] == [{"x": [1]}, {"x": read}, {"x": [1]}]
    event = decode_line(b'{"type":"ADDED","object":' + item + b"}", ControllerRevision)
    assert isinstance(event, WatchEvent)
    assert event.object.data == {"x": read}


def test_list_with_something_too_deep_and_something_without_letters_is_read() -> None:
    misfits: list[BadAnswerError] = []
    items = page(revision("odd", r'{"x":"\ud800"}'), revision("deep", DEEP), revision("b"))
    found = decode_page(items, ControllerRevision, "GET", misfits.append)
    assert [each.metadata.name for each in found.items] == ["odd", "b"]
    assert [each.name for each in misfits] == ["deep"]


def test_brackets_without_end_are_no_answer() -> None:
    with pytest.raises(BadAnswerError):
        decode_page(b'{"items":' + b"[" * 100_000, ControllerRevision, "GET", lambda error: None)


def test_number_that_no_float_holds_is_still_a_misfit_by_itself() -> None:
    """What stands for the part that is left out is one of those: it must be refused wherever it is looked at."""
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(b'{"x":1e999}')
    assert msgspec.json.decode(b'{"x":1e999,"metadata":{}}', type=MetadataOnly).metadata.name == ""


@given(st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line and line.strip())), st.data())
def test_lines_come_out_as_they_went_in_however_they_are_cut(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    splitter = LineSplitter()
    seen: list[bytes] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        seen += splitter.feed(stream[start:end])
    assert seen == lines
    assert splitter.rest() == b""


def test_what_was_begun_and_not_ended_is_the_rest() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b'{"a":1}\n\n \r\n{"b"') == [b'{"a":1}']
    assert splitter.feed(b":") == []
    assert splitter.rest() == b'{"b":'


def test_a_line_past_the_bound_is_refused_even_if_it_never_ends() -> None:
    splitter = LineSplitter(most_bytes=10)
    splitter.feed(b"12345678")
    with pytest.raises(BadAnswerError, match="longer than 10 bytes"):
        splitter.feed(b"901")


def test_a_huge_line_in_small_pieces_takes_linear_time() -> None:
    splitter = LineSplitter()
    began = time.process_time()
    for _ in range(16 * 1024):
        splitter.feed(b"x" * 1024)
    (line,) = splitter.feed(b"\n")
    assert len(line) == 16 * 1024 * 1024
    # In quadratic time this moves 128 GiB: minutes.
    assert time.process_time() - began < 20

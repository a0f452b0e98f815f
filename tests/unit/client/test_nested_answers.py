"""An object that is nested more deeply than can be read: kube-apiserver takes ten thousand levels where any JSON may
stand (ControllerRevisions), and one tenant's object must not keep everybody's list or watch from being read."""

from __future__ import annotations

import json

import msgspec
import pytest

from podlife.api.views import MetadataOnly
from podlife.client import BadAnswerError
from podlife.client.views import decode_page
from podlife.client.watch import decode_line
from podlife.workloads.history import ControllerRevision

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


def test_brackets_without_end_are_no_answer() -> None:
    with pytest.raises(BadAnswerError):
        decode_page(b'{"items":' + b"[" * 100_000, ControllerRevision, "GET", lambda error: None)


def test_number_that_no_float_holds_is_still_a_misfit_by_itself() -> None:
    """What stands for the part that is left out is one of those: it must be refused wherever it is looked at."""
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(b'{"x":1e999}')
    assert msgspec.json.decode(b'{"x":1e999,"metadata":{}}', type=MetadataOnly).metadata.name == ""

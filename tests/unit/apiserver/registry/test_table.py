from __future__ import annotations

import json
from typing import Any

import pytest

from podlife.api.codec import encode
from podlife.apiserver.catalog import ResourceCatalog
from podlife.apiserver.registry.negotiation import Representation
from podlife.apiserver.registry.table import convert, convert_list
from podlife.apiserver.resource import Resource
from podlife.errors import ApiError

NOW = 1893499200.0
TABLE = Representation(kind="Table")
PODS = ResourceCatalog().find("", "v1", "pods") or pytest.fail("no pods")
PLAIN = Resource("example.com", "v1", "Thing", "things")


def pod(name: str, phase: str = "Pending") -> bytes:
    return encode(
        {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {"name": name, "resourceVersion": "7", "creationTimestamp": "2030-01-01T11:59:00Z"},
            "spec": {"containers": [{"name": "c"}]},
            "status": {"phase": phase},
        }
    )


def metadata(value: bytes) -> dict[str, Any]:
    found = json.loads(value)["metadata"]
    assert isinstance(found, dict)
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": found}


def table_of(*values: bytes, to: Representation = TABLE, resource: Resource = PODS) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(
        convert_list(resource, values, {"resourceVersion": "9", "continue": "x"}, to, now=NOW)
    )
    return answer


def test_list_becomes_a_table_with_the_list_metadata_and_a_row_for_each() -> None:
    table = table_of(pod("a"), pod("b"))
    assert table["kind"] == "Table"
    assert table["apiVersion"] == "meta.k8s.io/v1"
    assert table["metadata"] == {"resourceVersion": "9", "continue": "x"}
    assert [row["cells"][:5] for row in table["rows"]] == [
        ["a", "0/1", "Pending", "0", "60s"],
        ["b", "0/1", "Pending", "0", "60s"],
    ]
    assert table["columnDefinitions"][1] == {
        "name": "Ready",
        "type": "string",
        "format": "",
        "description": "The aggregate readiness state of this pod for accepting traffic.",
        "priority": 0,
    }


def test_empty_list_still_describes_its_columns() -> None:
    table = table_of()
    assert table["rows"] == []
    assert len(table["columnDefinitions"]) == 9


@pytest.mark.parametrize(
    ("include", "expected"),
    [("Metadata", metadata(pod("a"))), ("Object", json.loads(pod("a"))), ("None", None)],
)
def test_row_carries_what_was_asked_for(include: str, expected: object) -> None:
    to = Representation(kind="Table", include_object=include)
    assert table_of(pod("a"), to=to)["rows"][0]["object"] == expected


def test_only_a_finished_pod_has_conditions_in_its_row() -> None:
    rows = table_of(pod("a", "Succeeded"), pod("b", "Running"))["rows"]
    assert rows[0]["conditions"][0]["reason"] == "Succeeded"
    assert "conditions" not in rows[1]


def test_one_object_becomes_a_table_with_its_own_revision() -> None:
    table = json.loads(convert(PODS, pod("a"), TABLE, now=NOW))
    assert table["metadata"] == {"resourceVersion": "7"}
    assert [row["cells"][0] for row in table["rows"]] == ["a"]
    assert table["columnDefinitions"]


def test_later_events_of_a_watch_do_not_describe_the_columns_again() -> None:
    table = json.loads(convert(PODS, pod("a"), TABLE, now=NOW, headers=False))
    assert table["columnDefinitions"] is None
    assert table["rows"][0]["cells"][0] == "a"


def test_kind_without_a_printer_has_a_table_too() -> None:
    assert [row["cells"] for row in table_of(pod("a"), resource=PLAIN)["rows"]] == [
        ["a", "2030-01-01T11:59:00Z"]
    ]


def test_older_version_of_the_table_names_itself() -> None:
    table = table_of(pod("a"), to=Representation(kind="Table", version="v1beta1"))
    assert table["apiVersion"] == "meta.k8s.io/v1beta1"
    assert table["rows"][0]["object"]["apiVersion"] == "meta.k8s.io/v1beta1"


def test_metadata_of_one_object() -> None:
    partial = convert(PODS, pod("a"), Representation(kind="PartialObjectMetadata"), now=NOW)
    assert json.loads(partial) == metadata(pod("a"))


def test_metadata_of_a_list() -> None:
    to = Representation(kind="PartialObjectMetadataList")
    assert table_of(pod("a"), pod("b"), to=to) == {
        "kind": "PartialObjectMetadataList",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": "9", "continue": "x"},
        "items": [metadata(pod("a")), metadata(pod("b"))],
    }


def test_metadata_of_an_empty_list_is_null_as_the_real_server_has_it() -> None:
    assert table_of(to=Representation(kind="PartialObjectMetadataList"))["items"] is None


def test_object_that_is_wanted_as_it_is_stays_the_same_bytes() -> None:
    value = pod("a")
    assert convert(PODS, value, Representation(), now=NOW) is value


def test_metadata_of_one_object_cannot_be_had_of_a_list() -> None:
    with pytest.raises(ApiError, match="the requested object is a list") as refused:
        table_of(pod("a"), to=Representation(kind="PartialObjectMetadata"))
    assert refused.value.code == 406


def test_metadata_of_a_list_cannot_be_had_of_one_object() -> None:
    with pytest.raises(ApiError, match="the requested object is not a list") as refused:
        convert(PODS, pod("a"), Representation(kind="PartialObjectMetadataList"), now=NOW)
    assert refused.value.code == 406

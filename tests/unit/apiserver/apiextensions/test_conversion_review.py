"""ConversionReviews: every way in which a webhook can answer wrongly has a message."""

from __future__ import annotations

import json
from typing import Any

import pytest

from podlife.apiserver.apiextensions.conversion_review import (
    converted_objects,
    review_of,
    review_version,
)

ABOUT = "conversion webhook for example.com/v1, Kind=Widget"


def widget(version: str = "v1", **fields: Any) -> dict[str, Any]:
    metadata = {"name": "a", "namespace": "n", "uid": "u", "labels": {"x": "y"}, **fields.pop("metadata", {})}
    return {"kind": "Widget", "apiVersion": f"example.com/{version}", "metadata": metadata, **fields}


def answer(*objects: Any, **response: Any) -> bytes:
    whole = {"uid": "1", "convertedObjects": list(objects), "result": {"status": "Success"}, **response}
    return json.dumps(
        {"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "response": whole}
    ).encode()


def read(data: bytes, version: str = "v1") -> list[dict[str, Any]]:
    return converted_objects(data, [widget(spec=1)], "example.com/v2", uid="1", version=version)


def test_review_asks_for_all_objects_in_one_version() -> None:
    review = json.loads(review_of([json.dumps(widget()).encode()], "example.com/v2", uid="1", version="v1"))
    assert (review["kind"], review["apiVersion"]) == ("ConversionReview", "apiextensions.k8s.io/v1")
    assert review["request"] == {"uid": "1", "desiredAPIVersion": "example.com/v2", "objects": [widget()]}


def test_first_version_that_is_known_is_used() -> None:
    assert review_version(["v9", "v1beta1", "v1"]) == "v1beta1"
    with pytest.raises(match="no supported conversion review versions"):
        review_version(["v9"])


def test_labels_and_annotations_are_the_webhooks_and_other_metadata_is_kept() -> None:
    changed = {"labels": {"new": "1"}, "annotations": {"a": "b"}, "generation": 9, "finalizers": ["x"]}
    assert read(answer(widget("v2", spec=2, metadata=changed))) == [
        {
            **widget("v2", spec=2),
            "metadata": {
                "name": "a",
                "namespace": "n",
                "uid": "u",
                "labels": {"new": "1"},
                "annotations": {"a": "b"},
            },
        }
    ]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"nonsense", "failed: "),
        (b"[" * 100_000, "failed: "),
        (b'{"kind":"X","apiVersion":"y"}', 'failed: no kind "X" is registered for version "y"'),
        (b"{}", "failed: expected webhook response of apiextensions.k8s.io/v1"),
        (
            b'{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1"}',
            "failed: no response provided",
        ),
        (answer(uid="2"), 'failed: expected response.uid="1", got "2"'),
        (answer(result={"status": "Failure", "message": "no way"}), "failed: no way"),
        (answer(result={}), "failed: response.result.status was '', not 'Success'"),
        (answer(), "returned 0 objects, expected 1"),
        (
            answer({**widget("v2"), "spec": [1] * 60_000}),
            "returned invalid object at index 0: an object may have",
        ),
        (b"," * 600_000, "failed: the answer has more than 500000 values"),
        (
            answer(widget()),
            "returned invalid object at index 0: invalid groupVersion (expected example.com/v2, received ",
        ),
        (
            answer({**widget("v2"), "kind": "Other"}),
            "returned invalid object at index 0: invalid kind (expected Widget, received Other)",
        ),
        (
            answer(widget("v2", metadata={"name": "b"})),
            "returned invalid object: must have the same name: a != b",
        ),
        (
            answer(widget("v2", metadata={"uid": "w"})),
            "returned invalid object: must have the same UID: u != w",
        ),
        (
            answer(widget("v2", metadata={"labels": 1})),
            "returned invalid metadata: invalid metadata.labels of type int64 in converted object",
        ),
        (
            answer(widget("v2", metadata={"labels": {"x": 1}})),
            "returned invalid metadata: metadata.labels[x] must be a string, but is int64 in converted object",
        ),
        (
            answer(widget("v2", metadata={"labels": {"-": ""}})),
            "returned invalid metadata: metadata.labels: Invalid value",
        ),
    ],
)
def test_wrong_answer_is_told_in_upstream_words(data: bytes, why: str) -> None:
    with pytest.raises(ValueError) as failure:
        read(data)
    assert str(failure.value).startswith(f"{ABOUT} {why}")


@pytest.mark.parametrize(
    ("objects", "why"),
    [
        ([1], "json: cannot unmarshal number into Go value of type map[string]interface {}"),
        ([None], "unexpected end of JSON input"),
        ([{}], "Object 'Kind' is missing in '{}'"),
    ],
)
def test_element_that_is_not_an_object_is_told_as_go_does(objects: list[Any], why: str) -> None:
    with pytest.raises(ValueError) as failure:
        read(answer(*objects))
    assert str(failure.value) == why


def test_old_reviews_are_not_checked_for_their_uid() -> None:
    old = answer(widget("v2"), uid="2").replace(b"k8s.io/v1", b"k8s.io/v1beta1")
    assert read(old, version="v1beta1") == [widget("v2")]

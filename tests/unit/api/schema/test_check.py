"""What may pass the gate, and the words for what may not.

`decode_cases.json` holds bodies and what kube-apiserver v1.36 answered to them with fieldValidation=Strict: the
message of its 400, or null where it could read the body.
"""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from podlife.api.schema import DecodeError, UnknownKindError, check, kinds

CASES = json.loads((Path(__file__).parent / "decode_cases.json").read_text())


def shown(value: Any) -> str:
    return json.dumps(value)[:100]


@pytest.mark.parametrize(
    ("body", "message"), [case for case in CASES if case[1]], ids=[shown(c[0]) for c in CASES if c[1]]
)
def test_a_body_the_real_server_cannot_read_is_refused_in_its_words(body: Any, message: str) -> None:
    given = copy.deepcopy(body)
    if "strict decoding error" in message:
        unknown = check("v1", body["kind"], body)
        assert message.endswith(f"strict decoding error: {', '.join(unknown)}")
        return
    with pytest.raises(DecodeError) as refused:
        check("v1", body["kind"], body)
    kind = given["kind"]
    assert f'{kind} in version "v1" cannot be handled as a {kind}: {refused.value}' == message
    assert body == given


@pytest.mark.parametrize("body", [case[0] for case in CASES if not case[1]], ids=shown)
def test_a_body_the_real_server_reads_is_read(body: Any) -> None:
    assert check("v1", body["kind"], body) == []


def pod(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}


def test_unknown_fields_are_told_in_their_order_and_dropped() -> None:
    obj = pod(containers=[{"name": "a"}, {"foo": 1, "name": "b"}], NodeName="n")
    obj["metadata"]["labels"] = {"any": "key"}
    obj["top"] = {}
    assert check("v1", "Pod", obj) == [
        'unknown field "spec.containers[1].foo"',
        'unknown field "spec.NodeName"',
        'unknown field "top"',
    ]
    assert obj["spec"] == {"containers": [{"name": "a", "resources": {}}, {"name": "b", "resources": {}}]}
    assert "top" not in obj


def test_at_most_a_hundred_unknown_fields_are_told() -> None:
    obj = pod(**{f"x{n}": n for n in range(200)})
    assert len(check("v1", "Pod", obj)) == 100


def test_a_type_error_wins_over_unknown_fields_and_an_unreadable_value_over_both() -> None:
    with pytest.raises(DecodeError, match=r"PodSpec\.spec\.hostNetwork of type bool"):
        check("v1", "Pod", pod(foo=1, hostNetwork="yes"))
    with pytest.raises(DecodeError, match="quantities must match"):
        check("v1", "Pod", pod(hostNetwork="yes", overhead={"cpu": "much"}))


def test_nulls_are_as_good_as_absent_and_an_element_that_is_null_is_empty() -> None:
    obj = pod(nodeName=None, containers=[None], tolerations=None, terminationGracePeriodSeconds=None)
    obj["metadata"] |= {"labels": {"a": None}, "creationTimestamp": None, "finalizers": [None]}
    assert check("v1", "Pod", obj) == []
    assert obj["metadata"] == {"name": "a", "labels": {"a": ""}, "finalizers": [""]}
    assert obj["spec"] == {"containers": [{"name": "", "resources": {}}]}


def test_values_become_what_the_real_server_writes() -> None:
    obj = pod(
        containers=[{"name": "c", "resources": {"limits": {"cpu": 0.5, "memory": "1024Mi"}}, "tty": False}],
        hostNetwork=False,
        tolerations=[],
        priority=0,
        nodeSelector={},
    )
    obj["metadata"]["creationTimestamp"] = "2024-01-01T00:00:00.7+02:00"
    obj["status"] = {"conditions": [{"type": "Ready", "status": "True"}]}
    assert check("v1", "Pod", obj) == []
    assert obj["metadata"]["creationTimestamp"] == "2023-12-31T22:00:00Z"
    limits = {"cpu": "500m", "memory": "1Gi"}
    assert obj["spec"] == {"containers": [{"name": "c", "resources": {"limits": limits}}], "priority": 0}
    condition = {"type": "Ready", "status": "True", "lastProbeTime": None, "lastTransitionTime": None}
    assert obj["status"] == {"conditions": [condition]}


def test_a_secret_holds_canonical_base64() -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {},
        "data": {"a": "YR==", "b": "YW\nJj", "c": [97]},
    }
    check("v1", "Secret", secret)
    assert secret["data"] == {"a": "YQ==", "b": "YWJj", "c": "YQ=="}


def test_what_was_checked_once_stays_as_it_is() -> None:
    for body, message in CASES:
        if message is None:
            check("v1", body["kind"], body)
            again = copy.deepcopy(body)
            assert check("v1", body["kind"], again) == []
            assert again == body


def test_the_checked_object_shares_nothing_with_what_was_given() -> None:
    spec: dict[str, Any] = {"containers": [{"name": "a"}]}
    obj: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": spec}
    check("v1", "Pod", obj)
    obj["spec"]["containers"][0]["name"] = "changed"
    assert spec == {"containers": [{"name": "a"}]}


def test_a_kind_that_is_not_served_is_refused() -> None:
    with pytest.raises(UnknownKindError, match='no kind "Pood"'):
        check("v1", "Pood", {})


def test_delete_options_are_known_in_every_version() -> None:
    options = {"apiVersion": "apps/v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
    assert check("apps/v1", "DeleteOptions", options) == []
    assert options["gracePeriodSeconds"] == 0


def test_every_kind_in_the_table_has_a_shape() -> None:
    for api_version, names in kinds().items():
        for kind in names:
            obj = {"apiVersion": api_version, "kind": kind}
            assert check(api_version, kind, obj) == []
            assert obj["kind"] == kind


def test_free_form_data_is_kept_as_it_came() -> None:
    data = {"a": None, "b": [1.5, {"c": None}], "d": "x"}
    obj = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {}, "data": data, "revision": 1}
    check("apps/v1", "ControllerRevision", obj)
    assert obj["data"] == data


def test_data_that_is_nested_too_deeply_is_refused() -> None:
    data: dict[str, Any] = {}
    for _ in range(100_000):
        data = {"a": data}
    obj = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {}, "data": data, "revision": 1}
    with pytest.raises(DecodeError, match="exceeded max depth"):
        check("apps/v1", "ControllerRevision", obj)
    while data:  # taken apart from the top: the interpreter would recurse
        data = data.pop("a")

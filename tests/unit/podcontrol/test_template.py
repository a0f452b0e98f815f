from __future__ import annotations

from typing import Any

import pytest

from podlife.api.selectors import label_selector_from_dict
from podlife.errors import TerminalError
from podlife.podcontrol import (
    InvalidTemplateError,
    Owner,
    SelectorMismatchError,
    pod_from_template,
    validate_selector,
)

OWNER = Owner("apps/v1", "ReplicaSet", "web", "u", "default")


@pytest.mark.parametrize("template", [{}, {"spec": None}, {"spec": []}, {"metadata": {"labels": {}}}])
def test_what_is_no_template_is_refused_in_one_line(template: dict[str, Any]) -> None:
    with pytest.raises(InvalidTemplateError) as caught:
        pod_from_template(template, OWNER)
    assert str(caught.value) == "the pod template of ReplicaSet default/web has no spec"


def test_selector_that_its_template_does_not_match_is_refused_for_good() -> None:
    selector = label_selector_from_dict({"matchLabels": {"app": "web"}})
    validate_selector(selector, {"metadata": {"labels": {"app": "web", "more": "1"}}})
    with pytest.raises(SelectorMismatchError) as caught:
        validate_selector(selector, {"metadata": {"labels": {"app": "db", "a": "b"}}})
    assert str(caught.value) == "selector 'app=web' does not match template labels 'a=b,app=db'"
    assert isinstance(caught.value, TerminalError)


def test_template_without_labels_matches_no_selector_that_asks_for_some() -> None:
    selector = label_selector_from_dict({"matchLabels": {"app": "web"}})
    with pytest.raises(SelectorMismatchError, match="<none>"):
        validate_selector(selector, {"spec": {}})


def test_null_where_a_collection_could_be_is_an_empty_one() -> None:
    template = {"metadata": {"labels": None, "annotations": None, "finalizers": None}, "spec": {"a": None}}
    pod = pod_from_template(template, OWNER)
    assert pod["metadata"] == {"labels": {}, "annotations": {}, "finalizers": [], "generateName": "web-"}
    assert pod["spec"] == {"a": None}

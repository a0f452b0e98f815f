"""Facts for programs say the same in every format."""

from __future__ import annotations

import json
from enum import StrEnum

import pytest
import yaml

from podlife.cli.output import STRUCTURED, structured


class Colour(StrEnum):
    RED = "red"


@pytest.mark.parametrize("output", STRUCTURED)
def test_a_format_holds_what_was_given_in_its_order(output: str) -> None:
    facts = {"b": [1, ("x", None)], "a": Colour.RED, "time": "2026-01-02T03:04:05Z", "on": True, "ü": "1e3"}
    read = yaml.safe_load(structured(facts, output))
    assert read == {
        "b": [1, ["x", None]],
        "a": "red",
        "time": "2026-01-02T03:04:05Z",
        "on": True,
        "ü": "1e3",
    }
    assert list(read) == list(facts)
    assert structured(facts, output).endswith("\n")


def test_json_is_json() -> None:
    assert json.loads(structured({"a": 1}, "json")) == {"a": 1}

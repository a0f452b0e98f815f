"""The schema that editors use is the reader's: what is published, what the examples say, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from podlife.podgc.policy.parse import load_policy
from podlife.podgc.policy.schema import policy_schema
from podlife.podgc.policy_printing import as_document
from tests.kit.real_parts import ROOT
from tests.unit.podgc.policy.json_schema import is_valid
from tests.unit.podgc.policy.parse.test_document import HEAD, WHOLE

EXAMPLES = [
    *sorted((ROOT / "examples" / "policies").glob("*.yaml")),
    ROOT / "deploy" / "gc" / "policy" / "policy.yaml",
]
PUBLISHED = ROOT / "docs" / "policy.schema.json"


def test_what_is_published_is_what_the_command_prints() -> None:
    assert json.loads(PUBLISHED.read_text(encoding="utf-8")) == policy_schema()


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 4


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_right_and_leads_an_editor_to_the_schema(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    prefix = "# yaml-language-server: $schema="
    first = text.splitlines()[0]
    assert first.startswith(prefix)
    assert (path.parent / first.removeprefix(prefix)).resolve() == PUBLISHED
    assert is_valid(policy_schema(), yaml.safe_load(text))
    assert is_valid(policy_schema(), as_document(load_policy(path)))


def test_everything_that_can_be_said_is_in_the_schema() -> None:
    assert is_valid(policy_schema(), yaml.safe_load(HEAD + WHOLE))

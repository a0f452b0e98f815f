"""YAML values with their locations: what is wrong is reported with its place, and reading goes on."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.api.yaml_fields import Diagnostics, Mistake, YamlNode, compose, known_entries


def read(text: str, known: tuple[str, ...] = ("a", "b")) -> tuple[list[tuple[str, Any]], list[str]]:
    notes = Diagnostics()
    node = compose(text, notes, lambda error: error.problem)
    found = []
    if node is not None:
        found = [(key, value.value) for key, _, value in known_entries(notes, node, known, phrase)]
    return found, list(map(str, notes.mistakes))


def phrase(key_node: YamlNode, key: str, first_line: int) -> str:
    return f"{key_node.id} {key!r} was in {first_line}"


def test_known_keys_are_read_and_the_others_reported_with_their_line() -> None:
    found, mistakes = read("a: 1\nc: 2\n\nb: 3\n[d]: 4\n")
    assert found == [("a", "1"), ("b", "3")]
    assert mistakes == ["line 2: scalar 'c' was in 0", "line 5: sequence '' was in 0"]


def test_of_a_key_that_is_there_twice_the_first_is_read() -> None:
    found, mistakes = read("\na: 1\nc: 2\na: 3\nc: 4\n")
    assert found == [("a", "1")]
    assert mistakes == [
        "line 3: scalar 'c' was in 0",
        "line 4: scalar 'a' was in 2",
        "line 5: scalar 'c' was in 3",
    ]


def test_mistakes_are_reported_in_the_order_of_reading() -> None:
    notes = Diagnostics()
    node = compose("{a: 1, c: 2, b: 3}", notes, str)
    assert node is not None
    for key, _, value in known_entries(notes, node, ("a", "b"), phrase):
        notes.add(value, key)
    assert [(each.column, each.text) for each in notes.mistakes] == [
        (5, "a"),
        (8, "scalar 'c' was in 0"),
        (17, "b"),
    ]


def test_invalid_yaml_is_reported_where_it_is() -> None:
    assert read("a: [\n") == ([], ["line 2: expected the node content, but found '<stream end>'"])


@pytest.mark.parametrize("text", [r'"\UFFFFFFFF"', r'"\U00110000"', f"%YAML 1.{'1' * 5000}\n--- 1"])
def test_a_number_that_pyyaml_does_not_check_is_invalid_yaml(text: str) -> None:
    assert read(f"\n{text}") == ([], ["line 2: number out of range"])


def test_a_text_without_a_document_has_no_mistakes() -> None:
    assert read("# nothing\n") == ([], [])


def test_a_mistake_names_its_place_or_the_whole_file() -> None:
    assert Mistake(2, 5, "wrong").at("f.yaml") == "f.yaml:2:5: wrong"
    assert Mistake(0, 0, "wrong").at("f.yaml") == "f.yaml: wrong"
    assert str(Mistake(0, 0, "wrong")) == "wrong"

"""YAML becomes the JSON it means, and nothing in it can hurt its reader."""

import json

import pytest

from podlife.api.yaml_documents import read_yaml, yaml_to_json


def test_a_document_becomes_json() -> None:
    text = b"kind: ConfigMap\nmetadata: {name: a}\ndata:\n  one: '1'\n  two: |\n    lines\nlist: [1, 2.5, true, null]\n"
    assert json.loads(yaml_to_json(text)) == {
        "kind": "ConfigMap",
        "metadata": {"name": "a"},
        "data": {"one": "1", "two": "lines\n"},
        "list": [1, 2.5, True, None],
    }


def test_what_json_does_not_know_becomes_text() -> None:
    assert json.loads(yaml_to_json(b"{1: 2020-01-01}")) == {"1": "2020-01-01"}


@pytest.mark.parametrize("opening", [b"[", b"{a: ", b"- "])
def test_nesting_that_would_overflow_a_stack_is_refused(opening: bytes) -> None:
    with pytest.raises(ValueError, match="nested more than 256 levels deep"):
        yaml_to_json(opening * 200_000)


def test_usual_nesting_is_read() -> None:
    assert yaml_to_json(b"[" * 200 + b"]" * 200) == b"[" * 200 + b"]" * 200


@pytest.mark.parametrize(
    "bomb",
    [
        b"a: &a [x]\nb: &b [*a, *a]\nc: [*b, *b]\n",
        b"a: &a {x: y}\nb: &b {<<: [*a, *a]}\nc: {<<: [*b, *b]}\n",
        b"a: &a [*a]\n",
    ],
)
def test_what_would_multiply_is_refused(bomb: bytes) -> None:
    with pytest.raises(ValueError, match="aliases are not supported"):
        yaml_to_json(bomb)


@pytest.mark.parametrize(
    "text",
    [b"a: [", b"a: b: c", b"a: !!python/object:os.system x", b"\xff\xff", b"{[1]: 2}", b"a: 1\n---\nb: 2\n"],
)
def test_what_cannot_be_read_is_told(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        yaml_to_json(text)


@pytest.mark.parametrize("text", ["12:30", "-1:2:3", "1:2.5", "190:20:30.15"])
def test_what_would_be_a_number_of_base_60_is_text(text: str) -> None:
    assert json.loads(yaml_to_json(f"a: {text}".encode())) == {"a": text}
    assert json.loads(yaml_to_json(f"a: {text.replace('-', '')}".encode()))["a"] == text.replace("-", "")


@pytest.mark.parametrize("tag", ["", "!!int ", "!!float "])
def test_a_number_of_base_60_costs_no_more_than_its_length(tag: str) -> None:
    """Its value would take minutes."""
    text = "1" + ":00" * 1_000_000
    assert json.loads(yaml_to_json(f"a: {tag}{text}".encode())) == {"a": text}


def test_a_number_of_too_many_digits_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\S"):
        yaml_to_json(b"a: " + b"1" * 100_000)


def test_more_values_than_any_object_has_are_refused() -> None:
    assert yaml_to_json(b"[" + b"1," * 9 + b"]", most_values=10) == b"[1,1,1,1,1,1,1,1,1]"
    with pytest.raises(ValueError, match="holds more than 10 values: write it as JSON"):
        yaml_to_json(b"[" + b"1," * 10 + b"]", most_values=10)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"a: 1\nb: {c: 1, d: 2}\n", ""),
        (b"a: 1\nb: 2\na: 3\n", 'line 3: key "a" already set in map'),
        (b"a: {b: 1, b: 2}", 'line 1: key "b" already set in map'),
        (b"- {a: 1}\n- {a: 2}\n", ""),
        (b"a: a\nb: a\n", ""),
        (b"- a\n- a\n", ""),
        (b"a: [{x: 1}, {x: 2, 'x': 3}]\nb:\n  x: 1\n", 'line 1: key "x" already set in map'),
        (
            b"a: {}\nb: []\na: {}\nb: []\n",
            'line 3: key "a" already set in map; line 4: key "b" already set in map',
        ),
    ],
)
def test_keys_that_a_map_has_twice_are_told(text: bytes, found: str) -> None:
    assert "; ".join(read_yaml(text)[1]) == found


def test_no_more_duplicates_are_told_than_fit() -> None:
    assert len(read_yaml(b"a: 1\n" * 5000)[1]) == 100

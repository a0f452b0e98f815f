import json

import pytest

from podlife.api.schema import duplicate_fields


def test_duplicates_are_told_with_their_paths_in_order() -> None:
    raw = b'{"a": 1, "a": 2, "spec": {"x": [{"y": 1, "y": 2, "y": 3}], "x": {}}}'
    assert duplicate_fields(raw) == [
        'duplicate field "a"',
        'duplicate field "spec.x[0].y"',
        'duplicate field "spec.x"',
    ]


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a":1,"b":{"a":1}}',
        b' { "a" : ":" , "b" : "\\":\\"" } \n',
        b'{"a":"\\\\","b":"\\\\\\":","c":"\\u0022:"}',
        b'{"a":[{"a":1},{"a":1}],"\\u003a":":8080","1e3":1e3}',
        b"[]",
        b"1" + b"0" * 300,
    ],
)
def test_a_document_without_duplicates_has_none(raw: bytes) -> None:
    assert duplicate_fields(raw) == []


def test_a_duplicate_is_found_behind_escapes_and_spaces() -> None:
    assert duplicate_fields(b'{"a":"\\"", "\\u0061" :"\\\\"}') == ['duplicate field "a"']


def test_what_was_decoded_already_need_not_be_decoded_again() -> None:
    raw = b'{"a":1, "a":2}'
    assert duplicate_fields(raw, json.loads(raw)) == ['duplicate field "a"']


def test_a_very_long_number_does_not_matter() -> None:
    raw = b'{"a":1,"a":' + b"1" * 5000 + b"}"
    assert duplicate_fields(raw, {"a": 1}) == ['duplicate field "a"']


def test_a_path_through_a_key_of_a_megabyte_costs_it_once() -> None:
    # Put together for each of the values below the key, it would be a terabyte.
    key, values = "k" * 1_000_000, b",".join([b"[]"] * 100_000)
    raw = b'{"%b":[%b],"a":1,"a":2}' % (key.encode(), values)
    assert duplicate_fields(raw) == ['duplicate field "a"']

import json

import pytest

from podlife.api.schema import duplicate_fields, in_document_order


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


def test_complaints_come_as_a_decoder_meets_them() -> None:
    raw = b'{"u":1,"spec":{"a":1,"a":2,"list":[{"v":1,"b":1,"b":2}],"v":1},"u":2,"spec":{}}'
    unknown = [f'unknown field "{path}"' for path in ("u", "spec.list[0].v", "spec.v")]
    assert in_document_order(raw, duplicate_fields(raw), unknown) == [
        'unknown field "u"',
        'duplicate field "spec.a"',
        'unknown field "spec.list[0].v"',
        'duplicate field "spec.list[0].b"',
        'unknown field "spec.v"',
        'duplicate field "spec"',
    ]


def test_a_complaint_whose_path_was_cut_comes_last() -> None:
    raw = b'{"a":1,"a":2}'
    cut = 'unknown field "xxx...'
    assert in_document_order(raw, ['duplicate field "a"'], [cut]) == ['duplicate field "a"', cut]


def test_very_many_complaints_are_not_ordered() -> None:
    """Each of them is looked for among the keys of the document."""
    raw = b'{"a":1,"a":2}'
    many = [f'unknown field "x{number}"' for number in range(5_000)]
    assert in_document_order(raw, ['duplicate field "a"'], many) == ['duplicate field "a"', *many]
